"""A book of small pages with whatever a notebook can show."""

from pathlib import Path

import yaml
from book import ROOT

SITE = "https://owner.github.io/name"
HEADER = """\
---
jupytext:
  text_representation: {extension: .md, format_name: myst}
kernelspec: {display_name: Python 3, language: python, name: python3}
---
"""
TOC = """\
format: jb-book
root: index
parts:
  - caption: Before
    chapters: [{file: chapters/00_words}]
  - caption: Chapters
    numbered: 2
    chapters: [{file: chapters/01_small}, {file: chapters/02_large}]
  - caption: After
    chapters: [{file: appendix/sources}]
"""
INDEX = """\
# The book

```{live-figure} toy
:name: fig-index
:alt: a toy
Caption.
```
"""
WORDS = """\
(sec-words)=
# Words

```{math}
:label: eq-words-definition
a = b
```

```{figure} ../toy.svg
:name: fig-words
:alt: a toy
Caption.
```

$$
c
$$ (eq-words-c)
"""
SMALL = r"""
(sec-small)=
# Small things

See {eq}`eq-large-two`, {eq}`eq-small-one`, {numref}`fig-small`, {ref}`sec-large`, {numref}`Part %s <sec-second>`,
{doc}`02_large`, {cite:t}`trio`, {cite:p}`solo,trio`, {term}`tokens <token>`, [the words](00_words.md#words),
[](#eq-small-one), {prf:ref}`thm-small`, {math}`x_1`, {py:func}`pf.attend` and [the module](../src/toy/sums.py).
Neither $a[i](j)$ nor `{eq}` in code nor ``{eq}`x` `` is touched, and \$5 is no mathematics. % not a comment

% a comment

```{math}
:label: eq-small-one
x &= y \\
z &= \begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}
```

## First

(sec-second)=
## Second

$$
p = \begin{pmatrix} 1 \\ 2 \end{pmatrix}
$$ (eq-small-two)

:::{note}
A sum $a +
b$ with

```{math}
:label: eq-small-three
s = a
  + b
```
:::

````{admonition} A *title*
:class: dropdown
```python
print("{note}")
```
````

```{margin} Aside
Small {eq}`eq-small-one`.
```

```{live-figure} toy
:name: fig-small
:alt: three dots
A caption with {eq}`eq-small-two`.

And more.
```

```{listing} double
```

```{table} Names
:name: tab-small
| a | b |
|---|---|
| 1 | 2 \| 3 |
```

```{list-table} Sizes
:header-rows: 1
* - name
  - {math}`n`
* - three
  - 3
```

```{prf:theorem} Little
:label: thm-small
It holds.
```

```{prf:proof}
Clear.
```

- an item

  ```{tip}
  inside
  ```

- another

3. three
4. four

word
: its meaning

```{code-block} console
:caption: A command, see {eq}`eq-small-one`
$ make
```

````{code-block} markdown
```python
1
```
````

```{figure} ../toy.svg
:name: fig-still
:alt: a toy
It stands still.
```

```{drawing} boxes
:name: fig-boxes

Boxes, see {eq}`eq-small-one`.
```

```{epigraph}
![A dot](../toy.svg)

-- Somebody
```
"""
EXERCISES = r"""
```{exercise} Add
:label: ex-add
Show {eq}`eq-small-two`.
```

````{solution} ex-add
Thus $1$:

```python
1
```
````

```{exercise-start} Code
:label: ex-code
```

Write it.

```{exercise-end}
```

```{solution-start} ex-code
```

Like this:

```{code-cell} ipython3
answer = 42
```

And so on.

```{solution-end}
```

```{exercise}
:label: ex-last
Again.
```

```{solution-start} ex-last
```

Short.

```{solution-end}
```

```{code-cell} ipython3
---
tags: [hide-input]
mystnb:
  figure:
    name: fig-drawn
    caption: |
      Drawn, see {eq}`eq-small-one`.
  image:
    alt: a line
---
from IPython.display import SVG
SVG(data='<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
```
"""
LARGE = "(sec-large)=\n# Large {term}`things`\n\n```{math}\n:label: eq-large-one\na\n```\n\n$$b$$ (eq-large-two)\n"
# Of each kind more than one block, so that none of them can be lost unseen.
LARGE += """
```{table} Rows
| name | size |
|---|---|
| apple | small |
| melon | large |
| quince | middling |
```

```{admonition} Heading
Alpha.

Beta.

Gamma.

Delta.

Epsilon.
```

> A quotation of

> several lines.

:::{dropdown} Letters
A folded table.

| letter | meaning |
|---|---|
| $x$ | a number |
:::

```{prf:proof}
Start.

Finish.
```

```{exercise} Twofold
:label: ex-twofold
Show this.

Conclude that.
```

```{exercise-start} Mixed
:label: ex-mixed
```

Before the cell.

```{code-cell} ipython3
mixed = 1
```

After the cell.

```{exercise-end}
```

A claim.[^why]

[^why]: The reason.
"""
SOURCES = """\
# Sources

```{bibliography}
```

```{glossary}
token
  a part
```

```{math}
:label: eq-after
q
```
"""
MODULE = '''\
import functools


@functools.cache
def double(x):
    """Return twice the number."""
    check_number(x=x)
    return 2 * x
'''
BIB = """\
@article{trio, author={Vaswani, A. and van der Berg, B. and Cho, C.}, title={T}, year={2017}, journal={J},
  eprint={1706.03762}}
@book{solo, author={Bishop, C.}, title={B}, year={2024}, publisher={P}, doi={10.1/x}}
"""


def write_toy_book(root: Path) -> None:
    """Write the toy book, with the real book's configuration but an address of its own."""
    files = {
        "_toc.yml": TOC,
        "index.md": INDEX,
        "chapters/00_words.md": HEADER + WORDS,
        "chapters/01_small.md": HEADER + SMALL + EXERCISES,
        "chapters/02_large.md": HEADER + LARGE,
        "appendix/sources.md": SOURCES,
        "references.bib": BIB,
        "src/toy/sums.py": MODULE,
        "drawings/boxes.svg": '<svg xmlns="http://www.w3.org/2000/svg"><title>three boxes</title></svg>',
        "toy.svg": '<svg xmlns="http://www.w3.org/2000/svg"/>',
        "widgets/toy.mjs": "export function mount() {}",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    config["repository"]["url"] = "https://github.com/owner/name"
    (root / "_config.yml").write_text(yaml.safe_dump(config))
