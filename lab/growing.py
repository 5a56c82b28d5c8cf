"""The machine of the first chapters as it grows, the stories that it learns from, and how it is judged.

Every row of the staircase learns from stories of the little world, and is judged on stories kept back by its nats per
word above the lowest loss possible.
"""

import dataclasses
from collections.abc import Callable
from functools import cache
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD
from plainformer.data.little_world import WORLD_WORDS

KEPT = BUILD / "staircase"
VOCABULARY = pf.Vocabulary(WORLD_WORDS, separator=" ")
WORDS, LENGTH, BATCH_SIZE, SEEDS = len(WORLD_WORDS), 128, 32, (0, 1, 2)
NUM_STORIES, NUM_KEPT_BACK = 20_000, 400
NUM_COUNTED = 1000  # stories in which words and pairs are counted


class Average(eqx.Module):
    """The mean of all tokens that the mask allows, sent through a matrix."""

    value: pf.Linear

    def __call__(self, x, mask):
        return self.value(pf.softmax(jnp.zeros(mask.shape), mask) @ x)  # equal scores, equal weights


Mix = Average | pf.SelfAttention | pf.MultiHeadAttention


class Machine(eqx.Module):
    """Tokens, something that adds to each what it finds in those before, and a read-out: no blocks yet."""

    embedding: pf.TokenEmbedding
    mix: Mix
    readout: pf.Linear

    def __init__(self, mix: Mix, vocab_size: int, d_model: int, *, key):
        table_key, readout_key = jax.random.split(key)
        self.embedding = pf.TokenEmbedding(vocab_size, d_model, key=table_key)
        self.mix, self.readout = mix, pf.Linear(d_model, vocab_size, use_bias=False, key=readout_key)

    def __call__(self, ids, *, key=None):
        x = self.embedding(ids)
        return self.readout(x + self.mix(x, pf.causal_mask(ids.shape[-1])))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """What a row of the staircase is made of, and how it learns."""

    d_model: int = 64
    num_heads: int = 8
    num_layers: int = 0  # without blocks there are heads alone; without heads, an average
    without: tuple[Literal["network", "tying"], ...] = ()  # what a block, or its read-out, does not have yet
    scheme: Literal["none", "alibi", "rotary", "relative", "learned", "sinusoidal"] = "none"
    num_steps: int = 1000
    learning_rate: float = 0.001


ROWS = {
    "average": Row(num_heads=0, learning_rate=0.01, num_steps=4000),
    "head": Row(num_heads=1, learning_rate=0.03, num_steps=4000),
    "heads": Row(learning_rate=0.03),
    "block": Row(num_layers=1, learning_rate=0.01),
    "stack": Row(num_layers=4, learning_rate=0.003),
    "positions": Row(num_layers=4, scheme="alibi", learning_rate=0.003),
    "decoder": Row(num_layers=4, scheme="alibi", learning_rate=0.003, num_steps=4000),
}
# From eight heads to a block, a part at a time.
PARTS = {
    "norms": Row(num_layers=1, without=("network", "tying"), learning_rate=0.01),
    "tying": Row(num_layers=1, without=("network",), learning_rate=0.03),
}


def without_network(model: pf.Decoder) -> pf.Decoder:
    """The same, whose one block has heads alone."""
    nothing = (eqx.nn.Identity(), eqx.nn.Lambda(jnp.zeros_like))

    def network(model):
        block = model.stack.blocks[0]
        return block.feed_forward_norm, block.feed_forward

    return eqx.tree_at(network, model, nothing)


def make(row: Row, seed: int, vocab_size: int = WORDS):
    """The machine of a row, untrained."""
    key, mix_key = jax.random.split(jax.random.key(seed))
    if row.num_layers:
        stack = pf.StackConfig(
            d_model=row.d_model,
            num_layers=row.num_layers,
            num_heads=row.num_heads,
            norm="rms",
            position_scheme=row.scheme,
            use_bias=False,
        )
        tied = "tying" not in row.without
        model = pf.Decoder(pf.DecoderConfig(vocab_size, LENGTH + 1, stack=stack, tied_embedding=tied), key=key)
        return without_network(model) if "network" in row.without else model
    if row.num_heads > 1:
        mix: Mix = pf.MultiHeadAttention(row.d_model, row.num_heads, key=mix_key)
    elif row.num_heads == 1:
        mix = pf.SelfAttention(row.d_model, row.d_model, key=mix_key)
    else:
        mix = Average(pf.Linear(row.d_model, row.d_model, use_bias=False, key=mix_key))
    return Machine(mix, vocab_size, row.d_model, key=key)


def encoded(told: list[str]) -> np.ndarray:
    """Stories as ids, a row for each."""
    return np.array([VOCABULARY.encode(story) for story in told], np.int32)


@cache
def stories_of(seed: int) -> np.ndarray:
    """Stories to learn from, others for each seed; kept as a file, since telling them takes a minute."""
    file = KEPT / f"stories-{seed}.npy"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, encoded(pf.data.stories(NUM_STORIES, LENGTH + 1, seed=seed)))
    return np.load(file)


@dataclasses.dataclass(frozen=True)
class KeptBack:
    """Stories that no row has learned from: their ids, and of each word its least surprise and its kind."""

    ids: np.ndarray
    least: np.ndarray
    kinds: np.ndarray


@cache
def kept_back() -> KeptBack:
    """The stories that all rows are judged on."""
    told = pf.data.stories(NUM_KEPT_BACK, LENGTH + 1, seed=1000)
    least = np.array([pf.data.word_surprises(story) for story in told])
    return KeptBack(encoded(told), least, np.array([pf.data.word_kinds(story) for story in told]))


@eqx.filter_jit
def log_probabilities(model, ids):
    """The logarithm of what a model gives to each word that may come next."""
    return jax.nn.log_softmax(model(ids))


def expected_by(model) -> np.ndarray:
    """What a model gives to each word, at every place of every story kept back."""
    batches = np.split(kept_back().ids[:, :-1], NUM_KEPT_BACK // 100)
    return np.concatenate([np.asarray(log_probabilities(model, batch)) for batch in batches])


def judged(expected: np.ndarray) -> dict:
    """Nats per word above the lowest loss; of each kind of word these nats, the share of right answers, the number."""
    stories, following = kept_back(), kept_back().ids[:, 1:]
    above = -np.take_along_axis(expected, following[..., None], axis=2)[..., 0] - stories.least
    right, kinds = expected.argmax(axis=2) == following, {}
    for kind in sorted(set(stories.kinds.ravel())):
        of = stories.kinds == kind
        kinds[kind or "other"] = [round(float(above[of].mean()), 4), round(float(right[of].mean()), 4), int(of.sum())]
    return {"above": round(float(above.mean()), 5), "kinds": kinds}


def batches_of(seed: int) -> Callable[[int], pf.data.Windows]:
    """A function from the number of steps done to the next batch."""
    stories = stories_of(seed)

    def batch_at(step: int) -> pf.data.Windows:
        drawn = stories[np.random.default_rng([seed, step]).integers(len(stories), size=BATCH_SIZE)]
        return pf.data.Windows(jnp.asarray(drawn[:, :-1]), jnp.asarray(drawn[:, 1:]))

    return batch_at


def training_of(row: Row, seed: int) -> pf.TrainingConfig:
    """How a row learns."""
    return pf.TrainingConfig(
        num_steps=row.num_steps,
        learning_rate=row.learning_rate,
        warmup_steps=100,
        weight_decay=0.1,
        seed=seed,
    )


def trained(row: Row, seed: int):
    """The machine of a row after its training, its numbers rounded to 16 bits, as they are stored.

    What was stopped half-way goes on from a checkpoint under `build`; what was finished is read from there.
    """
    name = "-".join(str(value) for value in dataclasses.astuple(row))
    loss, where = pf.training.next_token_loss, KEPT / f"{name}-{seed}"
    model, _ = pf.fit(make(row, seed), loss, batches_of(seed), training_of(row, seed), directory=where, progress=False)
    return jax.tree.map(lambda w: w.astype(jnp.float16).astype(w.dtype) if eqx.is_array(w) else w, model)


def stored(row: str, seed: int):
    """The machine of a row as it is stored beside the record of the staircase."""
    start = f"{row}.{seed}."
    arrays = {
        name.removeprefix(start): w for name, w in pf.data.load_weights("machines").items() if name.startswith(start)
    }
    return pf.training.with_arrays(eqx.filter_eval_shape(make, ROWS[row], 0), arrays)


@cache
def counted_stories(seed: int) -> np.ndarray:
    """The stories of a seed in which words and pairs are counted."""
    return encoded(pf.data.stories(NUM_COUNTED, LENGTH + 1, seed=seed))


def counted_words(seed: int) -> np.ndarray:
    """The logarithm of the share of each word, the same row after every word."""
    counts = np.bincount(counted_stories(seed)[:, 1:].ravel(), minlength=WORDS)
    return np.tile(np.log(counts / counts.sum()), (WORDS, 1))


def counted_pairs(seed: int) -> np.ndarray:
    """The same after each word; a pair that was never seen counts a hundredth."""
    counts = np.full((WORDS, WORDS), 0.01)
    np.add.at(counts, (counted_stories(seed)[:, :-1], counted_stories(seed)[:, 1:]), 1)
    return np.log(counts / counts.sum(axis=1, keepdims=True))


def expected_by_table(table: np.ndarray) -> np.ndarray:
    """What a row of logits for each word says, at every place of every story kept back."""
    return table[kept_back().ids[:, :-1]]
