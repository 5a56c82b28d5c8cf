"""What an encoder learns from lines with the names of one thing in many languages, beside counting.

    python tools/models/things_encoder.py

trains it with three seeds, half an hour each on one core, and writes what it found to `build/models`; no weights are
kept.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import things_by_counting as counting
from slips import slips_found, with_slips
from things_lines import BLOCKS, LENGTH, SEEDS, TRAINING, VOCABULARY, lines_at, questions

import plainformer as pf

ROOT = Path(__file__).resolve().parents[2]

MASKING = {"mask_token": VOCABULARY.special["<mask>"], "vocab_size": len(VOCABULARY), "first_ordinary": 3}
FRACTION, NUM_QUESTIONS, NUM_SLIPS = 0.15, 2000, 300
ENCODER = pf.EncoderConfig(vocab_size=len(VOCABULARY), context_len=LENGTH, stack=BLOCKS)


@eqx.filter_jit
def masked(tokens, is_token, seed, step):
    """A batch for `masked_token_loss`."""
    key = jax.random.fold_in(jax.random.key(seed), step)
    corrupted, is_selected = pf.mask_tokens(tokens, is_token, fraction=FRACTION, key=key, **MASKING)
    return corrupted, tokens, is_selected, is_token


def train_encoder(things: dict[str, list[str]], seed: int, training: pf.TrainingConfig = TRAINING):
    """The masked language model after training."""
    lines = lines_at(things, seed)

    def batch_at(step):
        tokens, is_token = lines(step)
        return masked(tokens, is_token, seed, jnp.asarray(step))

    model, _ = pf.fit(
        pf.MaskedLanguageModel(ENCODER, key=jax.random.key(seed)),
        pf.masked_token_loss,
        batch_at,
        training,
        directory=ROOT / "build" / "models" / f"things_encoder_{seed}",
    )
    return model


def surprises(model: pf.MaskedLanguageModel, asked, alone: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """At each question the surprise, in nats, and whether the letter was guessed; `alone` without the other names."""
    texts = [line[name] if alone else ", ".join(line) for line, name, _ in asked]
    places = np.array([n if alone else len(", ".join([*line[:name], ""])) + n for line, name, n in asked])
    tokens, is_token = pf.data.pad_texts([VOCABULARY.encode(text) for text in texts], LENGTH)
    rows = np.arange(len(asked))
    right = np.asarray(tokens)[rows, places]
    hidden = tokens.at[rows, places].set(MASKING["mask_token"])
    read = eqx.filter_jit(lambda ids, is_token: jax.nn.log_softmax(model(ids, is_token)))
    parts = [read(hidden[n : n + 250], is_token[n : n + 250]) for n in range(0, len(rows), 250)]
    log_probs = np.concatenate(parts)[rows, places]
    return -log_probs[rows, right], log_probs.argmax(axis=1) == right


def shown(found) -> str:
    """Mean surprise and share guessed of one way of guessing."""
    nats, is_right = found
    return f"{np.mean(nats):.3f} nats, {np.mean(is_right):.1%}"


def surprise_of(guess: Callable, places) -> np.ndarray:
    """The first of the two things that a way of guessing returns."""
    return guess(places)[0]


def results(models, things, asked) -> list[str]:
    """Rows of the table: the encoders, and what counting finds, on the same lines."""
    wrong = with_slips(asked[:NUM_SLIPS], [name for names in things.training.values() for name in names])
    ngrams, weights = counting.learn(things.training)

    def by_votes(places):
        return counting.surprises(weights, counting.evidence(ngrams, places))

    def by_the_name_alone(places):
        return counting.from_the_name_alone(counting.evidence(ngrams, places))

    guesses: dict[str, Callable] = {
        f"encoder, seed {seed}": partial(surprises, model) for seed, model in enumerate(models)
    }
    guesses |= {"counting, from the name alone": by_the_name_alone, "counting, with a vote": by_votes}
    rows = [
        f"| {name} | {shown(guess(asked))} | {slips_found(partial(surprise_of, guess), wrong):.1%} |"
        for name, guess in guesses.items()
    ]
    return [*rows, f"| encoder, seed 0, the name alone | {shown(surprises(models[0], asked, alone=True))} | |"]


def write() -> None:
    """Train with three seeds, and write the table of what all of them found."""
    things = pf.data.thing_splits()
    models = [train_encoder(things.training, seed) for seed in SEEDS]
    rows = results(models, things, questions(things.test, NUM_QUESTIONS))
    table = f"""One hidden letter in each of {NUM_QUESTIONS:,} lines of things held out, with four names at least: mean
surprise at it, and how often it was guessed. In {NUM_SLIPS} of the names one letter was replaced by a wrong one:
found, if it is the most surprising of its name, each letter given all others.

| | hidden letter | wrong letters found |
|---|---|---|
{chr(10).join(rows)}
"""
    (ROOT / "build" / "models" / "things_encoder.md").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    write()
