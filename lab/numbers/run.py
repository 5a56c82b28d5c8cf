"""Train encoder–decoders to put German numbers into English, beside a translator that counts.

With 1,000 pairs there is something to hold out and nothing left to wish; with 200 models are often wrong, and one sees
what a beam and label smoothing are worth.
"""

import dataclasses
from functools import partial

import jax
import numpy as np
import sacrebleu

import plainformer as pf
from lab.numbers.numbers_by_counting import CountingTranslator
from lab.records import BUILD, LAB, kept, percent
from lab.seq2seq.run import (
    BATCH_SIZE,
    DROPOUT_RATE,
    in_words,
    loss_on,
    match,
    pair_batches,
    pair_vocabulary,
    seq2seq_config,
    spread,
)

TRAINING = pf.TrainingConfig(num_steps=1000, learning_rate=4e-3, warmup_steps=100, min_lr_ratio=0.02, weight_decay=0.1)
FEW = dataclasses.replace(TRAINING, num_steps=500)  # of 200 pairs: by then each was seen 160 times
LENGTH = 96  # letters of a source and of a target, at most
LONG, EVERY = dataclasses.replace(TRAINING, num_steps=3000), 250
RATES, CHOOSING_SEED = (1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2), 9
SEEDS = (0, 1, 2)
SMOOTHINGS = {"plain": 0.0, "smoothed": 0.1}
SEARCHES: dict[str, dict] = {
    "greedy": {},
    "beam of 4": {"beam_width": 4, "batch_size": 50},
    "beam of 16": {"beam_width": 16, "batch_size": 50},
}


def fitted(splits, how: pf.TrainingConfig, seed: int, run: str, label_smoothing: float = 0.0, evaluate=None):
    """A model of its seed, trained on the pairs, with its vocabulary and what was measured on the way."""
    vocabulary = pair_vocabulary(splits.training)
    config = seq2seq_config(vocabulary, context_len=LENGTH, source_len=LENGTH)
    model, metrics = pf.fit(
        pf.Seq2Seq(config, key=jax.random.key(seed)),
        partial(pf.translation_loss, label_smoothing=label_smoothing),
        pair_batches(splits.training, vocabulary, config, seed),
        dataclasses.replace(how, seed=seed),
        evaluate=None if evaluate is None else partial(evaluate, vocabulary=vocabulary, config=config),
        directory=BUILD / run,
    )
    return model, vocabulary, metrics


def number_model(splits, how: pf.TrainingConfig, seed: int, label_smoothing: float = 0.0):
    """A model of its seed, trained on the pairs, with its vocabulary."""
    run = f"numbers_{len(splits.training)}_{label_smoothing:g}_{seed}"
    return fitted(splits, how, seed, run, label_smoothing)[:2]


def by_rate(splits) -> dict[str, float]:
    """The surprise at the numbers for validation with each rate, after the usual training."""

    def judged(rate: float) -> float:
        how = dataclasses.replace(TRAINING, learning_rate=rate)
        model, vocabulary, _ = fitted(splits, how, CHOOSING_SEED, f"numbers_rate_{rate:g}")
        return loss_on(splits.validation, model, vocabulary, model.config)

    return {f"{rate:g}": kept(BUILD / f"numbers_rate_{rate:g}.json", partial(judged, rate)) for rate in RATES}


def to_the_end(splits, rate: float, seed: int) -> dict:
    """Three times the steps: the surprise on the way, and the shares of numbers that are right."""

    def find() -> dict:
        how = dataclasses.replace(LONG, learning_rate=rate, evaluate_every=EVERY)
        evaluate = partial(loss_on, splits.validation)
        model, vocabulary, metrics = fitted(splits, how, seed, f"numbers_long_{seed}", evaluate=evaluate)
        curve = [[each["step"], each["validation_loss"]] for each in metrics if "validation_loss" in each]
        parts = {name: round(match(model, vocabulary, getattr(splits, name)), 4) for name in splits._fields[1:]}
        return {"seed": seed, "curve": curve} | parts

    return kept(BUILD / f"numbers_long_{seed}.json", find)


def after_longer(splits) -> dict:
    """Three seeds at the best of five rates."""
    tried = by_rate(splits)
    best = min(RATES, key=lambda rate: tried[f"{rate:g}"])
    return {"rate": best, "tried": tried, "runs": [to_the_end(splits, best, seed) for seed in SEEDS]}


def with_few_pairs() -> dict[str, dict]:
    """200 pairs, with and without label smoothing, greedy and by beams: the shares of new combinations."""
    splits, found = pf.data.number_splits(200), dict[str, dict]()
    for name, smoothing in SMOOTHINGS.items():
        trained, found[name] = [number_model(splits, FEW, seed, smoothing) for seed in SEEDS], {}
        for search, how in SEARCHES.items():
            right = [match(model, letters, splits.new_combination[:200], **how) for model, letters in trained]
            found[name][search] = spread(right)
    return found


def with_all_pairs(splits, trained) -> dict[str, dict]:
    """Each part, translated by the models and by counting: exact match, and the BLEU of counting."""
    counting, found = CountingTranslator(splits.training), {}
    for name in splits._fields[1:]:
        part = getattr(splits, name)
        right = [match(each, letters, part) for each, letters in trained]
        texts, wanted = [counting.translate(pair.source) for pair in part], [pair.target for pair in part]
        found[name] = {"stored": round(right[0], 4)} | spread(right)
        found[name]["counted"] = round(pf.generation.exact_match(texts, wanted), 4)
        found[name]["BLEU of counting"] = round(sacrebleu.corpus_bleu(texts, [wanted]).score, 2)
    return found


def results() -> dict:
    """Train the models, store that of seed 0, and return how well they and counting translate."""
    splits = pf.data.number_splits()
    trained = [number_model(splits, TRAINING, seed) for seed in SEEDS]
    model, vocabulary = trained[0]
    pf.save_model(LAB / "numbers" / "numbers.safetensors", model, vocabulary)
    return {
        "pairs": {part: len(pairs) for part, pairs in splits._asdict().items()},
        "parameters": pf.count_parameters(model),
        "all pairs": with_all_pairs(splits, trained),
        "few pairs": with_few_pairs(),
        "longer": after_longer(splits),
    }


def facts(found: dict) -> dict[str, str]:
    """What chapters say: per cent of exact matches of the models and of counting, and of single seeds."""
    texts: dict[str, str] = {}
    for part, each in found["all pairs"].items():
        texts |= {f"{part}.{name}": percent(each[name], 1) for name in ("mean", "least", "most", "counted")}
        texts[f"{part}.counted.bleu"] = f"{each['BLEU of counting']:.1f}"
    longer = float(np.mean([each["new_combination"] for each in found["longer"]["runs"]]))
    texts["long.new_combination.mean"] = percent(longer, 1)
    rows = {"new_combination": found["all pairs"]["new_combination"]}
    rows |= {f"few.{name}": searches["greedy"] for name, searches in found["few pairs"].items()}
    for name, row in rows.items():
        texts |= {f"{name}.{seed}": percent(share, 1) for seed, share in enumerate(row["seeds"])}
    return texts


def passes(how: pf.TrainingConfig, num_pairs: int) -> float:
    """How often each pair is read."""
    return how.num_steps * BATCH_SIZE / num_pairs


def longer_table(found: dict) -> str:
    """A row of the card for each seed of the longer training: the surprise on the way, and shares of exact matches."""
    return "\n".join(
        f"| {each['seed']} | {', '.join(f'{loss:.4f}' for _, loss in each['curve'][1::2])} | "
        + " | ".join(f"{each[part]:.1%}" for part in ("validation", "new_combination", "longer"))
        + " |"
        for each in found["runs"]
    )


def all_table(found: dict) -> str:
    """A row of the card for each part."""
    return "\n".join(
        f"| {part.replace('_', ' ')} | {each['stored']:.1%} | {in_words(each)} | {each['counted']:.1%} "
        f"| {each['BLEU of counting']:.1f} |"
        for part, each in found.items()
    )


def few_table(found: dict) -> str:
    """A row of the card for each way to learn and to search."""
    return "\n".join(
        f"| {SMOOTHINGS[name]:g} | {search} | {in_words(each)} |"
        for name, searches in found.items()
        for search, each in searches.items()
    )


def card(found: dict) -> str:
    """What was done, and what came out."""
    training, validation, new_combination, longer = found["pairs"].values()
    return f"""# The encoder–decoder of numbers

It puts German numbers from 1,000 to 99,999 into English, letter by letter: *vierunddreißigtausendzwölf* becomes
*thirty-four thousand and twelve*. It can do nothing else, and neither longer numbers nor most of the short ones.

- **Data.** `plainformer.data.number_splits()`: {training:,} numbers to train on, in words by num2words;
  {validation} more of the same kind for validation; settings were chosen beforehand; to test on,
  {new_combination} with tens and units that never stand together in training (they add up to 9), and
  {longer} of six digits. One token per character: the vocabulary is in the file, too.
- **Model.** `numbers.json`, {found["parameters"]:,} parameters.
- **Training.** {TRAINING.num_steps:,} steps of {BATCH_SIZE} pairs, {passes(TRAINING, training):.0f} passes;
  seeds 0 to 2 for weights, batches and dropout;
  AdamW, learning rate up to {TRAINING.learning_rate:g}, weight decay {TRAINING.weight_decay:g}, dropout
  {DROPOUT_RATE:g}. All settings stand in `lab/numbers/run.py`; `make models` trains them again.
- **Result.** Exact match of greedy search; only seed 0 is stored. Beside it a translator that counts: a table of
  pieces, and a 3-gram model for the order, the best of 3 to 5 (`lab/numbers/numbers_by_counting.py`), with its
  exact match and BLEU.

| part | stored, seed 0 | three seeds: mean (from, to) | counting | its BLEU |
|---|---|---|---|---|
{all_table(found["all pairs"])}

- **Longer.** {LONG.num_steps:,} steps, {passes(LONG, training):.0f} passes, at the best of five rates, chosen with
  another seed after the usual training by the nats per letter on the numbers for validation:
  {", ".join(f"{rate}: {loss:.4f}" for rate, loss in found["longer"]["tried"].items())}. The same nats every
  {2 * EVERY} steps, and exact match:

| seed | nats on the way | validation | new combinations | six digits |
|---|---|---|---|---|
{longer_table(found["longer"])}

- **With 200 pairs.** {FEW.num_steps} steps, with and without label smoothing; exact match on the first 200 new
  combinations, three seeds.

| label smoothing | search | mean (from, to) |
|---|---|---|
{few_table(found["few pairs"])}

- **Limits.** Six digits need places that no training text had. Of 1,000 training numbers nine are below a thousand: to
  such numbers the model likes to add thousands. A grammar of a few lines, told
  the rule, is always right.
- **Licence.** The weights are Apache-2.0, as the code.
"""
