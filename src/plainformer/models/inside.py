"""Which part of a model did it: lens, silencing, patching, paths, steering, probes and induction scores.

A place in a model is a name, as `look` has them, with an index into the array of that name: `{"stack.input": ...}` is
all of it, `{"stack.blocks.1.output": np.s_[..., 3, :]}` the stream at token 3 after the second block.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from plainformer.checks import Finite, Natural, Positive, check_each, checked, refuse
from plainformer.seeing import look

OF_SUBLAYERS = ("attention.heads", "feed_forward.output")  # what blocks add to the stream is made of these
OF_KEYS = ("keys", "values")


def lens(model: Callable, *inputs, **options) -> list[Array]:
    r"""Return what a model would say if the stream before its first block, or after any of them, were its last.

    Implements `eq-inside-lens`; nostalgebraist (2020). With an encoder and a decoder, the blocks are the decoder's. The
    model runs once, and what follows its last block once for each depth.

    Args:
        model: a model whose blocks stand in a `Stack`.
        *inputs: what it is given.
        **options: what it is given by name.
    """
    *earlier, last = _depths(model, *inputs, **options)

    def at(depth: Array) -> Array:
        stream: list[Array] = []

        def kept(x: Array) -> Array:
            stream.append(x)
            return x

        replace = dict.fromkeys(earlier, kept) | {last: lambda x: jnp.stack([*stream, x])[depth]}
        return look(model, *inputs, replace=replace, **options)[0]

    return list(jax.vmap(at)(jnp.arange(len(earlier) + 1)))


def heads_at(
    seen: dict[str, Array], heads: Sequence[tuple[int, int]], part: str = "heads", attention: str = "attention"
) -> dict[str, Any]:
    r"""Return the places of attention heads: what they put out, or their queries, keys, values or weights.

    Query heads that share keys and values (grouped heads) lead to the one key head of their group. With an encoder and
    a decoder, the heads are the decoder's.

    Args:
        seen: what a look at the model saw.
        heads: block and head of each, counted from 0.
        part: `"heads"`, what they put out, or `"queries"`, `"keys"`, `"values"`, `"scores"` or `"weights"`.
        attention: `"attention"`, or `"cross_attention"`.

    Example:
        >>> config = pf.DecoderConfig(65, 16, pf.StackConfig(d_model=8, num_layers=1, num_heads=4, num_kv_heads=2))
        >>> _, seen = pf.look(pf.Decoder(config, key=jax.random.key(0)), jnp.asarray([7, 2, 9]))
        >>> pf.models.heads_at(seen, [(0, 3)], "keys")
        {'stack.blocks.0.attention.keys': (Ellipsis, [1], slice(None, None, None), slice(None, None, None))}
    """
    check_each(dict, seen=seen)
    check_each(Literal["heads", "queries", "keys", "values", "scores", "weights"], part=part)
    check_each(Literal["attention", "cross_attention"], attention=attention)
    are_pairs = isinstance(heads, Sequence) and all(isinstance(each, Sequence) and len(each) == 2 for each in heads)
    if not are_pairs or not all(isinstance(number, int) for each in heads for number in each):
        raise ValueError(f"heads is {heads!r}; expected block and head of each, such as [(2, 4), (3, 6)].")
    found: dict[str, list[int]] = {}
    stack = next((name.removesuffix("input") for name in reversed(seen) if name.endswith("stack.input")), "stack.")
    for block, head in heads:
        name, outputs = (f"{stack}blocks.{block}.{attention}.{each}" for each in (part, "heads"))
        if name not in seen or not 0 <= head < seen[outputs].shape[-3]:
            raise ValueError(f"There is no {part} of head {head} in block {block}; {_sizes_of(seen, stack, attention)}")
        group = seen[outputs].shape[-3] // seen[name].shape[-3]
        found.setdefault(name, []).append(head // group)
    return {name: np.s_[..., numbers, :, :] for name, numbers in found.items()}


def silence(
    model: Callable, *inputs, places: dict[str, Any], instead: dict[str, Array] | None = None, **options
) -> Any:
    r"""Return what a model says when some of its arrays are zeros, or what they are on average.

    Implements `eq-inside-silence`. Differs from leaving a part out: what it would have added to the stream is missing,
    and all that follows is computed from what is left.

    Args:
        model: a model, or one of its methods.
        *inputs: what it is given.
        places: index by name, of what shall be silent.
        instead: `None` for zeros, or arrays by name, as `mean_run` makes them.
        **options: what it is given by name.
    """
    zeros = {name: jnp.zeros(()) for name in places}
    return patch(model, *inputs, places=places, source=zeros if instead is None else instead, **options)


def mean_run(seen: dict[str, Array]) -> dict[str, Array]:
    """Return the mean of each array over the inputs of a batch, its first axis: what stands there on average."""
    check_each(dict, seen=seen)
    return {name: array.mean(axis=0) for name, array in seen.items()}


def patch(model: Callable, *inputs, places: dict[str, Any], source: dict[str, Array], **options) -> Any:
    r"""Return what a model says when, at some places, it has the arrays of another run in place of its own.

    Implements `eq-inside-patch`; Vig et al. (2020), section 3; Meng et al. (2022), section 2.1.

    Args:
        model: a model, or one of its methods.
        *inputs: what it is given.
        places: index by name, of what is taken over.
        source: what a look at the other run saw, or its mean; where this run has more axes in front, as of a batch,
            each of its inputs gets the same.
        **options: what it is given by name.

    Raises:
        ValueError: if a place is none, or the arrays of the two runs do not fit.

    Example:
        With the whole stream of the other run the model says what it says there.

        >>> config = pf.DecoderConfig(65, 16, stack=pf.StackConfig(d_model=8, num_layers=1, num_heads=2))
        >>> decoder = pf.Decoder(config, key=jax.random.key(0))
        >>> said, seen = pf.look(decoder, jnp.asarray([7, 2, 9]))
        >>> patched = pf.models.patch(decoder, jnp.asarray([7, 2, 8]), places={"stack.input": ...}, source=seen)
        >>> bool(jnp.allclose(patched, said))
        True
    """
    check_each(Callable, model=model)
    check_each(dict, places=places, source=source)
    replace = {name: _taken_over(name, index, source) for name, index in places.items()}
    return look(model, *inputs, replace=replace, **options)[0]


def steer(
    model: Callable,
    *inputs,
    places: dict[str, Any],
    direction: Float[Array, "*rest d"],
    strength: float = 1.0,
    **options,
) -> Any:
    r"""Return what a model says when a direction is added to some of its arrays, such as the stream after a block.

    Turner et al. (2023); Rimsky et al. (2024), who take the mean of many differences between two runs.

    Args:
        model: a model, or one of its methods.
        *inputs: what it is given.
        places: index by name, of what is moved: arrays whose last axes are those of the direction.
        direction: such as a difference of two rows of the stream, of shape `(d_model,)`.
        strength: what it is multiplied by; below 0 it leads the other way.
        **options: what it is given by name.

    Raises:
        ValueError: if a place is none, or the direction has other axes.
    """
    check_each(Callable, model=model)
    check_each(dict, places=places)
    check_each(Finite, strength=strength)
    replace = {name: _moved(name, index, strength * jnp.asarray(direction)) for name, index in places.items()}
    return look(model, *inputs, replace=replace, **options)[0]


def changed(model: Any, change: Callable, **options) -> "_Changed":
    r"""Return a model that writes with a part changed: for `generate`, and for all else that writes with a cache.

    In writing, a model reads its prompts first, padded, and then one token at a time. So places should be those of all
    tokens, such as heads or the whole stream: token 3 of what is read would be another one at each step.

    Args:
        model: a `Decoder`, or what has its methods `make_cache`, `extend` and `logits`.
        change: how it runs, such as `silence` or `steer`: a function of a model, or of one of its methods, and inputs.
        **options: what `change` is given by name.

    Example:
        A text by a model whose first head is silent.

        >>> config = pf.DecoderConfig(65, 16, stack=pf.StackConfig(d_model=8, num_layers=1, num_heads=2))
        >>> decoder = pf.Decoder(config, key=jax.random.key(0))
        >>> _, seen = pf.look(decoder, jnp.asarray([7, 2, 9]))
        >>> head = pf.models.heads_at(seen, [(0, 0)])
        >>> without = pf.models.changed(decoder, pf.models.silence, places=head)
        >>> len(pf.generate(without, [7, 2, 9], 5, temperature=0).tokens)
        5
    """
    check_each(Callable, change=change)
    return _Changed(model, partial(change, **options))


def patch_path(
    model: Callable,
    *inputs,
    sender: dict[str, Any],
    receiver: dict[str, Any],
    source: dict[str, Array],
    hold: Sequence[str] = OF_SUBLAYERS,
    **options,
) -> Any:
    r"""Return what a model says when one part hears of another run only what one other part tells it directly.

    Implements `eq-inside-path`; Goldowsky-Dill et al. (2023), section 2; Wang et al. (2023), section 3.1. The
    sender has the arrays of the other run, and all other heads and networks are held at what they are in this run,
    so that what the sender writes reaches the receiver along the residual stream alone. Then the receiver keeps
    what it got, and all that follows it is computed.

    Args:
        model: a model, or one of its methods.
        *inputs: what it is given.
        sender: index by name, such as what a head puts out.
        receiver: index by name, such as the keys of a later head.
        source: what a look at the other run saw.
        hold: the endings of the names that are held; without networks, what passes through them counts as direct.
        **options: what it is given by name.
    """
    _, seen = look(model, *inputs, **options)
    held: dict[str, Any] = {name: array for name, array in seen.items() if name.endswith(tuple(hold))}
    moved = {name: _taken_over(name, index, source) for name, index in sender.items()}
    _, on_the_way = look(model, *inputs, replace=held | moved, **options)
    return patch(model, *inputs, places=receiver, source=on_the_way, **options)


@checked
def effect(
    patched: Float[Array, "*batch"], before: Float[Array, "*batch"], source: Float[Array, "*batch"]
) -> Float[Array, "*batch"]:
    r"""Return how far patching moves an answer, from 0, as in the run that is patched, to 1, as in the other.

    Implements `eq-inside-effect`; Zhang and Nanda (2024), section 2.

    Args:
        patched: what is measured of the patched run, such as the difference of two logits.
        before: the same without the patch.
        source: the same of the run that the arrays are from.
    """
    before = refuse(before, before == source, "before", "another number than in source: two runs whose answers differ.")
    return (patched - before) / (source - before)


@checked
def induction_scores(weights: Float[Array, "*batch seq seq"], period: Positive) -> Float[Array, "*batch"]:
    r"""Return how much attention goes from each token to the one after its last occurrence, in a text that repeats.

    Implements `eq-inside-induction`; Olsson et al. (2022). Only tokens that have occurred before are asked.

    Args:
        weights: attention weights on a text in which every token stands again `period` tokens later.
        period: after how many tokens the text comes again.
    """
    if period >= weights.shape[-1]:
        raise ValueError(f"period={period} for {weights.shape[-1]} tokens; expected a text that comes again.")
    again = np.arange(period, weights.shape[-1])
    return weights[..., again, again - period + 1].mean(axis=-1)


@checked
def probe_accuracy(
    rows: Float[Array, "examples d_model"],
    labels: Integer[Array, " examples"],
    num_to_learn: Positive,
) -> float:
    r"""Return how often a linear map tells the labels of rows apart that it has not learned from.

    The classifier is scikit-learn's logistic regression on rows scaled to unit variance; Alain and Bengio (2017).

    Args:
        rows: such as the stream at one token, of many texts.
        labels: what is asked of each.
        num_to_learn: the number of examples, from the first on, that it learns from.
    """
    if num_to_learn >= len(rows):
        raise ValueError(f"num_to_learn={num_to_learn} of {len(rows)} examples; expected some left to be judged by.")
    if len(np.unique(labels[:num_to_learn])) < 2:
        raise ValueError("labels to learn from are all the same; expected at least two kinds. Try to shuffle them.")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    probe.fit(np.asarray(rows[:num_to_learn]), np.asarray(labels[:num_to_learn]))
    return float(probe.score(np.asarray(rows[num_to_learn:]), np.asarray(labels[num_to_learn:])))


@checked
def control_labels(
    kinds: Integer[Array, " examples"], num_labels: Positive, seed: Natural = 0
) -> Integer[Array, " examples"]:
    r"""Return a label drawn at random for each kind of example, the same for all of a kind: a task without meaning.

    Implements `eq-inside-selectivity`, the labels of its second term; Hewitt and Liang (2019), section 2. A probe that
    learns them has learned them by heart, since they follow from nothing.

    Args:
        kinds: a number for each example, such as the id of its word.
        num_labels: how many labels there are, as many as the true task has.
        seed: of the draw.
    """
    drawn = np.random.default_rng(seed).integers(num_labels, size=int(kinds.max()) + 1)
    return jnp.asarray(drawn)[kinds]


class _Changed(eqx.Module):
    """A model whose every call is made by a function that changes it; the rows that `extend` returns are changed."""

    model: Any
    change: Callable

    @property
    def config(self) -> Any:
        return self.model.config

    @property
    def can_slide(self) -> bool:
        return getattr(self.model, "can_slide", False)

    def __call__(self, *inputs, **options):
        return self.change(self.model, *inputs, **options)

    def make_cache(self, *args, **options) -> tuple:
        return self.model.make_cache(*args, **options)

    def extend(self, *inputs) -> tuple:
        return self.change(self.model.extend, *inputs)

    def logits(self, x: Array) -> Array:
        return self.model.logits(x)


def _depths(model: Callable, *inputs, **options) -> list[str]:
    """The names of the stream before the first block of the last stack, and after each block; nothing is computed."""
    seen: list[str] = []

    def named() -> Any:
        said, arrays = look(model, *inputs, **options)
        seen.extend(arrays)  # in here, since a dictionary that leaves a trace is sorted: block 10 before block 2
        return said

    said = eqx.filter_eval_shape(named)
    if not hasattr(said, "shape"):
        what = f"The {type(model).__name__} returned a {type(said).__name__}"
        raise ValueError(
            f"{what}; expected logits. Try lens(lambda ids: model.logits(model.extend(ids, cache)[0]), ids)."
        )
    blocks = [name for name in seen if name.endswith(".output") and name.split(".")[-3:-2] == ["blocks"]]
    if not blocks:
        raise ValueError(f"The {type(model).__name__} showed no blocks; expected a model with a Stack. Try pf.Decoder.")
    stack = blocks[-1].rpartition("blocks.")[0]
    return [f"{stack}input", *(name for name in blocks if name.startswith(f"{stack}blocks."))]


def _taken_over(name: str, index, source: dict[str, Array]) -> Callable[[Array], Array]:
    """A function that puts what another run has at these places into an array."""
    if name not in source:
        raise ValueError(f"source has no {name!r}; expected what pf.look saw in another run of the same model.")
    there = source[name]

    def taken_over(array: Array) -> Array:
        _check_place(name, index, array.shape)
        if there.ndim > array.ndim or there.shape != array.shape[array.ndim - there.ndim :]:
            raise ValueError(
                f"{name} has shape {there.shape} in source and {array.shape} here; expected two runs on inputs of the "
                "same length. Try two texts of as many tokens, or what mean_run returns of such texts."
            )
        return array.at[index].set(jnp.broadcast_to(there, array.shape)[index].astype(array.dtype))

    return taken_over


def _moved(name: str, index, by: Array) -> Callable[[Array], Array]:
    """A function that adds something to what stands at these places of an array."""

    def moved(array: Array) -> Array:
        _check_place(name, index, array.shape)
        there = array[index].shape
        if not by.ndim or by.shape != there[max(len(there) - by.ndim, 0) :]:
            raise ValueError(
                f"direction has shape {by.shape}, and {name} has {there} at its place; expected the same last axes. "
                "Try a row of the stream, such as seen[name][3]."
            )
        return array.at[index].add(by.astype(array.dtype))

    return moved


def _check_place(name: str, index, shape: tuple[int, ...]) -> None:
    """Raise `ValueError` if there is nothing at an index, which JAX would pass over; a traced one is not known yet."""
    if any(isinstance(part, jax.core.Tracer) for part in jax.tree.leaves(index)):
        return
    try:
        found = np.broadcast_to(np.zeros(()), shape)[index]
    except IndexError:
        found = np.zeros(0)
    if not found.size:
        ends = f"up to {shape[-2] - 1} on the axis before the last" if len(shape) > 1 else f"up to {shape[-1] - 1}"
        raise ValueError(
            f"{name} has shape {shape} and nothing at the place {index}; expected an index within it, {ends}. "
            "Try np.s_[..., 0, :], the first token of a stream."
        )


def _sizes_of(seen: dict[str, Array], stack: str, attention: str) -> str:
    """What there is, for a message."""
    sizes = [array.shape[-3] for name, array in seen.items() if name.endswith(f".{attention}.heads") and stack in name]
    return (
        f"expected one of blocks 0 to {len(sizes) - 1}, with heads 0 to {sizes[0] - 1}." if sizes else "none were seen."
    )
