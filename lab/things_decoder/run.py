"""Train a decoder that goes on with the names of one thing, and see whether it copies."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD, LAB, ends
from lab.things_decoder.next_letter_by_counting import NAME, NUM_LINES, counted_by_votes
from lab.things_lines import BATCH_SIZE, BLOCKS, LENGTH, SEEDS, TRAINING, VOCABULARY, line_of, lines_at

DECODER = pf.DecoderConfig(vocab_size=len(VOCABULARY), context_len=LENGTH, stack=BLOCKS)
SHORTER = dataclasses.replace(TRAINING, num_steps=2500)


def next_letter_loss(model, batch, key=None):
    """The mean surprise at the letters of the lines, padding left out."""
    inputs, targets, is_target = batch
    return pf.cross_entropy(model(inputs, key=key), targets, is_target)


def shifted(tokens, is_token):
    """What the decoder reads, with the start token in front, and what it is to expect."""
    start = jnp.full_like(tokens[:, :1], VOCABULARY.special["<start>"])
    return jnp.concatenate([start, tokens[:, :-1]], axis=1), tokens, is_token


def train_decoder(things: dict[str, list[str]], seed: int, training=SHORTER, directory=None):
    """The decoder after training, and its metrics; kept in its own directory, or in another."""
    lines = lines_at(things, seed)
    return pf.fit(
        pf.Decoder(DECODER, key=jax.random.key(seed)),
        next_letter_loss,
        lambda step: shifted(*lines(step)),
        training,
        directory=directory or BUILD / f"things_decoder_{seed}",
    )


def surprise_by_letter(model: pf.Decoder, lines: list[str]) -> list[np.ndarray]:
    """What a decoder finds each letter of each line to say, in nats."""
    read = eqx.filter_jit(lambda inputs: jax.nn.log_softmax(model(inputs)))
    found = []
    for start in range(0, len(lines), 250):
        some = [VOCABULARY.encode(line) for line in lines[start : start + 250]]
        inputs, targets, _ = shifted(*pf.data.pad_texts(some, LENGTH))
        nats = -np.take_along_axis(np.asarray(read(inputs)), np.asarray(targets)[..., None], axis=2)[..., 0]
        found += [row[: len(ids)] for row, ids in zip(nats, some, strict=True)]
    return found


def by_name(nats: list[np.ndarray], lines: list[list[str]], most: int = 6) -> list[float]:
    """The mean surprise at the letters of the first name of a line, of the second, and so on."""
    parts: list[list[np.ndarray]] = [[] for _ in range(most)]
    for row, line in zip(nats, lines, strict=True):
        place = 0
        for part, name in zip(parts, line, strict=False):
            part.append(row[place : place + len(name)])
            place += len(name) + len(", ")
    return [float(np.concatenate(part).mean()) for part in parts]


def invented_words(number: int, length: int = 10, seed: int = 0) -> list[str]:
    """Words of letters drawn at random, such as nobody has read."""
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), length)) for _ in range(number)]


def first_and_again(model: pf.Decoder, words: list[str]) -> tuple[float, float]:
    """The mean surprise at a word's letters, but for the first of them, and at the same when the word comes again."""
    nats = surprise_by_letter(model, [f"{word}, {word}" for word in words])
    first = [row[1 : len(word)] for row, word in zip(nats, words, strict=True)]
    again = [row[-len(word) + 1 :] for row, word in zip(nats, words, strict=True)]
    return float(np.concatenate(first).mean()), float(np.concatenate(again).mean())


def lines_to_judge(things: dict[str, list[str]], number: int = 1500) -> list[list[str]]:
    """Lines of things with at least four names, one thing after the other."""
    rng, lists = np.random.default_rng(0), [names for names in things.values() if len(names) >= 4]
    return [line_of(lists[n % len(lists)], rng) for n in range(number)]


def counted_surprise(things: dict[str, list[str]], lines: list[str], order: int = 10) -> list[np.ndarray]:
    """The same as `surprise_by_letter`, of an n-gram model that has counted three lines of each thing."""
    rng, before = np.random.default_rng(0), [VOCABULARY.special["<start>"]] * (order - 1)
    read = [VOCABULARY.encode(", ".join(line_of(names, rng))) for names in things.values() for _ in range(3)]
    ids = [each for line in read for each in before + line]
    model = pf.training.NgramModel(ids, order=order, vocab_size=len(VOCABULARY), discount=None)
    texts = [before + VOCABULARY.encode(line) for line in lines]
    return [
        -np.log([model.probability(text[n], text[n - order + 1 : n]) for n in range(order - 1, len(text))])
        for text in texts
    ]


def results() -> dict:
    """Train with three seeds, store the first, and return the surprise at each name of a line and at words again."""
    things = pf.data.thing_splits()
    models = [train_decoder(things.training, seed).model for seed in SEEDS]
    lines = lines_to_judge(things.test)
    texts, few = [", ".join(line) for line in lines], range(0, len(lines), 5)
    rows = {f"decoder, seed {seed}": by_name(surprise_by_letter(models[seed], texts), lines) for seed in SEEDS}
    counted = counted_surprise(things.training, [texts[n] for n in few])
    rows["10-gram"] = by_name(counted, [lines[n] for n in few])
    again = [first_and_again(model, invented_words(200)) for model in models]
    pf.save_model(LAB / "things_decoder" / "things_decoder.safetensors", models[0], VOCABULARY)
    return {
        "things": [len(things.training), len(things.test)],
        "parameters": pf.count_parameters(models[0]),
        "lines": len(lines),
        "names": {name: [round(nats, 3) for nats in each] for name, each in rows.items()},
        "words": [{"first": round(first, 3), "again": round(second, 3)} for first, second in again],
        "counted by votes": round(counted_by_votes(things.training, lines), 3),
    }


def facts(found: dict) -> dict[str, str]:
    """What chapters say of the fourth name: nats per letter, of the decoders and of counting with votes."""
    fourth = [nats[NAME] for name, nats in found["names"].items() if name.startswith("decoder")]
    return {"votes": f"{found['counted by votes']:.2f}"} | ends("fourth", fourth)


def card(found: dict) -> str:
    """What was done, and what came out."""
    learning, held_out = found["things"]
    table = [f"| {name} | {' | '.join(f'{nats:.2f}' for nats in each)} |" for name, each in found["names"].items()]
    first, again = (", ".join(f"{each[when]:.2f}" for each in found["words"]) for when in ("first", "again"))
    return f"""# A decoder of the names of one thing in many languages

A character-level language model. A line holds what several languages call one thing, and the model learns to copy from
the names it has read into the next.

- **Data.** `plainformer.data.thing_splits()`, from CLDR through Babel: {learning:,} things to learn from,
  {held_out} held out, none of whose names, from four letters on, is part of one to learn from. A text has as
  many names of one thing as fit into {LENGTH} characters, in random order.
- **Model.** `things_decoder.json`, {found["parameters"]:,} parameters.
- **Training.** {SHORTER.num_steps:,} steps of {BATCH_SIZE} lines; seeds 0, 1 and 2, of which 0 is stored; AdamW,
  learning rate up to {SHORTER.learning_rate:g}. All settings stand in `lab/things_decoder/run.py`;
  `make models` trains it again.
- **Result.** On {found["lines"]:,} lines of things held out, the mean surprise at a letter of the first name, of the
  second and so on, in nats; beside it a 10-gram model with modified Kneser–Ney smoothing, on a fifth of these lines,
  which has counted three lines of each thing.

| | 1st | 2nd | 3rd | 4th | 5th | 6th |
|---|---|---|---|---|---|---|
{chr(10).join(table)}

- **With votes.** Told that letters behind the same ones correspond, and learning how much such a vote of an earlier
  name counts, a 6-gram model has {found["counted by votes"]:.2f} nats at the fourth name of the first {NUM_LINES} lines
  (`lab/things_decoder/next_letter_by_counting.py`).
- **Copying.** Of a word of ten letters drawn at random, but for the first of them, a letter costs
  {first} nats; when the word comes again after a comma,
  {again} nats.
- **Limits.** The corpus is small, and made so that copying pays. Languages with the Latin alphabet only.
- **Licence.** The weights are Apache-2.0, as the code; the names are CLDR's, under the Unicode License.
"""
