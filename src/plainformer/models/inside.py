"""Which part of a model did it: lens, silencing, patching, paths, steering, probes and induction scores.

A place in a model is a name, as `look` has them, with an index into the array of that name: `{"stack.input": ...}` is
all of it, `{"stack.blocks.1.output": np.s_[..., 3, :]}` the stream at token 3 after the second block.
"""

import difflib
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Literal, SupportsIndex

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Integer

from plainformer.checks import Finite, Natural, Positive, check_each, checked, refuse
from plainformer.models.places import as_numbers, axes_of_one, check_batch_axis, place_in
from plainformer.seeing import look

OF_SUBLAYERS = ("attention.heads", "feed_forward.output")  # what blocks add to the stream is made of these


def lens(model: Callable, *inputs, **options) -> list[Array]:
    r"""Return what a model would say if the stream before its first block, or after any of them, were its last.

    Implements `eq-inside-lens`; nostalgebraist (2020). With an encoder and a decoder, the blocks are the decoder's. The
    model runs once, and what follows its last block once for each depth.

    Args:
        model: a model whose blocks stand in a `Stack`.
        *inputs: what it is given.
        **options: what it is given by name.

    Returns:
        `num_layers + 1` arrays, each of the shape of the model's logits; the last one is what it says.
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
    seen: dict[str, Array],
    heads: Sequence[tuple[SupportsIndex, SupportsIndex]],
    part: str = "heads",
    attention: str = "attention",
) -> dict[str, Any]:
    r"""Return the places of attention heads: what they put out, or their queries, keys, values or weights.

    Query heads that share keys and values (grouped heads) lead to the one key head of their group, once. With an
    encoder and a decoder, the heads are the decoder's.

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
    found: dict[str, dict[int, None]] = {}  # each once, in order, as several heads may share keys
    stack = next((name.removesuffix("input") for name in reversed(seen) if name.endswith("stack.input")), "stack.")
    for block, head in _pairs(heads):
        name, outputs = (f"{stack}blocks.{block}.{attention}.{each}" for each in (part, "heads"))
        if name not in seen or not 0 <= head < seen[outputs].shape[-3]:
            expected = _sizes_of(seen, f"{stack}blocks.", f".{attention}.", part)
            raise ValueError(f"There is no {part} of head {head} in block {block}; {expected}")
        group = seen[outputs].shape[-3] // seen[name].shape[-3]
        found.setdefault(name, {})[head // group] = None
    return {name: np.s_[..., list(numbers), :, :] for name, numbers in found.items()}


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
        instead: `None` for zeros, or arrays by name, as `mean_run` makes them; of the shapes that a look sees, or
            without the first of their axes.
        **options: what it is given by name.

    Returns:
        What the model returns, such as logits of the same shape as ever.
    """
    check_each(dict, places=places)
    zeros = {name: jnp.zeros(()) for name in places}
    return patch(model, *inputs, places=places, source=zeros if instead is None else instead, **options)


def mean_run(seen: dict[str, Array]) -> dict[str, Array]:
    r"""Return the mean of each array over the inputs of a batch: what stands there on average.

    Args:
        seen: what a look at a batch saw, arrays of shape `(batch, …)`.

    Returns:
        Arrays by the same names, of shape `(…)`.

    Raises:
        ValueError: if there is no batch, which would be a mean over tokens or heads, or none in it.
    """
    check_each(dict, seen=seen)
    for name, array in seen.items():
        check_batch_axis(name, np.shape(array))
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

    Returns:
        What the model returns, such as logits of the same shape as ever.

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
    by = strength * as_numbers("direction", direction)
    replace = {name: _moved(name, index, by) for name, index in places.items()}
    return look(model, *inputs, replace=replace, **options)[0]


def changed(model: Any, change: Callable, **options) -> "_Changed":
    r"""Return a model that writes with a part changed: for `generate`, and for all else that writes with a cache.

    In writing, a model reads its prompts first, padded, and then one token at a time. So places should be those of all
    tokens, such as heads or the whole stream: token 3 of what is read would be another one at each step.

    Args:
        model: a `Decoder`, or what has its methods `make_cache`, `extend` and `logits`; a `Seq2Seq` is changed in the
            decoder, once `condition_on` has read a source.
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
    hold: str | Sequence[str] = OF_SUBLAYERS,
    **options,
) -> Any:
    r"""Return what a model says when one part hears of another run only what one other part tells it directly.

    Implements `eq-inside-path`; Goldowsky-Dill et al. (2023), section 2; Wang et al. (2023), section 3.1. The
    sender has the arrays of the other run, and all other heads and networks are held at what they are in this run,
    so that what the sender writes reaches the receiver along the residual stream alone. A receiver may be one of
    those: what it would have been is taken down before it is held. Then the receiver keeps what it got, and all that
    follows it is computed.

    Args:
        model: a model, or one of its methods.
        *inputs: what it is given.
        sender: index by name, such as what a head puts out.
        receiver: index by name, such as the keys of a later head.
        source: what a look at the other run saw.
        hold: an ending of the names that are held, or several; without networks, what passes through them counts as
            direct. What heads are multiplied by, a `gate` as that of a `GatedDeltaNet`, is held where they are.
        **options: what it is given by name.

    Returns:
        What the model returns, such as logits of the same shape as ever.

    Raises:
        ValueError: if a place is none, if nothing that is seen has such an ending, or the two runs do not fit.
    """
    check_each(dict, sender=sender, receiver=receiver, source=source)
    _, seen = look(model, *inputs, **options)
    replace = {name: _taken_over(name, index, source) for name, index in sender.items()}
    heard: dict[str, Array] = {}
    for name in _held_names(seen, hold):
        replace[name] = partial(_hold, name, seen[name], replace.get(name, lambda array: array), heard)
    _, on_the_way = look(model, *inputs, replace=replace, **options)
    return patch(model, *inputs, places=receiver, source=on_the_way | heard, **options)


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
    _check_known(rows=rows, labels=labels)
    refuse(rows, ~jnp.isfinite(rows), "rows", "finite numbers.")
    if not rows.shape[-1]:
        raise ValueError(f"rows has shape {rows.shape}; expected at least one column.")
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
    _check_known(kinds=kinds)
    refuse(kinds, kinds < 0, "kinds", "whole numbers from 0 on, since each is the place of a label.")
    if not len(kinds):
        raise ValueError("kinds is empty; expected a number for each of at least one example.")
    drawn = np.random.default_rng(seed).integers(num_labels, size=int(kinds.max()) + 1)
    return jnp.asarray(drawn[np.asarray(kinds)])


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

    def condition_on(self, *sources, **options) -> "_Changed":
        return _Changed(self.model.condition_on(*sources, **options), self.change)

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
    there = as_numbers(f"source[{name!r}]", source[name])

    def taken_over(array: Array) -> Array:
        place = place_in(name, index, array.shape)
        if there.ndim > array.ndim or there.shape != array.shape[array.ndim - there.ndim :]:
            axes = axes_of_one(name)
            same = "as many texts" if there.shape[-axes:] == array.shape[-axes:] else "inputs of the same length"
            raise ValueError(
                f"{name} has shape {there.shape} in source and {array.shape} here; expected two runs on {same}. "
                "Try as many texts of as many tokens, or what mean_run returns of such texts."
            )
        return array.at[place].set(jnp.broadcast_to(there, array.shape)[place].astype(array.dtype))

    return taken_over


def _moved(name: str, index, by: Array) -> Callable[[Array], Array]:
    """A function that adds something to what stands at these places of an array, once where one is named twice."""

    def moved(array: Array) -> Array:
        place = place_in(name, index, array.shape)
        there = array[place]
        if not by.ndim or by.shape != there.shape[max(there.ndim - by.ndim, 0) :]:
            raise ValueError(
                f"direction has shape {by.shape}, and {name} has {there.shape} at its place; expected the same last "
                "axes. Try a row of the stream, such as seen[name][3]."
            )
        return array.at[place].set(there + by.astype(array.dtype))

    return moved


def _hold(name: str, before: Array, move: Callable[[Array], Array], heard: dict[str, Array], array: Array) -> Array:
    """Return what an array was before, moved where it is a sender; what it would be now is taken down."""
    heard[name] = move(array)
    return move(before)


def _held_names(seen: dict[str, Array], hold: str | Collection[str]) -> list[str]:
    """The names that end so, with those of the gates that heads are multiplied by."""
    endings = (hold,) if isinstance(hold, str) else hold
    if not isinstance(endings, Collection) or not all(isinstance(each, str) for each in endings):
        raise TypeError(f"hold is {hold!r}; expected endings of names, such as {list(OF_SUBLAYERS)}.")
    for ending in endings:
        if not any(name.endswith(ending) for name in seen):
            known = list(dict.fromkeys(".".join(name.split(".")[-2:]) for name in seen))
            close = difflib.get_close_matches(ending, known, n=3) or known[:3]
            raise ValueError(f"hold has {ending!r}, and no name that was seen ends so; expected such as {close}.")
    held = [name for name in seen if name.endswith(tuple(endings))]
    gates = [f"{name.removesuffix('heads')}gate" for name in held]
    return list(dict.fromkeys([*held, *(gate for gate in gates if gate in seen)]))


def _check_known(**arrays: Array) -> None:
    """Raise `TypeError` if an array is traced, where its numbers are asked for."""
    for name, array in arrays.items():
        if isinstance(array, jax.core.Tracer):
            raise TypeError(f"{name} is traced, so that it has no value yet; expected an array: call it without jit.")


def _pairs(heads) -> list[tuple[int, int]]:
    """Block and head of each as Python's numbers; raise `ValueError` if they are others than whole ones."""
    are_pairs = isinstance(heads, Sequence) and all(isinstance(each, Sequence) and len(each) == 2 for each in heads)
    if not are_pairs or not all(
        type(number) is int or isinstance(number, np.integer) for each in heads for number in each
    ):
        raise ValueError(f"heads is {heads!r}; expected block and head of each, such as [(2, 4), (3, 6)].")
    return [(int(block), int(head)) for block, head in heads]


def _sizes_of(seen: dict[str, Array], stack: str, attention: str, part: str) -> str:
    """Which blocks show this part, and how many heads they have, for a message."""
    found = [name for name in seen if name.startswith(stack) and name.endswith(f"{attention}{part}")]
    blocks = sorted(int(name.removeprefix(stack).split(".")[0]) for name in found)
    if not found:
        return "none were seen."
    which = f"0 to {blocks[-1]}" if len(blocks) == blocks[-1] + 1 else ", ".join(map(str, blocks))
    heads = seen[f"{stack}{blocks[0]}{attention}heads"].shape[-3]
    return f"expected one of blocks {which}, with heads 0 to {heads - 1}."
