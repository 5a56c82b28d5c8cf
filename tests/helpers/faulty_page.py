"""A page for the toy book with what no notebook can show, and with references that lead nowhere."""

FAULTY = r"""
# Faults

```{strange}
x
```

A {strange}`x`, {eq}`eq-nowhere`, {cite:t}`nobody`, {numref}`fig-nowhere`, {doc}`99_none`, [b](99_none.md).

```{listing} triple
```

```{drawing} nowhere
It is not there.
```

```{eval-rst}
| a verse
```

(sec-small)=
## Again

$$ a $$ (eq-small-one)

```{exercise} Once more
:label: ex-add
```

```{live-figure} toy
:name: fig-small
:alt: a toy
The same again.
```
"""
