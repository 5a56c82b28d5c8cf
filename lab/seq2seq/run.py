"""Train encoder–decoders of dates, three that differ by their seed."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD, LAB
from plainformer.data.dates import DATE_LANGUAGES, HELD_OUT_LANGUAGES, DatePair
from plainformer.data.numbers import NumberPair

Pair = DatePair | NumberPair

NAMES = ["seq2seq", "seq2seq_1", "seq2seq_2"]  # of seeds 0, 1 and 2
# Strong weight decay and dropout: without them, two seeds of three learn the years of training by heart.
TRAINING: dict[str, Any] = {
    "num_steps": 700,
    "learning_rate": 4e-3,
    "warmup_steps": 50,
    "min_lr_ratio": 0.02,
    "weight_decay": 0.5,
}
DROPOUT_RATE = 0.1
BATCH_SIZE = 64


def pair_vocabulary(pairs: Sequence[Pair]) -> pf.Vocabulary:
    """The characters of sources and targets, and one token for all others."""
    characters = "".join(sorted({character for pair in pairs for character in pair.source + pair.target}))
    return pf.Vocabulary.from_characters(characters, special=["<start>", "<stop>", "<other>"], unknown="<other>")


def seq2seq_config(vocabulary: pf.Vocabulary, *, context_len: int = 11, source_len: int = 40) -> pf.Seq2SeqConfig:
    """Sizes of the stored models."""
    stack = pf.StackConfig(
        d_model=64, num_layers=2, num_heads=4, d_ff=128, position_scheme="rotary", dropout_rate=DROPOUT_RATE
    )
    return pf.Seq2SeqConfig(
        vocab_size=len(vocabulary),
        context_len=context_len,
        source_len=source_len,
        start_token=vocabulary.special["<start>"],
        stop_token=vocabulary.special["<stop>"],
        encoder=stack,
        decoder=stack,
    )


def translated(model, vocabulary: pf.Vocabulary, pairs: Sequence[Pair], batch_size: int = 500, **options) -> list[str]:
    """What the model makes of the sources, greedily if no `beam_width` is among the options of `pf.translate`."""
    sources = [pair.source for pair in pairs]
    found = pf.translate(model, sources, batch_size=batch_size, tokenizer=vocabulary, **options)
    return [each.text or "" for each in found]


def match(model, vocabulary: pf.Vocabulary, pairs: Sequence[Pair], **options) -> float:
    """The share of texts that are translated exactly."""
    return pf.generation.exact_match(translated(model, vocabulary, pairs, **options), [pair.target for pair in pairs])


def pair_batches(
    pairs: Sequence[Pair], vocabulary: pf.Vocabulary, config: pf.Seq2SeqConfig, seed: int, source_len: int | None = None
):
    """From the number of the step to a batch of pairs, drawn at random; sources are padded to the longest, or more."""
    ids = [(vocabulary.encode(pair.source), vocabulary.encode(pair.target)) for pair in pairs]
    length = source_len or max(len(source) for source, _ in ids)
    arrays = [np.asarray(array) for array in pf.translation_batch(ids, config, source_len=length)]

    def batch_at(step):
        rows = np.random.default_rng([seed, step]).integers(len(pairs), size=BATCH_SIZE)
        return pf.data.TranslationBatch(*(jnp.asarray(array[rows]) for array in arrays))

    return batch_at


def spread(seeds: Sequence[float]) -> dict:
    """The shares of several seeds, rounded, with their mean, the smallest and the largest."""
    mean, least, most, *each = (round(share, 4) for share in (float(np.mean(seeds)), min(seeds), max(seeds), *seeds))
    return {"mean": mean, "least": least, "most": most, "seeds": each}


def in_words(found: dict) -> str:
    """The mean of a spread, the smallest and the largest, in per cent."""
    mean, least, most = (100 * found[name] for name in ("mean", "least", "most"))
    return f"{mean:.1f} % ({least:.1f} to {most:.1f})"


def results() -> dict:
    """Train the encoder–decoder three times, and return what shares each has right."""
    splits = pf.data.date_splits()
    vocabulary = pair_vocabulary(splits.training)
    config = seq2seq_config(vocabulary)
    found: dict[str, dict] = {}
    for seed, name in enumerate(NAMES):
        model, _ = pf.fit(
            pf.Seq2Seq(config, key=jax.random.key(seed)),
            pf.translation_loss,
            pair_batches(splits.training, vocabulary, config, seed, config.source_len),
            pf.TrainingConfig(**TRAINING, seed=seed),
            directory=BUILD / name,
        )
        pf.save_model(LAB / "seq2seq" / f"{name}.safetensors", model, vocabulary)
        found[name] = {part: round(match(model, vocabulary, getattr(splits, part)), 4) for part in splits._fields[1:]}
    return {
        "pairs": {part: len(pairs) for part, pairs in splits._asdict().items()},
        "parameters": pf.count_parameters(model),
        "models": found,
    }


def facts(found: dict) -> dict[str, str]:
    """What the chapter says of the models; `lab/translations` says the rest."""
    return {"parameters": f"{found['parameters']:,}"}


def card(found: dict) -> str:
    """What was done, and what came out."""
    training, years, languages = found["pairs"].values()
    passes = TRAINING["num_steps"] * BATCH_SIZE / training
    shares = [list(each.values()) for each in found["models"].values()]
    lines = [
        f"| {seed} | `{name}.safetensors` | {year:.2%} | {language:.2%} |"
        for seed, (name, (year, language)) in enumerate(zip(NAMES, shares, strict=True))
    ]
    return f"""# The encoder–decoders of dates

They translate dates, written out in one of {len(DATE_LANGUAGES)} languages, into ISO 8601, character by character.
There are three, which differ by their seed only, so that the spread can be seen. A dictionary and a regular expression
do it better: use them to study encoder–decoders.

- **Data.** `plainformer.data.date_splits()`: {training:,} pairs to train on,
  {years:,} of years held out, and {languages:,} of these years
  in languages held out, {" and ".join(HELD_OUT_LANGUAGES)}. The texts are from the Unicode CLDR, by Babel.
  One token per character of the training texts, one for all others: the vocabulary is in each file, too.
- **Model.** `seq2seq.json`, {found["parameters"]:,} parameters.
- **Training.** {TRAINING["num_steps"]:,} steps of {BATCH_SIZE} pairs, {passes:.1f} passes;
  seeds 0 to 2 for weights, batches and dropout;
  AdamW, learning rate up to {TRAINING["learning_rate"]:g}, weight decay {TRAINING["weight_decay"]:g}, dropout
  {DROPOUT_RATE:g}. All settings stand in `lab/seq2seq/run.py`; `make models` trains them again.
- **Result.** Exact match of greedy search, on held-out years {np.mean([year for year, _ in shares]):.2%} in the mean:

| seed | weights | held-out years | held-out languages |
|---|---|---|---|
{chr(10).join(lines)}

- **Licence.** The weights are Apache-2.0, as the code; the texts are under the Unicode licence.
"""
