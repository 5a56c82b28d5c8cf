"""What the teller writes, what that is worth to listeners, and how it learns from them."""

from collections.abc import Callable
from functools import cache

import equinox as eqx
import jax
import numpy as np

import plainformer as pf
from lab.growing import VOCABULARY
from lab.records import BUILD

KEPT = BUILD / "preferring"
NUM_STEPS, BATCH_SIZE, SEEDS, RATES = 150, 8, (0, 1, 2), (0.0001, 0.0003, 0.001)
NUM_KEPT_BACK, PROMPT, NUM_WRITTEN = 400, 14, 24
KEPT_BACK = 90  # the seed of pairs that no training sees
ANNA = VOCABULARY.encode("Anna")[0]
Texts = list[list[int]]


@cache
def prompts(seed: int, number: int) -> Texts:
    """Beginnings of stories: whole sentences, of at most `PROMPT` words."""
    told = pf.data.stories(number, PROMPT, seed=seed)
    return [VOCABULARY.encode(story[: story.rindex(".") + 1]) for story in told]


def written(model, begun: Texts, key: int) -> Texts:
    """How a model goes on, drawn at temperature 1."""
    found = []
    for part in range(0, len(begun), 400):  # a few hundred at once
        found += pf.generate(model, begun[part : part + 400], NUM_WRITTEN, key=jax.random.key(key + part))
    return [each.tokens for each in found]


def rewards(texts: Texts) -> np.ndarray:
    """How often Anna is named."""
    return np.array([text.count(ANNA) for text in texts], float)


def possible(begun: Texts, texts: Texts) -> np.ndarray:
    """Of each text, whether all that was written can happen where it stands, a sentence that was cut off included."""
    found = []
    for prompt, text in zip(begun, texts, strict=True):
        story = pf.data.possible_sentences(VOCABULARY.decode([*prompt, *text]))
        found.append(all(is_possible for _, is_possible in story))
    return np.array(found, float)


def learned(loss: Callable, examples, rate: float, seed: int, num_steps: int = NUM_STEPS, size: int = BATCH_SIZE):
    """The teller after a training on examples that are drawn again and again."""
    stored, _ = pf.load_pretrained("stories")
    number = len(jax.tree.leaves(examples)[0])

    def batch_at(step: int):
        drawn = np.random.default_rng([seed, step]).integers(number, size=size)
        return jax.tree.map(lambda array: array[drawn], examples)

    training = pf.TrainingConfig(num_steps=num_steps, learning_rate=rate, warmup_steps=20, weight_decay=0, seed=seed)
    return pf.fit(stored, loss, batch_at, training, progress=False).model


def loss_on(loss: Callable, model, examples) -> float:
    """The loss of a model on examples that it did not learn from."""
    return float(eqx.filter_jit(loss)(model, examples, jax.random.key(0)))


def judged(model, number: int = NUM_KEPT_BACK) -> dict:
    """Reward, leash and share of possible texts, and the first three texts as they came."""
    stored, _ = pf.load_pretrained("stories")
    begun = prompts(1000, number)
    texts = written(model, begun, 7)
    windows = pf.models.continuation_windows(begun, texts, PROMPT + NUM_WRITTEN)
    nats = float(eqx.filter_jit(pf.models.leash)(model, stored, windows))
    return {
        "reward": round(float(rewards(texts).mean()), 3),
        "leash": round(nats, 3),
        "possible": round(float(possible(begun, texts).mean()), 4),
        "texts": [VOCABULARY.decode(text) for text in texts[:3]],
    }
