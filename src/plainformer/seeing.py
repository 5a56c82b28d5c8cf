"""Looking inside a model while it runs, and putting something else there (chapter on multi-head attention)."""

import difflib
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import jax
import jax.numpy as jnp

from plainformer.checks import check_each

try:  # JAX 0.8 moved it
    from jax.extend.core import get_opaque_trace_state as trace_state
except ImportError:
    from jax.core import get_opaque_trace_state as trace_state

INSTEAD = "put jit, vmap or grad around the look: jax.vmap(lambda x: pf.look(model, x))(xs)"
COMPILED = f"If it is compiled, {INSTEAD}."
LOOKS_ITSELF = "It looks itself, as what models.changed returns does: look at the model within."


class _Looking:
    """One look: what was seen so far, what stands in for it, and in which part of the model the program is."""

    def __init__(self, replace: dict):
        self.seen: dict[str, Any] = {}
        self.replace, self.path, self.trace = replace, "", trace_state(convention="plainformer")
        self.hint = COMPILED  # of what may be wrong if a name was not seen

    def see(self, name: str, value):
        """Write down a value by its name, or what stands in for it, and return it."""
        name = self.path + name
        if trace_state(convention="plainformer") != self.trace:
            raise ValueError(f"{name} is computed within jit, vmap, scan or the like; expected to see it: {INSTEAD}.")
        if name in self.seen:
            expected = "expected a name of its own for each array: look at one call at a time, or number them"
            raise ValueError(f"{name} is seen twice; {expected}.")
        if name in self.replace:
            value = _stand_in(name, value, self.replace[name])
        self.seen[name] = value
        return value


_looking: ContextVar[_Looking | None] = ContextVar("_looking", default=None)


def see(name: str, value):
    r"""Show an array to whoever looks, by its name in the part that computes it; return it, or what stands in for it.

    Every named array of a model passes through here. Nobody looks but within `look`: then nothing is done.

    Example:
        A network of one's own shows what it has inside.

        >>> def network(x):
        ...     hidden = pf.see("hidden", jnp.maximum(x, 0))
        ...     return hidden.sum()
        >>> out, seen = pf.look(network, jnp.asarray([-1.0, 2.0, 3.0]))
        >>> print(out, seen["hidden"])
        5.0 [0. 2. 3.]
    """
    looking = _looking.get()
    return value if looking is None else looking.see(name, value)


def within(name: str, part: Callable) -> Callable:
    """Return a part of a model as a function whose arrays are seen under its name."""
    looking = _looking.get()
    if looking is None:
        return part

    def call(*args, **kwargs):
        outer, looking.path = looking.path, f"{looking.path}{name}."
        try:
            return part(*args, **kwargs)
        finally:
            looking.path = outer

    return call


def named(name: str, part: Callable) -> Callable:
    """Return a part of a model as `within` does, with what it returns as its `output`."""
    if not is_looking():
        return part

    def shown(*args, **kwargs):
        output = part(*args, **kwargs)
        return see("output", output) if isinstance(output, jax.Array) else output

    return within(name, shown)


def unseen(part: Callable) -> Callable:
    """Return a part that shows nothing, such as a `vmap` of another, within which nobody can look."""

    def call(*args):
        mark = _looking.set(None)
        try:
            return part(*args)
        finally:
            _looking.reset(mark)

    return call


def is_looking() -> bool:
    """Whether somebody looks: then attention makes its weights a table, even where it could do without."""
    return _looking.get() is not None


def look(model: Callable, *inputs, replace: dict | None = None, **options) -> tuple[Any, dict[str, Any]]:
    r"""Run a model, and return what it returns and every array that it named on the way.

    The names are places in the model: `"stack.blocks.2.attention.weights"` are the attention weights of its third
    block, `"stack.blocks.2.output"` the residual stream after it. The figures of the book have the same names.

    A look works under `jit`, `grad` and `vmap` if these are put around it.

    Args:
        model: a model, or one of its methods.
        *inputs: what it is given.
        replace: what shall stand in for arrays, by name: an array, or a function that makes it of the one that was
            computed. All that follows is computed from it, as in activation patching.
        **options: what it is given by name.

    Returns:
        The output, and a dictionary of arrays by name, in the order in which they were computed. What a function under
        `jax.jit` returns is sorted by name.

    Raises:
        ValueError: if a name of `replace` is none, if what stands in has another shape or dtype, or if the model itself
            is compiled.

    Example:
        Silence the first head of a block.

        >>> config = pf.DecoderConfig(65, 16, stack=pf.StackConfig(d_model=8, num_layers=1, num_heads=2))
        >>> decoder, tokens = pf.Decoder(config, key=jax.random.key(0)), jnp.asarray([7, 2, 9])
        >>> logits, seen = pf.look(decoder, tokens)
        >>> seen["stack.blocks.0.attention.weights"].shape
        (2, 3, 3)
        >>> silenced = {"stack.blocks.0.attention.heads": lambda heads: heads.at[0].set(0)}
        >>> other, _ = pf.look(decoder, tokens, replace=silenced)
        >>> bool(jnp.allclose(logits, other))
        False
    """
    check_each(Callable, model=model)
    check_each(dict | None, replace=replace)
    looking, outer = _Looking(replace or {}), _looking.get()
    if outer is not None:
        outer.hint = LOOKS_ITSELF
    mark = _looking.set(looking)
    try:
        output = model(*inputs, **options)
    finally:
        _looking.reset(mark)
    if not looking.seen:
        what = type(model).__name__
        raise ValueError(f"The {what} showed no array; expected a model, or a function that calls see. {looking.hint}")
    for name in looking.replace:
        if name not in looking.seen:
            close = difflib.get_close_matches(name, looking.seen, n=3) or list(looking.seen)[:3]
            expected = f"expected a name such as {close}"
            raise ValueError(f"replace has {name!r}, which was not seen; {expected}. {looking.hint}")
    return output, looking.seen


def _stand_in(name: str, value, instead):
    """What stands in for a value: an array, or a function of the value."""
    instead = instead(value) if callable(instead) else instead
    found = (getattr(instead, "shape", None), getattr(instead, "dtype", None))
    if found != (value.shape, value.dtype):
        raise ValueError(
            f"What stands in for {name} has shape {found[0]} and dtype {found[1]}; expected {value.shape} and "
            f"{value.dtype}. Try jnp.broadcast_to(…, {value.shape}).astype({str(value.dtype)!r})."
        )
    return jnp.asarray(instead)  # NumPy's would not be told apart from what is no array
