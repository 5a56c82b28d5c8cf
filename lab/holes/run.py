"""Measure what two stored encoders make of one hidden letter, and write it with a card.

`make models` runs it, after the training. `record.json` holds the numbers.
"""

import equinox as eqx
import numpy as np

import plainformer as pf
from lab.encoder import run as encoder_run
from lab.encoder_lines.run import one_letter_of_each
from lab.things_lines import LENGTH, as_text, questions

NEEDS = ("encoder", "things_encoder")
EVERY, NUM_LINES = 4, 1000  # of the names every fourth; lines of names of one thing

Lines = list[tuple[str, int]]


def asked_of_names(splits) -> list:
    """One letter of every fourth name of the test."""
    return one_letter_of_each(splits.test)[::EVERY]


def of_names(splits, number: int | None = None) -> dict[str, list[float]]:
    """The surprise at one letter of each name, by the encoder and by counting."""
    asked, (stored, _) = asked_of_names(splits)[:number], pf.load_pretrained("encoder")
    found = {
        "encoder": encoder_run.surprise_by_encoder(stored, asked),
        "5-gram": encoder_run.surprise_by_counting(splits.training, asked),
    }
    return {name: [round(float(nats), 3) for nats in each] for name, each in found.items()}


def same_letter_elsewhere(lines: Lines) -> np.ndarray:
    """Per line, where in other names the letter of its place stands."""
    same = np.zeros((len(lines), LENGTH), bool)
    for row, (text, place) in enumerate(lines):
        name = np.cumsum([letter == "," for letter in text])
        same[row, : len(text)] = (np.array([*text]) == text[place]) & (name != name[place])
    return same


def weights_at_the_holes(model, alphabet, lines: Lines) -> np.ndarray:
    """Per line, what every head of every block reads where the letter is hidden."""
    ids, is_token = map(np.array, pf.data.pad_texts([alphabet.encode(text) for text, _ in lines], LENGTH))
    rows, places = np.arange(len(lines)), np.array([place for _, place in lines])
    ids[rows, places] = alphabet.special["<mask>"]
    return np.asarray(eqx.filter_jit(model.attention_weights)(ids, is_token))[rows, :, :, places]


def of_things(things, number: int = NUM_LINES) -> dict:
    """The head that looks most, on lines of training, at the hidden letter in other names; and how much on others."""
    model, alphabet = pf.load_pretrained("things_encoder")
    learnt, asked = ([as_text(*each) for each in questions(part, number)] for part in things)
    same = same_letter_elsewhere(learnt)
    looks = (weights_at_the_holes(model, alphabet, learnt) * same[:, None, None]).sum(axis=3)
    looks = looks[same.any(axis=1)].mean(axis=0)
    layer, head = np.unravel_index(looks.argmax(), looks.shape)
    same = same_letter_elsewhere(asked)
    there = same.any(axis=1)
    weights = weights_at_the_holes(model, alphabet, asked)[there, layer, head]
    lengths = np.array([len(text) for text, _ in asked])[there]
    return {
        "layer": int(layer),
        "head": int(head),
        "lines": int(there.sum()),
        "weight": round(float((weights * same[there]).sum(axis=1).mean()), 3),
        "even": round(float((same[there].sum(axis=1) / lengths).mean()), 3),
    }


def facts(found: dict) -> dict[str, str]:
    """What chapters say: about how many names was asked, and what the head reads of the hidden letter in others."""
    return {"names": f"{len(found['names']['encoder'])}", "weight": f"{found['things']['weight']:.2f}"}


def card(found: dict) -> str:
    """What was measured."""
    names, things = found["names"], found["things"]
    return f"""# What two encoders make of one hidden letter

Measured of two stored models, `encoder` and `things_encoder`, by `lab/holes/run.py`, which `make models`
runs; the numbers stand in `record.json`.

- **Names.** One letter of each of {len(names["encoder"])} names, every fourth of the test of
  `plainformer.data.name_splits()`, is hidden. `encoder` has a mean surprise of {np.mean(names["encoder"]):.2f} nats, a
  5-gram model of whole names, counted on what the encoder learned from, {np.mean(names["5-gram"]):.2f}.
- **Names of one thing.** Of {NUM_LINES:,} lines with names of things held out of `plainformer.data.thing_splits()`,
  each with one letter hidden, {things["lines"]} have this letter in another name, too. There head
  {things["head"] + 1} of block {things["layer"] + 1} of `things_encoder` has {things["weight"]:.2f} of its weight;
  spread evenly it would be {things["even"]:.2f}. The head is the one that looks most at such places in
  {NUM_LINES:,} lines of training.
- **Limits.** One seed of each model, one draw of letters. Other versions of Babel have other names.
- **Licence.** The numbers are under Apache-2.0, as the code; the names are of the CLDR, through Babel.
"""


def results() -> dict:
    """What the encoders of names and of things make of a hidden letter."""
    return {"names": of_names(pf.data.name_splits()), "things": of_things(pf.data.thing_splits())}
