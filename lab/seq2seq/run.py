"""Train encoder–decoders of dates, three that differ by their seed, and for longer three that are not stored."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.records import BUILD, LAB, kept, percent
from lab.seq2seq.held_back import LANGUAGES, held_back
from plainformer.data.dates import DATE_LANGUAGES, HELD_OUT_LANGUAGES, DatePair, DateSplits
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
LONG, EVERY = 2000, 250  # steps, and after how many of them it is judged
RATES, CHOOSING_SEED = (2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2), 9


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


def loss_on(pairs: Sequence[Pair], model, vocabulary: pf.Vocabulary, config: pf.Seq2SeqConfig) -> float:
    """The mean surprise at a letter of the targets, in nats."""
    ids = [(vocabulary.encode(pair.source), vocabulary.encode(pair.target)) for pair in pairs]
    return round(float(pf.translation_loss(model, pf.translation_batch(ids, config))), 5)


def losses(splits: DateSplits, model, vocabulary: pf.Vocabulary, config: pf.Seq2SeqConfig) -> dict[str, float]:
    """The surprise on both parts that are kept from training."""
    return {part: loss_on(getattr(splits, part), model, vocabulary, config) for part in splits._fields[1:]}


def date_model(splits: DateSplits, seed: int, run: str, evaluate: Callable | None = None, **changed):
    """A model of its seed, trained on the pairs, with its vocabulary and what was measured on the way."""
    vocabulary = pair_vocabulary(splits.training)
    config = seq2seq_config(vocabulary)
    model, metrics = pf.fit(
        pf.Seq2Seq(config, key=jax.random.key(seed)),
        pf.translation_loss,
        pair_batches(splits.training, vocabulary, config, seed, config.source_len),
        dataclasses.replace(pf.TrainingConfig(**TRAINING, seed=seed), **changed),
        evaluate=None if evaluate is None else partial(evaluate, splits, vocabulary=vocabulary, config=config),
        directory=BUILD / run,
    )
    return model, vocabulary, metrics


def shares(splits: DateSplits, model, vocabulary: pf.Vocabulary) -> dict[str, float]:
    """The share of exact matches on both parts that are kept from training."""
    return {part: round(match(model, vocabulary, getattr(splits, part)), 4) for part in splits._fields[1:]}


def stored(splits: DateSplits) -> dict[str, dict[str, float]]:
    """Train the models that are stored, store them, and return what shares each has right."""
    found = {}
    for seed, name in enumerate(NAMES):
        model, vocabulary, _ = date_model(splits, seed, name)
        pf.save_model(LAB / "seq2seq" / f"{name}.safetensors", model, vocabulary)
        found[name] = shares(splits, model, vocabulary)
    return found


def by_rate(splits: DateSplits) -> dict[str, dict[str, float]]:
    """The surprise on years and on languages held back from training, after the usual steps with each rate."""
    parts = held_back(splits.training)

    def judged(rate: float, run: str) -> dict[str, float]:
        model, vocabulary, _ = date_model(parts, CHOOSING_SEED, run, learning_rate=rate)
        return losses(parts, model, vocabulary, model.config)

    runs = {rate: f"seq2seq_rate_{rate:g}" for rate in RATES}
    return {f"{rate:g}": kept(BUILD / f"{run}.json", partial(judged, rate, run)) for rate, run in runs.items()}


def to_the_end(splits: DateSplits, rate: float, seed: int) -> dict:
    """More steps: the surprise on the way, by which nothing is chosen, and the shares that are right."""

    name = f"seq2seq_long_{rate:g}_{seed}"

    def find() -> dict:
        changed: dict[str, Any] = {"num_steps": LONG, "learning_rate": rate, "evaluate_every": EVERY}
        model, vocabulary, metrics = date_model(splits, seed, name, losses, **changed)
        parts = splits._fields[1:]
        curve = [[each["step"], *(each[part] for part in parts)] for each in metrics if parts[0] in each]
        return {"seed": seed, "curve": curve} | shares(splits, model, vocabulary)

    return kept(BUILD / f"{name}.json", find)


def after_longer(splits: DateSplits) -> dict:
    """Three seeds at the rate with the lowest mean of both losses."""
    tried = by_rate(splits)
    best = min(RATES, key=lambda rate: sum(tried[f"{rate:g}"].values()))
    runs = [to_the_end(splits, best, seed) for seed in range(len(NAMES))]
    return {"rate": best, "steps": LONG, "tried": tried, "runs": runs}


def results() -> dict:
    """Train the stored models and those with more steps, and return what shares each has right."""
    splits = pf.data.date_splits()
    config = seq2seq_config(pair_vocabulary(splits.training))
    return {
        "pairs": {part: len(pairs) for part, pairs in splits._asdict().items()},
        "parameters": pf.count_parameters(eqx.filter_eval_shape(lambda: pf.Seq2Seq(config, key=jax.random.key(0)))),
        "models": kept(BUILD / "seq2seq_stored.json", partial(stored, splits)),
        "longer": after_longer(splits),
    }


def passes(num_steps: int, num_pairs: int) -> float:
    """How often each pair is read."""
    return num_steps * BATCH_SIZE / num_pairs


def facts(found: dict) -> dict[str, str]:
    """Parameters; steps, rate and per cent right of the longer training. `lab/translations` says the rest."""
    texts = {"parameters": f"{found['parameters']:,}"}
    texts["long.steps"] = f"{found['longer']['steps']:,}"
    texts["long.rate"] = f"{found['longer']['rate']:g}"
    for part in ("held_out_years", "held_out_language"):
        texts[f"long.{part}.seeds"] = ", ".join(percent(each[part], 1) for each in found["longer"]["runs"])
    return texts


def longer_table(found: dict) -> str:
    """A row of the card for each seed of the longer training: the surprise on the way, and shares of exact matches."""
    return "\n".join(
        f"| {each['seed']} | {' | '.join(', '.join(f'{row[n]:.4f}' for row in each['curve'][1::2]) for n in (1, 2))} | "
        f"{each['held_out_years']:.2%} | {each['held_out_language']:.2%} |"
        for each in found["runs"]
    )


def card(found: dict) -> str:
    """What was done, and what came out."""
    training, years, languages = found["pairs"].values()
    rights, longer = [list(each.values()) for each in found["models"].values()], found["longer"]
    nats = ", ".join(f"{rate}: {np.mean([*each.values()]):.4f}" for rate, each in longer["tried"].items())
    lines = [
        f"| {seed} | `{name}.safetensors` | {year:.2%} | {language:.2%} |"
        for seed, (name, (year, language)) in enumerate(zip(NAMES, rights, strict=True))
    ]
    return f"""# The encoder–decoders of dates

They translate dates, written out in one of {len(DATE_LANGUAGES)} languages, into ISO 8601, character by character.
There are three, which differ by their seed only, so that the spread can be seen. A dictionary and a regular expression
do it better, and so does counting (`lab/date_opponents`): use them to study encoder–decoders.

- **Data.** `plainformer.data.date_splits()`: {training:,} pairs to train on,
  {years:,} of years held out, and {languages:,} of these years
  in languages held out, {" and ".join(HELD_OUT_LANGUAGES)}. The texts are from the Unicode CLDR, by Babel.
  One token per character of the training texts, one for all others: the vocabulary is in each file, too.
- **Model.** `seq2seq.json`, {found["parameters"]:,} parameters.
- **Training.** {TRAINING["num_steps"]:,} steps of {BATCH_SIZE} pairs,
  {passes(TRAINING["num_steps"], training):.1f} passes; seeds 0 to 2 for weights, batches and dropout;
  AdamW, learning rate up to {TRAINING["learning_rate"]:g}, weight decay {TRAINING["weight_decay"]:g}, dropout
  {DROPOUT_RATE:g}. All settings stand in `lab/seq2seq/run.py`; `make models` trains them again.
- **Result.** Exact match of greedy search, on held-out years {np.mean([year for year, _ in rights]):.2%} in the mean:

| seed | weights | held-out years | held-out languages |
|---|---|---|---|
{chr(10).join(lines)}

- **Longer.** {longer["steps"]:,} steps, {passes(longer["steps"], training):.1f} passes, seeds 0 to 2, not stored. The
  rate {longer["rate"]:g} is the best of {len(RATES)}, chosen with seed {CHOOSING_SEED} after the usual steps, on
  training pairs that were held back for it: about one year in ten, and {" and ".join(LANGUAGES)} as languages.
  Mean of the nats per letter on both: {nats}. The nats on both parts of the test every {2 * EVERY} steps, by which
  nothing was chosen, and exact match:

| seed | nats, years | nats, languages | held-out years | held-out languages |
|---|---|---|---|---|
{longer_table(longer)}

- **Licence.** The weights are Apache-2.0, as the code; the texts are under the Unicode licence.
"""
