"""Models all of whose parts are a reader's own: each does what the package's does, and says something wrong before."""

import dataclasses
import inspect
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

import plainformer as pf

KEY = jax.random.key(0)

# What may go wrong in a part of one's own that gets rows `x` of a text, in one line each.
MISUSES: dict[str, Callable] = {
    "mask of 0 and -inf": lambda x: pf.attend(x, x, x, jnp.where(pf.causal_mask(x.shape[-2]), 0, -jnp.inf)),
    "mask of 0 and 1": lambda x: pf.attend(x, x, x, pf.causal_mask(x.shape[-2]).astype(int)),
    "softmax with a mask of numbers": lambda x: pf.softmax(x @ x.mT, jnp.ones(2 * x.shape[-2:-1])),
    "bias of truth values": lambda x: pf.attend(x, x, x, bias=pf.causal_mask(x.shape[-2])),
    "mask with an axis too many": lambda x: pf.attend(x, x, x, jnp.ones((9, *x.shape[:-1], x.shape[-2]), bool)),
    "scale of NaN": lambda x: pf.attend(x, x, x, scale=float("nan")),
    "scale in words": lambda x: pf.attend(x, x, x, scale="root of d_k"),
    "one query too few": lambda x: pf.hard_attention(x[..., 0, :], x, x),
    "rows of whole numbers": lambda x: pf.standardise(x.astype(int)),
    "padding in numbers": lambda x: pf.padding_mask(jnp.ones(x.shape[:-1], int)),
    "blocks of no token": lambda x: pf.attention.blockwise_attention(x, x, x, block_size=0),
    "a table for a rule": lambda x: pf.attention.linear_attention(x, x, x, pf.causal_mask(x.shape[-2])),
    "dropout of 150 per cent": lambda x: pf.dropout(x, 1.5, key=KEY),
    "a seed for a key": lambda x: pf.dropout(x, 0.1, key=0),
    "heads of no width": lambda x: pf.split_heads(x, 0),
    "ids that are floats": lambda x: pf.embed(x, x[..., 0]),
    "positions for another length": lambda x: pf.rotate_pairs(x, jnp.arange(x.shape[-2] + 1)),
    "a norm of another width": lambda x: pf.RMSNorm(x.shape[-1] + 1)(x),
}


def answer(misuse: Callable, x) -> str:
    """What is said of a wrong call."""
    try:
        misuse(x)
    except (TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


class Own(eqx.Module):
    """A part of one's own around one of the package: whatever is asked of it, `before(name, rows)` is done first."""

    part: eqx.Module
    name: str = eqx.field(static=True)
    before: Callable = eqx.field(static=True)

    def __call__(self, *args, **kwargs):
        return self._asked(self.part, args, kwargs)

    def __getattr__(self, name):
        found = getattr(self.part, name)
        if inspect.ismethod(found) or type(found).__module__.startswith("equinox"):
            return lambda *args, **kwargs: self._asked(found, args, kwargs)
        return found

    def _asked(self, function, args, kwargs):
        for each in args:
            if isinstance(each, jax.Array) and each.ndim > 1 and jnp.issubdtype(each.dtype, jnp.floating):
                self.before(self.name, each)
        return function(*args, **kwargs)


class OwnScheme(pf.PositionScheme):
    """A position scheme of one's own around one of the package; `before` as for `Own`."""

    part: pf.PositionScheme
    before: Callable = eqx.field(static=True)

    def embed(self, x, positions=None):
        self.before("scheme.embed", x)
        return self.part.embed(x, positions)

    def rotate(self, rows, positions=None):
        self.before("scheme.rotate", rows)
        return self.part.rotate(rows, positions)

    def bias(self, q_positions, kv_positions):
        self.before("scheme.bias", jnp.ones((len(q_positions), 8)))
        return self.part.bias(q_positions, kv_positions)

    def sees(self, q_positions, kv_positions):
        self.before("scheme.sees", jnp.ones((len(q_positions), 8)))
        return self.part.sees(q_positions, kv_positions)


def with_own_parts(model: eqx.Module, before: Callable) -> eqx.Module:
    """The model with every part in it made one's own, and the parts of these."""
    for field in dataclasses.fields(model):
        part = getattr(model, field.name)
        if isinstance(part, tuple) and all(isinstance(each, eqx.Module) for each in part):
            own: object = tuple(Own(with_own_parts(each, before), field.name, before) for each in part)
        elif isinstance(part, pf.PositionScheme):
            own = OwnScheme(part, before)
        elif isinstance(part, eqx.Module) and callable(part):
            own = Own(with_own_parts(part, before), field.name, before)
        else:
            continue
        model = eqx.tree_at(lambda model, name=field.name: getattr(model, name), model, own)
    return model
