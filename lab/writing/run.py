"""Let stored models write and search; write down what they wrote, and how probable it is, with a card.

Nothing is trained. `record.json` holds the texts, with each model's own surprise.
"""

import dataclasses
import re
import sys
from functools import cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import ends, percent

NEEDS = ("decoder", "shakespeare")
BEGINNINGS, BEAM, KEYS, KEPT = 48, 8, (0, 1, 2), 4  # how many; width of the beam; random keys; texts kept of each
START, LENGTH = 24, 100  # letters of a prompt of the decoder of letters, and letters that it writes
SETTINGS: dict[str, dict] = {
    "greedy": {"temperature": 0},
    **{f"temperature {T:g}": {"temperature": T} for T in (0.5, 0.7, 1.0, 1.3)},
    **{f"top-p {p:g}": {"top_p": p} for p in (0.8, 0.9, 0.95)},
}
SAMPLE = {name: SETTINGS[name] for name in ("greedy", "temperature 0.5", "temperature 1", "top-p 0.9")} | {
    "temperature 1.5": {"temperature": 1.5},
    "top-k 5": {"top_k": 5},
}
LONG, LETTERS = 250, (100, 200, 300, 400, 500)  # tokens of the longer texts, and letters of them that are looked at
PROMPT, SAMPLE_LENGTH, SAMPLE_KEY = "ROMEO:\n", 50, 3


@dataclasses.dataclass(frozen=True)
class Writer:
    """A stored model, both parts of its text, and how many tokens of the second it continues by how many."""

    model: pf.Decoder
    tokenizer: Any
    parts: tuple[str, str]
    start: int
    length: int

    def text(self, ids: list[int]) -> str:
        """The text of ids: ◦ for what a vocabulary does not have."""
        other = getattr(self.tokenizer, "special", {}).get("<other>")
        return "◦".join(self.tokenizer.decode(part) for part in _cut(ids, other))

    def real(self) -> list[list[int]]:
        """What people wrote: pieces of the text's second part, each a beginning and what follows."""
        return windows(self.tokenizer.encode(self.parts[1]), 1, BEGINNINGS, self.start + self.length)

    def beginnings(self) -> list[list[int]]:
        """What is continued."""
        return [text[: self.start] for text in self.real()]

    def ways(self) -> dict:
        """What people wrote after each beginning, what is found, and what is drawn in each way."""
        beginnings = self.beginnings()
        beams = pf.beam_search(self.model, beginnings, self.length, beam_width=BEAM)
        draws = {"people": [[text[self.start :] for text in self.real()]]}
        draws[f"beam of {BEAM}"] = [[beam[0].tokens for beam in beams]]
        for name, choice in SETTINGS.items():
            draws[name] = self.written(beginnings, choice, KEYS[:1] if name == "greedy" else KEYS)
        return {name: self.judged(beginnings, each) for name, each in draws.items()}

    def written(self, beginnings: list[list[int]], choice: dict, keys) -> list[list[list[int]]]:
        """What the model writes after each beginning, for each random key."""
        draws = [pf.generate(self.model, beginnings, self.length, key=jax.random.key(key), **choice) for key in keys]
        return [[text.tokens for text in draw] for draw in draws]

    def judged(self, beginnings, draws) -> dict:
        """Some texts of each key, how surprising each is by letter, what is repeated, and how many words were read."""
        whole = [[beginning + text for beginning, text in zip(beginnings, draw, strict=True)] for draw in draws]
        texts = [[self.text(text) for text in draw] for draw in draws]
        nats = [surprises(self.model, jnp.asarray(draw), self.start) for draw in whole]
        by_letter = [
            [round(float(n) / len(text), 4) for n, text in zip(each, draw, strict=True)]
            for each, draw in zip(nats, texts, strict=True)
        ]
        known = [round(self.known_words(draw), 4) for draw in texts]
        again = [[round(repeated(text), 4) for text in draw] for draw in texts]
        return {
            "texts": [draw[:KEPT] for draw in texts],
            "surprise": by_letter,
            "repeated": again,
            "known words": known,
        }

    def known_words(self, texts: list[str]) -> float:
        """The share of words that stand in the first part; the outer two of each text may be cut, and are left out."""
        words = [word for text in texts for word in re.findall("[A-Za-z]+", text)[1:-1]]
        return float(np.mean([word in words_of(self.parts[0]) for word in words]))


def repeated(text: str, length: int = 12) -> float:
    """The share of the places in a text whose next twelve letters stood in it before."""
    pieces = [text[n : n + length] for n in range(len(text) - length + 1)]
    return 1 - len(set(pieces)) / len(pieces)


def lengths_repeated(writer: Writer) -> dict[str, list[float]]:
    """The mean share repeated in the first 100 letters, the first 200 and so on, of people and of what is written."""
    longer = dataclasses.replace(writer, length=LONG)
    draws = {"people": [text[writer.start :] for text in longer.real()]}
    for name in ("greedy", "temperature 0.5", "temperature 1"):
        draws[name] = longer.written(longer.beginnings(), SETTINGS[name], KEYS[:1])[0]
    texts = {name: [writer.text(text) for text in each] for name, each in draws.items()}
    return {
        name: [round(float(np.mean([repeated(text[:cut]) for text in each])), 4) for cut in LETTERS]
        for name, each in texts.items()
    }


@cache
def words_of(text: str) -> set[str]:
    """All words of a text."""
    return set(re.findall("[A-Za-z]+", text))


def _cut(ids: list[int], other: int | None) -> list[list[int]]:
    """Ids in pieces, cut where one token stood."""
    pieces: list[list[int]] = [[]]
    for each in ids:
        if each == other:
            pieces.append([])
        else:
            pieces[-1].append(each)
    return pieces


@cache
def decoder_of_letters() -> Writer:
    """The decoder of the Python reference."""
    return Writer(*pf.load_pretrained("decoder"), pf.data.python_reference_splits(), START, LENGTH)


@cache
def decoder_of_plays() -> Writer:
    """The decoder of Shakespeare's plays in byte pairs of some two letters."""
    return Writer(*pf.load_pretrained("shakespeare"), pf.data.tiny_shakespeare(), START // 2, LENGTH // 2)


def windows(text: list[int], seed: int, number: int, length: int) -> list[list[int]]:
    """So many pieces of a text, from anywhere."""
    starts = np.random.default_rng(seed).integers(len(text) - length, size=number)
    return [text[start : start + length] for start in starts]


@eqx.filter_jit
def surprises(model, texts, start: int):
    """The model's surprise at what follows the beginning of each text, in nats."""
    log_probs = jax.lax.map(lambda text: pf.generation.sequence_log_probs(model, text), texts)
    return -log_probs[:, start - 1 :].sum(axis=1)


@eqx.filter_jit
def best_pair(model, prompt):
    """The log-probability of the most likely pair of tokens after a prompt, among all pairs, and which it is."""
    size = model.config.vocab_size
    rows, cache = model.extend(prompt[None], model.make_cache(len(prompt) + 1, batch=(1,)))
    cache = tuple(part.select(jnp.zeros(size, int)) for part in cache)  # as many copies as there are first tokens
    after_each, _ = model.extend(jnp.arange(size)[:, None], cache)
    first, second = (jax.nn.log_softmax(model.logits(each[:, -1])) for each in (rows, after_each))
    pairs = first[0][:, None] + second
    return pairs.max(), pairs.argmax()


def searched(writer: Writer, prompts: list[list[int]]) -> dict:
    """How probable a text each search finds after each prompt: two letters, and twelve after the first forty."""
    model, size = writer.model, writer.model.config.vocab_size
    pairs = [best_pair(model, jnp.asarray(prompt)) for prompt in prompts]
    greedy = pf.generate(model, prompts, 12, temperature=0)
    beams = pf.beam_search(model, prompts, 2, beam_width=2), pf.beam_search(model, prompts[:40], 12, beam_width=4)
    found = {
        "best of two": [pair for pair, _ in pairs],
        "greedy, two": [sum(text.log_probs[:2]) for text in greedy],
        "beam of two, two": [beam[0].log_prob for beam in beams[0]],
        "greedy, twelve": [sum(text.log_probs) for text in greedy[:40]],
        "beam of four, twelve": [beam[0].log_prob for beam in beams[1]],
    }
    return {
        "prompts": [writer.text(prompt) for prompt in prompts],
        "best pairs": [writer.text(list(divmod(int(at), size))) for _, at in pairs],
        "greedy pairs": [writer.text(text.tokens[:2]) for text in greedy],
    } | {name: [round(float(log_prob), 4) for log_prob in each] for name, each in found.items()}


def samples(writer: Writer) -> dict:
    """One text for each of some settings, after one prompt, from one random key."""
    prompt, found = writer.tokenizer.encode(PROMPT), {}
    for name, choice in SAMPLE.items():
        (text,) = pf.generate(writer.model, [prompt], SAMPLE_LENGTH, key=jax.random.key(SAMPLE_KEY), **choice)
        written = writer.text(text.tokens)
        found[name] = {"text": written, "surprise": round(-sum(text.log_probs) / len(written), 4)}
    return found


def up_to_a_space(writer: Writer, prompts: list[list[int]]) -> dict[str, float]:
    """How many letters a beam of four finds up to a space, mean of the prompts, by the power of the length."""
    stop, found = writer.tokenizer.encode(" "), {}
    for power in (0.0, 1.0):
        beams = pf.beam_search(writer.model, prompts, 12, beam_width=4, length_power=power, stop_tokens=stop)
        found[f"{power:g}"] = round(float(np.mean([len(beam[0].tokens) for beam in beams])), 2)
    return found


def results() -> dict:
    """All texts, and what was measured of them."""
    plays, letters = decoder_of_plays(), decoder_of_letters()
    prompts = windows(letters.tokenizer.encode(letters.parts[1]), 0, 100, START)
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "beginnings": {"plays": plays.beginnings(), "letters": letters.beginnings()},
        "plays": plays.ways(),
        "letters": letters.ways(),
        "lengths": list(LETTERS),
        "repeated": lengths_repeated(plays),
        "searched": searched(letters, prompts),
        "up to a space": up_to_a_space(letters, prompts[:20]),
        "samples": samples(plays),
    }


def table(found: dict) -> str:
    """A line of the card for each way of writing: means over the keys, and what is spread."""
    head = ["", "plays: nats", "repeated", "known words", "letters: nats", "repeated", "known words"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name in found["plays"]:
        cells = [cell for kind in ("plays", "letters") for cell in line_of(found[kind][name])]
        lines.append(f"| {' | '.join([name, *cells])} |")
    return "\n".join(lines)


def line_of(way: dict) -> list[str]:
    """Surprise by letter with its standard deviation over the keys, the share repeated, and that of known words."""
    means = [np.mean(draw) for draw in way["surprise"]]
    spread = f" ± {np.std(means, ddof=1):.2f}" if len(means) > 1 else ""
    return [
        f"{np.mean(means):.2f}{spread}",
        f"{100 * np.mean(way['repeated']):.1f} %",
        f"{100 * np.mean(way['known words']):.1f} %",
    ]


def long_table(found: dict) -> str:
    """A line of the card for each way: the share repeated in longer and longer texts of plays."""
    lines = [f"| letters | {' | '.join(map(str, found['lengths']))} |", "|---" * (1 + len(found["lengths"])) + "|"]
    for name, shares in found["repeated"].items():
        lines.append(f"| {name} | {' | '.join(f'{100 * share:.1f} %' for share in shares)} |")
    return "\n".join(lines)


def of_searches(found: dict) -> str:
    """What the card says of the short searches."""
    best, greedy, beam = (np.array(found[name]) for name in ("best of two", "greedy, two", "beam of two, two"))
    gain = np.array(found["beam of four, twelve"]) - found["greedy, twelve"]
    return (
        f"greedy search finds the best pair of letters for {np.mean(best - greedy < 1e-3):.0%} of the prompts, a beam "
        f"of two\n  for {np.mean(best - beam < 1e-3):.0%}; of twelve letters a beam of four finds a more probable text "
        f"for {np.mean(gain > 1e-3):.0%}, a less probable one for\n  {np.mean(gain < -1e-3):.0%}."
    )


def facts(found: dict) -> dict[str, str]:
    """What the chapter says of each way: surprise, shares repeated and of unknown words, and how often it beats people.

    Two are of their own: the share repeated in long texts, and how often greedy search finds the best pair.
    """
    texts = {"long.greedy.repeated": percent(found["repeated"]["greedy"][-1], 1)}
    best, greedy = (np.array(found["searched"][name]) for name in ("best of two", "greedy, two"))
    texts["greedy.best_pairs"] = percent(np.mean(best - greedy < 1e-3))
    for kind in ("plays", "letters"):
        (people,) = found[kind]["people"]["surprise"]
        for name, way in found[kind].items():
            place = f"{kind}.{name}"
            texts[f"{place}.surprise"] = f"{np.mean(way['surprise']):.2f}"
            texts[f"{place}.repeated"] = percent(np.mean(way["repeated"]), 1)
            texts[f"{place}.unknown"] = percent(1 - np.mean(way["known words"]), 1)
            texts |= ends(f"{place}.beats", np.sum(np.less(way["surprise"], people), axis=1), "d")
    return texts


def card(found: dict) -> str:
    """What was done, and what came out."""
    lengths = found["up to a space"]
    return f"""# What stored decoders write, by each search

Texts that two stored decoders wrote or found after beginnings of real text, and how surprising they are. Nothing was
trained. All stand in `record.json`.

- **Models.** *Plays*: `shakespeare.safetensors`, on Shakespeare's plays in byte pairs. *Letters*:
  `decoder.safetensors`, on the Python reference. Each judges itself.
- **Beginnings.** {BEGINNINGS} pieces of text that the model has not learned from, of {START // 2} tokens or {START}
  letters, with the {LENGTH // 2} tokens or {LENGTH} letters that follow ("people"); places drawn by `default_rng(1)`.
  The reference is that of Python {found["python"]}.
- **Ways.** Greedy search; a beam of {BEAM}; drawn at temperatures 0.5, 0.7, 1 and 1.3, and at temperature 1 with top-p
  0.8, 0.9 and 0.95, each with random keys 0, 1 and 2.
- **Measures.** Mean surprise of the model by letter, in nats; the share of the places in a text whose next twelve
  letters stood in it before; the share of words, but for the outer two of a text, that stand in the part to learn from.
- **Result.** Means, with standard deviations over the keys:

{table(found)}

- **Knobs turned.** Length: the share repeated in the first letters of {LONG} tokens of plays, one key:

{long_table(found)}

- **Short searches**, with the decoder of letters, after 100 prompts of {START} letters (`default_rng(0)`), the first 40
  for twelve letters:
  {of_searches(found["searched"])}
- **Up to a space.** After the first 20 of these, the best text of a beam of four has {lengths["0"]:.1f} letters up to a
  space without a correction for length, {lengths["1"]:.1f} with it.
- **Samples.** One text of plays of {SAMPLE_LENGTH} tokens for each of six settings, after "{PROMPT.strip()}", from
  random key {SAMPLE_KEY}.
- **Limits.** Two small models; nothing was chosen by these texts. What is drawn depends on the last digits of the
  logits, so that another machine may write other texts; on other versions of Python the beginnings differ a little. All
  settings stand in `lab/writing/run.py`; `make models` writes anew.
- **Licence.** Numbers and the models' texts are under Apache-2.0, as the code; the plays are in the public domain, and
  the other real text is part of CPython and has its licence.
"""
