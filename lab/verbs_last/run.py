"""Tune the teller of stories to another order of words, wholly, in parts and by adapters, beside a fresh decoder.

No weights are kept: `record.json` holds what came out, and the chapter on fine-tuning reads it.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.growing import VOCABULARY
from lab.records import BUILD, ends, kept
from lab.verbs_last import memory

NEEDS = ("staircase",)
KEPT = BUILD / "verbs_last"
LENGTH, BATCH_SIZE, NUM_STEPS, NUM_STORIES, NUM_KEPT_BACK, SEEDS = 64, 8, 200, 200, 200, (0, 1, 2)
LONGEST_SENTENCE = 12
RATES = {
    "whole": (0.0003, 0.001, 0.003),
    "last block": (0.003, 0.01, 0.03),
    "table": (0.01, 0.03, 0.1),
    "fresh": (0.001, 0.003, 0.01),
    "rank 8": (0.001, 0.003, 0.01),
    "rank 4": (0.001, 0.003, 0.01),
    "rank 2": (0.003, 0.01, 0.03),
    "rank 1": (0.003, 0.01, 0.03),
    "rank 8, queries and values": (0.01, 0.03, 0.1),
}
ANEW: tuple[Literal["nothing", "blocks"], ...] = (
    "nothing",
    "blocks",
)  # what a step of adapters computes anew to save memory
OTHER_NAMES = {"Anna": "kitchen", "Ben": "lamp", "Clara": "box", "garden": "Anna", "kitchen": "Ben", "hall": "Clara"}
OTHER_NAMES |= {"cellar": "ball", "lamp": "garden", "ball": "hall", "box": "cellar"}


def renamed(story: str) -> str:
    """A story in which other words name the people, rooms and things."""
    return " ".join(OTHER_NAMES.get(word, word) for word in story.split(" "))


LANGUAGES: dict[str, Callable[[str], str]] = {"verbs last": pf.data.verbs_last, "renamed": renamed, "old": str}


@cache
def texts(language: str, num_stories: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Stories as ids; which of their words stand in a whole sentence; the lowest loss on those, in nats per word."""
    rows, ends, least = [], [], 0.0
    for story in pf.data.stories(num_stories, LENGTH + 1 + LONGEST_SENTENCE, seed=seed):
        words = LANGUAGES[language](story).split(" ")[: LENGTH + 1]
        end = len(words) - words[::-1].index(".")  # of whole sentences, in either order
        least += pf.data.word_surprises(" ".join(story.split(" ")[:end])).sum()
        rows.append(VOCABULARY.encode(" ".join(words)))
        ends.append(end)
    whole = np.arange(LENGTH + 1) < np.array(ends)[:, None]
    return np.array(rows, np.int32), whole, float(least / whole[:, 1:].sum())


def above(model, language: str) -> float:
    """Nats per word above the lowest loss, on stories kept back."""
    ids, whole, least = texts(language, NUM_KEPT_BACK, 1000)
    windows = pf.data.PaddedWindows(jnp.asarray(ids[:, :-1]), jnp.asarray(ids[:, 1:]), jnp.asarray(whole[:, 1:]))
    return round(float(jax.jit(lambda windows: pf.training.next_token_loss(model, windows))(windows)) - least, 4)


def right(model, language: str) -> float:
    """The share of questions, in stories kept back, whose answer the model finds likeliest."""
    ids, whole, _ = texts(language, NUM_KEPT_BACK, 1000)
    likeliest = np.asarray(jax.jit(lambda ids: model(ids).argmax(axis=-1))(ids[:, :-1]))
    asked = (ids[:, :-1] == VOCABULARY.encode("?")[0]) & whole[:, 1:]
    return round(float((likeliest == ids[:, 1:])[asked].mean()), 4)


def prepared(method: str, seed: int):
    """The model before it learns, and which of its arrays will."""
    key = jax.random.key(seed)
    stored, _ = pf.load_pretrained("stories")
    if method == "fresh":
        return pf.Decoder(stored.config, key=key), None
    if method.startswith("rank"):
        rank, _, where = method.removeprefix("rank ").partition(", ")
        chosen: dict[str, Any] = {} if where else {"where": lambda place: place.startswith("stack.")}
        return pf.models.add_adapters(stored, int(rank), key=key, **chosen), pf.models.is_adapter
    if method == "table":
        return stored, lambda place: place == "embedding.weight"
    if method == "last block":
        return stored, lambda place: place.startswith(f"stack.blocks.{stored.config.stack.num_layers - 1}.")
    return stored, None


def judged_after(method: str, rate: float, seed: int, times: int, num_stories: int, language: str) -> dict:
    """What a model gives to stories kept back after its training, in the new language and in the old."""
    model, trainable = prepared(method, seed)
    ids, _, _ = texts(language, num_stories, 10 + seed)

    def batch_at(step: int) -> pf.data.Windows:
        drawn = ids[np.random.default_rng([seed, step]).integers(len(ids), size=BATCH_SIZE)]
        return pf.data.Windows(jnp.asarray(drawn[:, :-1]), jnp.asarray(drawn[:, 1:]))

    training = pf.TrainingConfig(num_steps=NUM_STEPS * times, learning_rate=rate, warmup_steps=20, seed=seed)
    loss = pf.training.next_token_loss
    found, _ = pf.fit(model, loss, batch_at, training, trainable=trainable, progress=False)
    arrays = pf.training.named_arrays(model)
    trained = sum(array.size for name, array in arrays.items() if trainable is None or trainable(name))
    return {
        "above": above(found, language),
        "right": right(found, language),
        "old": above(found, "old"),
        "trained": int(trained),
    }


def result(method: str, rate: float, seed: int, times=1, num_stories=NUM_STORIES, language="verbs last") -> dict:
    """The same, kept under `build`."""
    settings = (method, rate, seed, times, num_stories, language)
    name = "-".join(map(str, settings)).replace(" ", "_")
    return kept(KEPT / f"{name}.json", partial(judged_after, *settings)) | {"rate": rate}


@cache
def best(method: str, language: str = "verbs last") -> float:
    """The rate that serves a method best, with the first seed."""
    return min(RATES[method], key=lambda rate: result(method, rate, 0, language=language)["above"])


def results() -> dict:
    """All methods at their best rates, and the knobs."""
    stored, _ = pf.load_pretrained("stories")
    rows = {method: [result(method, best(method), seed) for seed in SEEDS] for method in RATES}
    rates = {method: {f"{rate:g}": result(method, rate, 0)["above"] for rate in RATES[method]} for method in RATES}
    short = ("whole", "table", "fresh", "rank 8")
    knobs = {
        "5 times the steps": {each: result(each, best(each), 0, times=5) for each in ("whole", "fresh", "rank 8")},
        "5 times the stories": {each: result(each, best(each), 0, num_stories=1000) for each in short},
        "other names": {each: result(each, best(each, "renamed"), 0, language="renamed") for each in short},
    }
    untuned = {language: above(stored, language) for language in LANGUAGES}
    least = round(texts("verbs last", NUM_KEPT_BACK, 1000)[2], 4)
    found = {"untuned": untuned, "least": least, "methods": rows, "rates": rates, "knobs": knobs}
    taken = {anew: kept(KEPT / f"memory-{anew}.json", partial(memory.beside_weights, anew)) for anew in ANEW}
    return found | {"memory": taken}


def spread(numbers: list[float]) -> str:
    """The mean of three seeds, with the least and the largest."""
    return f"{np.mean(numbers):.3f} ({min(numbers):.3f} to {max(numbers):.3f})"


def facts(found: dict) -> dict[str, str]:
    """Where the tuned tellers are on stories in the old order, by the seeds' means; what a step of adapters takes."""
    tuned = [runs for method, runs in found["methods"].items() if method != "fresh"]
    old = ends("tuned.old", [float(np.mean([run["old"] for run in runs])) for runs in tuned], ".1f")
    return old | {f"memory.{anew}": f"{taken:.1f}" for anew, taken in found["memory"].items()}


def card(found: dict) -> str:
    """What was done, and what came out."""
    rows = "\n".join(
        f"| {method} | {each[0]['trained']:,} | {each[0]['rate']:g} | {spread([seed['above'] for seed in each])} "
        f"| {100 * np.mean([seed['right'] for seed in each]):.0f} % | {spread([seed['old'] for seed in each])} |"
        for method, each in found["methods"].items()
    )
    knobs = "\n".join(
        f"| {knob} | " + ", ".join(f"{method} {each['above']:.3f}" for method, each in of.items()) + " |"
        for knob, of in found["knobs"].items()
    )
    return f"""# A teller of stories learns to say the verb last

The decoder of stories (`lab/staircase`), tuned to stories in which each sentence ends in its verb. No weights are kept:
the numbers stand in `record.json`. Settings: `lab/verbs_last/run.py`; `make models ONLY=verbs_last`
trains all again.

- **Data.** {NUM_STORIES} stories of {LENGTH + 1} words, others for each seed; {NUM_KEPT_BACK} are kept back. A sentence
  is as likely as in the old order, so the lowest loss possible is that of the old order, {found["least"]:.3f} nats per
  word of whole sentences. Untuned the decoder is {found["untuned"]["verbs last"]:.3f} nats above it; on the old order
  {found["untuned"]["old"]:.3f}.
- **Training.** {NUM_STEPS} steps of {BATCH_SIZE} stories, AdamW, each method at the best of three learning rates by
  seed 0; adapters have the scale 2, in all matrices of the blocks, or where it is said in those of queries and values.
  Seeds {", ".join(map(str, SEEDS))}.
- **Result.** Nats per word above the lowest loss in the new order, the share of questions whose answer the model finds
  likeliest there, and nats above the lowest in the old order:

| what is trained | numbers | rate | new order | answers right | old order |
|---|---|---|---|---|---|
{rows}

- **Knobs turned.** Seed 0, nats above the lowest in the new language; with other names for people, rooms and things, in
  the old order of words, each method at the best of its rates there.

| knob | result |
|---|---|
{knobs}

- **Memory.** A step on {memory.NUM_TEXTS} texts of {memory.NUM_TOKENS} tokens with adapters of rank {memory.RANK} at
  every matrix of the blocks of {memory.MODEL} takes, beside its weights, {found["memory"]["nothing"]:.2f} GB, and
  {found["memory"]["blocks"]:.2f} if blocks are computed anew for gradients, as the compiler plans it for a processor.
- **Limits.** One decoder of 199,744 numbers, whose world has forty words; the new language says the same things.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
