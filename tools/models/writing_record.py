"""Let the stored decoder of chapter 08 write and search; write down what it wrote, and how probable it is, with a card.

Nothing is trained. `writing.json` holds the texts, with the surprise of the decoder.
"""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from records import write_record

import plainformer as pf

START, LENGTH, BEAM, KEYS = 24, 100, 8, (0, 1, 2)  # letters given and written; width of the beam; random keys
SETTINGS: dict[str, dict] = {
    "greedy": {"temperature": 0},
    **{f"temperature {T:g}": {"temperature": T} for T in (0.5, 0.7, 1.0, 1.3)},
    **{f"top-p {p:g}": {"top_p": p} for p in (0.8, 0.9, 0.95)},
}
SAMPLE = {name: SETTINGS[name] for name in ("greedy", "temperature 0.5", "temperature 1", "top-p 0.9")} | {
    "temperature 1.5": {"temperature": 1.5},
    "top-k 5": {"top_k": 5},
}
PROMPT, SAMPLE_LENGTH, SAMPLE_KEY = "The for statement is used to ", 90, 3


def windows(text: list[int], seed: int, number: int, length: int) -> list[list[int]]:
    """So many pieces of a text, from anywhere."""
    starts = np.random.default_rng(seed).integers(len(text) - length, size=number)
    return [text[start : start + length] for start in starts]


def written(model, beginnings: list[list[int]], choice: dict, keys=KEYS) -> list[list[list[int]]]:
    """What the model writes after each beginning, for each random key."""
    draws = [pf.generate(model, beginnings, LENGTH, key=jax.random.key(key), **choice) for key in keys]
    return [[text.tokens for text in draw] for draw in draws]


@eqx.filter_jit
def surprises(model, texts):
    """The model's mean surprise at what follows the beginning of each text, in nats per letter."""
    log_probs = jax.lax.map(lambda text: pf.generation.sequence_log_probs(model, text), texts)
    return -log_probs[:, START - 1 :].mean(axis=1)


def as_text(vocabulary, ids: list[int]) -> str:
    """The letters of a text, one for each id: ◦ for what the vocabulary does not have."""
    other = vocabulary.special["<other>"]
    return "".join("◦" if each == other else vocabulary.decode([each]) for each in ids)


def judged(model, vocabulary, beginnings, draws) -> dict:
    """The texts of each key as strings, and how much they surprise the decoder."""
    whole = [[beginning + text for beginning, text in zip(beginnings, draw, strict=True)] for draw in draws]
    return {
        "texts": [[as_text(vocabulary, text) for text in draw] for draw in draws],
        "surprise": [[round(float(nats), 4) for nats in surprises(model, jnp.asarray(draw))] for draw in whole],
    }


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


def searched(model, vocabulary, prompts: list[list[int]]) -> dict:
    """How probable a text each search finds after each prompt: two letters, and twelve after the first forty."""
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
        "prompts": [as_text(vocabulary, prompt) for prompt in prompts],
        "best pairs": [as_text(vocabulary, list(divmod(int(at), model.config.vocab_size))) for _, at in pairs],
        "greedy pairs": [as_text(vocabulary, text.tokens[:2]) for text in greedy],
    } | {name: [round(float(log_prob), 4) for log_prob in each] for name, each in found.items()}


def samples(model, vocabulary) -> dict:
    """One text for each of some settings, after one prompt, from one random key."""
    prompt, found = vocabulary.encode(PROMPT), {}
    for name, choice in SAMPLE.items():
        (text,) = pf.generate(model, [prompt], SAMPLE_LENGTH, key=jax.random.key(SAMPLE_KEY), **choice)
        surprise = round(-float(np.mean(text.log_probs)), 4)
        found[name] = {"text": as_text(vocabulary, text.tokens), "surprise": surprise}
    return found


def up_to_a_space(model, vocabulary, prompts: list[list[int]]) -> dict[str, float]:
    """How many letters a beam of four finds up to a space, mean of the prompts, by the power of the length."""
    stop, found = vocabulary.encode(" "), {}
    for power in (0.0, 1.0):
        beams = pf.beam_search(model, prompts, 12, beam_width=4, length_power=power, stop_tokens=stop)
        found[f"{power:g}"] = round(float(np.mean([len(beam[0].tokens) for beam in beams])), 2)
    return found


def results() -> dict:
    """All texts, and what was measured of them."""
    model, vocabulary = pf.load_pretrained("decoder")
    training, validation = (vocabulary.encode(part) for part in pf.data.python_reference_splits())
    real = windows(validation, 1, 48, START + LENGTH)
    beginnings = [text[:START] for text in real]
    draws = {"people": [[text[START:] for text in real]]}
    draws["beam of 8"] = [[beam[0].tokens for beam in pf.beam_search(model, beginnings, LENGTH, beam_width=BEAM)]]
    for name, choice in SETTINGS.items():
        draws[name] = written(model, beginnings, choice, KEYS[:1] if name == "greedy" else KEYS)
    prompts = windows(validation, 0, 100, START)
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "training_letters": len(training),
        "beginnings": [as_text(vocabulary, beginning) for beginning in beginnings],
        "ways": {name: judged(model, vocabulary, beginnings, each) for name, each in draws.items()},
        "searched": searched(model, vocabulary, prompts),
        "up to a space": up_to_a_space(model, vocabulary, prompts[:20]),
        "samples": samples(model, vocabulary),
    }


def table(ways: dict) -> str:
    """A line of the card for each way of writing: means, and standard deviations over the keys."""
    lines = ["| | decoder's surprise |", "|---|---|"]
    for name, way in ways.items():
        means = [np.mean(draw) for draw in way["surprise"]]
        spread = f" ± {np.std(means, ddof=1):.2f}" if len(means) > 1 else ""
        lines.append(f"| {name} | {np.mean(means):.2f}{spread} |")
    return "\n".join(lines)


def shares(found: dict) -> str:
    """What the card says of the short searches."""
    best, greedy, beam = (np.array(found[name]) for name in ("best of two", "greedy, two", "beam of two, two"))
    gain = np.array(found["beam of four, twelve"]) - found["greedy, twelve"]
    return (
        f"greedy search finds the best pair of letters for {np.mean(best - greedy < 1e-3):.0%} of the prompts, a beam "
        f"of two\n  for {np.mean(best - beam < 1e-3):.0%}; of twelve letters a beam of four finds a more probable text "
        f"for {np.mean(gain > 1e-3):.0%}, a less probable one for\n  {np.mean(gain < -1e-3):.0%}."
    )


def card(found: dict) -> str:
    """What was done, and what came out."""
    lengths = found["up to a space"]
    return f"""# What the decoder of chapter 08 writes

Texts that the stored decoder wrote or found after beginnings of real text, and how surprising they are. Nothing was
trained. All stand in `writing.json`.

- **Model.** `decoder.safetensors`, with its own vocabulary; see `decoder.md`.
- **Beginnings.** {len(found["beginnings"])} pieces of {START} letters of the validation text of
  `plainformer.data.python_reference_splits()` of Python {found["python"]}, with the {LENGTH} letters that follow
  ("people"); places drawn by `default_rng(1)`.
- **Ways.** Greedy search; a beam of {BEAM}; drawn at temperatures 0.5, 0.7, 1 and 1.3, and at temperature 1 with top-p
  0.8, 0.9 and 0.95, each with random keys 0, 1 and 2.
- **Measure.** Mean surprise of the decoder per letter, in nats. It learned from {found["training_letters"]:,} letters.
- **Result.** Means, with standard deviations over the keys:

{table(found["ways"])}

- **Short searches.** After 100 prompts of {START} letters (`default_rng(0)`), the first 40 for twelve letters:
  {shares(found["searched"])}
- **Up to a space.** After the first 20 of these, the best text of a beam of four has {lengths["0"]:.1f} letters up to a
  space without a correction for length, {lengths["1"]:.1f} with it.
- **Samples.** One text of {SAMPLE_LENGTH} letters for each of six settings, after "{PROMPT.strip()}", from random key
  {SAMPLE_KEY}.
- **Limits.** One small model, one kind of text; nothing was chosen by these texts. What is drawn depends on the last
  digits of the logits, so that another machine may write other texts; on other versions of Python the beginnings differ
  a little. All settings stand in `tools/models/writing_record.py`; `make models` writes anew.
- **Licence.** Numbers and the model's texts are under Apache-2.0, as the code; the real text is part of CPython and has
  its licence.
"""


def write() -> None:
    """Let the decoder write, and keep what it wrote with a card."""
    found = results()
    write_record("writing", found, card(found))


if __name__ == "__main__":
    write()
