"""Batches of examples: sorted by length so that little is padding, drawn at random, shuffled, or in order."""

import functools
from collections.abc import Callable, Iterator, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.checks import Natural, Positive, checked, native
from plainformer.data.lists import check_list


@checked
def length_buckets(examples: Sequence, num_buckets: Positive) -> list[list]:
    """Sort texts, or pairs of texts, by length into buckets, so that each bucket can be padded to a length of its own.

    A pair is as long as its longer text. The buckets are those that leave least padding, short texts first; there are
    fewer than `num_buckets` if fewer lengths occur. Turn each into arrays, with `pad_texts` or `translation_batch`,
    and let `random_batches` draw from them: then only so many shapes occur, and each is compiled once.
    """
    lengths = _lengths(examples)
    order = np.argsort(lengths, kind="stable")
    ends = _bucket_ends(lengths, num_buckets)
    return [[examples[row] for row in order[start:end]] for start, end in zip([0, *ends], ends, strict=False)]


@checked
def random_batches(buckets: Sequence, batch_size: Positive, *, seed: Natural = 0) -> Callable[[int], tuple]:
    """Make the function that draws a batch of examples from one bucket: the same batch for the same step, always.

    A bucket is a tuple of arrays with one row per example; for examples that are all of one shape, pass `[arrays]`.
    A bucket's turn comes as often as it has rows, so that every example is as likely as any other. The function, from
    a step, 0 or more, remembers nothing, so training can resume anywhere.
    """
    parts = _numpy_buckets(buckets)
    sizes = np.array([_num_rows(part) for part in parts])

    @checked
    def batch_at(step: Natural) -> tuple:
        random = np.random.default_rng([seed, step])
        turn = random.choice(len(parts), p=sizes / sizes.sum())
        rows = random.integers(sizes[turn], size=batch_size)
        return jax.tree.map(lambda array: jnp.asarray(array[rows]), parts[turn])

    return batch_at


@checked
def epoch_batches(buckets: Sequence, batch_size: Positive, *, seed: Natural = 0) -> Callable[[int], tuple]:
    """Make the function that gives every example once, in a random order, and then all of them in another.

    Arguments as for `random_batches`; this function, too, gives the same batch for the same step. One time through, an
    epoch, has as many steps as `consecutive_batches` has batches, and the last batch of a bucket is as small there.

    Example:
        Five examples are two steps, and each comes once in them.

        >>> batch_at = pf.data.epoch_batches([(jnp.arange(5),)], batch_size=3)
        >>> sorted(jnp.concatenate([batch_at(0)[0], batch_at(1)[0]]).tolist())
        [0, 1, 2, 3, 4]
    """
    parts = _numpy_buckets(buckets)
    places = [(turn, start) for turn, part in enumerate(parts) for start in range(0, _num_rows(part), batch_size)]

    @functools.lru_cache(maxsize=1)
    def orders_of(epoch: int) -> tuple[list[np.ndarray], np.ndarray]:
        random = np.random.default_rng([seed, epoch])
        return [random.permutation(_num_rows(part)) for part in parts], random.permutation(len(places))

    @checked
    def batch_at(step: Natural) -> tuple:
        epoch, number = divmod(step, len(places))
        rows, order = orders_of(epoch)
        turn, start = places[order[number]]
        chosen = rows[turn][start : start + batch_size]
        return jax.tree.map(lambda array: jnp.asarray(array[chosen]), parts[turn])

    return batch_at


@checked
def consecutive_batches(buckets: Sequence, batch_size: Positive) -> list[tuple]:
    """Cut buckets into batches so that every example is in exactly one; arguments as for `random_batches`.

    The last batch of a bucket is as small as what is left, so that each bucket has two shapes at most. The batches
    are views of the arrays, in NumPy.
    """
    return list(_cut(_numpy_buckets(buckets), batch_size))


def _cut(buckets: list[tuple], batch_size: int) -> Iterator[tuple]:
    for bucket in buckets:
        for start in range(0, _num_rows(bucket), batch_size):
            rows = slice(start, start + batch_size)
            yield jax.tree.map(lambda array, rows=rows: array[rows], bucket)


def _lengths(examples: Sequence) -> np.ndarray:
    """How long each text is, or the longer one of each pair."""
    check_list("examples", examples, "texts, or of pairs of texts")
    if not len(examples):
        raise ValueError("examples is empty; expected at least one text, or pair of texts.")
    return np.array([_length(place, example) for place, example in enumerate(examples)])


def _length(place: int, example) -> int:
    is_pair = (
        isinstance(example, tuple | list) and len(example) > 0 and all(hasattr(text, "__len__") for text in example)
    )
    texts = example if is_pair else [example]
    for text in texts:
        if isinstance(text, str) or not hasattr(text, "__len__"):
            raise TypeError(
                f"examples[{place}] is {example!r}; expected a list of token ids, or a tuple of such lists. "
                "Encode strings first: vocabulary.encode(…)."
            )
    return max(map(len, texts), default=0)


def _bucket_ends(lengths: np.ndarray, num_buckets: int) -> list[int]:
    """Where to cut the sorted lengths, so that all buckets, each padded to its longest, take the least room.

    Dynamic programming: `room[n]` is the least room that the texts of the n shortest lengths take in the buckets made
    so far. One bucket more begins after the first `cut` of these lengths, wherever the sum of both is least.
    """
    kinds, counts = np.unique(lengths, return_counts=True)
    num_texts = np.append(0, np.cumsum(counts))
    room, cuts = np.append(0, np.full(len(kinds), np.inf)), []
    for _ in range(min(num_buckets, len(kinds))):
        options = [room[:n] + (num_texts[n] - num_texts[:n]) * kinds[n - 1] for n in range(1, len(kinds) + 1)]
        cuts.append([0, *(int(option.argmin()) for option in options)])
        room = np.append(np.inf, [option.min() for option in options])
    ends, end = [], len(kinds)
    for cut in reversed(cuts):
        ends.append(int(num_texts[end]))
        end = cut[end]
    return ends[::-1]


def _num_rows(bucket: tuple) -> int:
    return len(jax.tree.leaves(bucket)[0])


def _numpy_buckets(buckets: Sequence) -> list[tuple]:
    check_list("buckets", buckets, "tuples of arrays")
    if not len(buckets):
        raise ValueError("buckets is empty; expected at least one tuple of arrays.")
    for place, bucket in enumerate(buckets):
        if not isinstance(bucket, tuple | list):
            what = type(bucket).__name__
            raise TypeError(f"buckets[{place}] is a {what}; expected a tuple of arrays. For one, pass [arrays].")
        rows = {np.shape(array)[:1] for array in jax.tree.leaves(bucket)}
        if len(rows) != 1 or not sum(rows.pop()):
            shapes = [np.shape(array) for array in jax.tree.leaves(bucket)]
            raise ValueError(f"buckets[{place}] has shapes {shapes}; expected as many rows in each, and at least one.")
    return [jax.tree.map(lambda array: native(np.asarray(array)), bucket) for bucket in buckets]
