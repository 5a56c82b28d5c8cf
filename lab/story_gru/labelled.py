"""Readers of stories that learn from labels, too: a story is impossible if one of its words is doubted too much.

The doubt about a word is by how much the likeliest one would have been likelier, in nats. Labels first say how large
the largest doubt of a possible story may be, by logistic regression; then all weights of the reader are tuned so that
its largest doubts tell possible stories from impossible ones.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer
from sklearn.linear_model import LogisticRegression

from lab import growing
from lab.fine_tuning.run import tuned
from lab.story_labels.run import CHOOSING_SEED, NUM_STEPS, Stories, accuracy, batches_of, judged, learning, rows_of

NUM_LABELS = 2000  # of either kind
RATES = (1e-5, 1e-4, 1e-3)


def as_read(stories: Stories) -> Stories:
    """The stories in the ids of the readers; what is padded is a full stop."""
    length = stories.ids.shape[1]
    texts = [text + " ." * (length - len(text.split())) for text in stories.texts]
    return stories._replace(ids=jnp.asarray(growing.encoded(texts)))


class Doubter(eqx.Module):
    """A model of the next word that calls a story impossible if it doubts one of the words too much."""

    reader: Callable
    slope: Float[Array, ""]
    allowed: Float[Array, ""]  # the largest doubt, in nats, with which a story counts as possible

    def largest_doubt(
        self, ids: Integer[Array, "batch seq"], is_token: Bool[Array, "batch seq"]
    ) -> Float[Array, " batch"]:
        """By how much the likeliest word would have been likelier than the one that stands there, at most; in nats."""
        log_probs = jax.nn.log_softmax(self.reader(ids[:, :-1]))
        given = jnp.take_along_axis(log_probs, ids[:, 1:, None], axis=-1)[..., 0]
        return jnp.where(is_token[:, 1:], log_probs.max(axis=-1) - given, 0).max(axis=-1)

    def __call__(self, ids, is_token, *, key=None) -> Float[Array, "batch 2"]:
        """Logits for impossible and for possible."""
        over = self.slope * (self.largest_doubt(ids, is_token) - self.allowed)
        return jnp.stack([over, -over], axis=-1) / 2


def doubter(reader: Callable, told: Stories) -> Doubter:
    """A reader with the largest doubt that is allowed by the labels of some stories."""
    fresh = Doubter(reader, jnp.asarray(1.0), jnp.asarray(0.0))
    line = LogisticRegression(C=np.inf).fit(rows_of(fresh.largest_doubt, told)[:, None], told.labels)
    slope = -line.coef_.item()
    return Doubter(reader, jnp.asarray(slope), jnp.asarray(line.intercept_.item() / slope))


def compared(readers: Callable[[int], Callable], seeds: tuple[int, ...]) -> dict:
    """Stories judged rightly after all labels, in per cent: by the doubt that is allowed, and after tuning.

    `readers` makes a reader from a seed. The rate is the best on other stories, after labels not used elsewhere.
    """
    num_steps = NUM_STEPS[NUM_LABELS]

    def after(seed: int, reader_seed: int, rate: float | None) -> Doubter:
        told = as_read(learning(seed).first(2 * NUM_LABELS))
        model, data = doubter(readers(reader_seed), told), (told.ids, jnp.asarray(told.labels), told.is_token)
        if rate is None:
            return model
        batches = batches_of(2 * NUM_LABELS, num_steps, seed)
        return tuned(model, data, batches, jnp.asarray(num_steps), jnp.asarray(rate))

    choosing = as_read(judged(CHOOSING_SEED, 1000))
    tried = {rate: accuracy(after(CHOOSING_SEED, seeds[0], rate), choosing) for rate in RATES}
    best = max(RATES, key=lambda rate: tried[rate])
    return {
        "rate": best,
        "tried": {f"{rate:g}": share for rate, share in tried.items()},
        "allowed": [accuracy(after(seed, seed, None), as_read(judged())) for seed in seeds],
        "tuned": [accuracy(after(seed, seed, best), as_read(judged())) for seed in seeds],
    }
