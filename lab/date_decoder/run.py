"""Train decoders on dates, source and target in one text.

Everybody asks why an encoder is needed at all. Here a decoder reads a date, a token that says *now
answer*, and writes the answer; it has as many blocks as encoder and decoder together, and the same training.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD, LAB, percent
from lab.seq2seq.run import BATCH_SIZE, DROPOUT_RATE, TRAINING, in_words, spread
from plainformer.data.dates import DatePair

SEEDS = (0, 1, 2)
ANSWER = 11  # tokens of an answer, with the stop token


def one_text_vocabulary(pairs: list[DatePair]) -> pf.Vocabulary:
    """The characters of sources and targets, one token for all others, and two that end a source and a target."""
    characters = "".join(sorted({character for pair in pairs for character in pair.source + pair.target}))
    return pf.Vocabulary.from_characters(characters, special=["<answer>", "<stop>", "<other>"], unknown="<other>")


def one_text_config(vocabulary: pf.Vocabulary) -> pf.DecoderConfig:
    """Sizes of the stored model."""
    stack = pf.StackConfig(
        d_model=64, num_layers=4, num_heads=4, d_ff=128, position_scheme="rotary", dropout_rate=DROPOUT_RATE
    )
    return pf.DecoderConfig(vocab_size=len(vocabulary), context_len=40 + 1 + ANSWER, stack=stack)


def one_text_batch(pairs: Sequence[DatePair], vocabulary: pf.Vocabulary) -> pf.data.PaddedWindows:
    """All pairs in one batch for `next_token_loss`, in which only the targets count."""
    answer, stop = vocabulary.special["<answer>"], vocabulary.special["<stop>"]
    texts = [[*vocabulary.encode(pair.source), answer, *vocabulary.encode(pair.target), stop] for pair in pairs]
    ids, is_token = pf.data.pad_texts(texts)
    has_asked = (ids == answer).cumsum(axis=1) > 0
    return pf.data.PaddedWindows(ids[:, :-1], ids[:, 1:], is_token[:, 1:] & has_asked[:, :-1])


def one_text_batches(pairs: Sequence[DatePair], vocabulary: pf.Vocabulary, seed: int):
    """From the number of the step to a batch of pairs, drawn at random."""
    arrays = [np.asarray(array) for array in one_text_batch(pairs, vocabulary)]

    def batch_at(step):
        rows = np.random.default_rng([seed, step]).integers(len(pairs), size=BATCH_SIZE)
        return pf.data.PaddedWindows(*(jnp.asarray(array[rows]) for array in arrays))

    return batch_at


def answers(model, vocabulary: pf.Vocabulary, pairs: list[DatePair]) -> list[str]:
    """What the model writes after each source, greedily."""
    prompts = [[*vocabulary.encode(pair.source), vocabulary.special["<answer>"]] for pair in pairs]
    written = pf.generate(model, prompts, ANSWER, temperature=0, stop_tokens=[vocabulary.special["<stop>"]])
    return [vocabulary.decode(text.tokens).removesuffix("<stop>") for text in written]


def answers_right(model, vocabulary: pf.Vocabulary, pairs: list[DatePair]) -> float:
    """The share of sources that are answered exactly."""
    return pf.generation.exact_match(answers(model, vocabulary, pairs), [pair.target for pair in pairs])


def results() -> dict:
    """Train the decoder three times, store that of seed 0, and return what shares all have right."""
    splits = pf.data.date_splits()
    vocabulary = one_text_vocabulary(splits.training)
    models = [
        pf.fit(
            pf.Decoder(one_text_config(vocabulary), key=jax.random.key(seed)),
            pf.training.next_token_loss,
            one_text_batches(splits.training, vocabulary, seed),
            pf.TrainingConfig(**TRAINING, seed=seed),
            directory=BUILD / f"date_decoder_{seed}",
        ).model
        for seed in SEEDS
    ]
    pf.save_model(LAB / "date_decoder" / "date_decoder.safetensors", models[0], vocabulary)
    right = {
        part: [answers_right(model, vocabulary, getattr(splits, part)) for model in models]
        for part in splits._fields[1:]
    }
    return {
        "parameters": pf.count_parameters(models[0]),
        "right": {part: {"stored": round(seeds[0], 4)} | spread(seeds) for part, seeds in right.items()},
    }


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: parameters, and the mean shares in per cent."""
    shares = {f"{part}.mean": percent(each["mean"], 1) for part, each in found["right"].items()}
    return {"parameters": f"{found['parameters']:,}"} | shares


def card(found: dict) -> str:
    """What was done, and what came out."""
    years, languages = found["right"].values()
    return f"""# The decoder of dates

It does what the encoder–decoders of `lab/seq2seq` do, with one stack: it reads a date, a token that asks for the
answer, and writes the date in ISO 8601.

- **Data.** As for `lab/seq2seq`. Source and answer are one text; only the letters of the answer count in the loss.
- **Model.** `date_decoder.json`, {found["parameters"]:,} parameters.
- **Training.** As there; seeds 0 to 2. All settings stand in `lab/date_decoder/run.py`; `make models`
  trains it again.
- **Result.** Exact match of greedy search; only seed 0 is stored.

| part | stored, seed 0 | three seeds: mean (from, to) |
|---|---|---|
| held-out years | {years["stored"]:.2%} | {in_words(years)} |
| held-out languages | {languages["stored"]:.2%} | {in_words(languages)} |

- **Limits.** The settings are those found for the encoder–decoder.
- **Licence.** The weights are Apache-2.0, as the code; the texts are under the Unicode licence.
"""
