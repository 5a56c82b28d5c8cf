"""Train encoder–decoders to put German numbers into English (chapter 10), and write one with its card.

With 1,000 pairs there is something to hold out and nothing left to wish; with 200 models are often wrong, and one sees
what a beam and label smoothing are worth.
"""

import dataclasses
from functools import partial

import jax
import sacrebleu

import plainformer as pf
from lab.numbers.numbers_by_counting import CountingTranslator
from lab.records import BUILD, LAB
from lab.seq2seq.run import BATCH_SIZE, DROPOUT_RATE, match, pair_batches, pair_vocabulary, seq2seq_config, shares

TRAINING = pf.TrainingConfig(num_steps=1000, learning_rate=4e-3, warmup_steps=100, min_lr_ratio=0.02, weight_decay=0.1)
FEW = dataclasses.replace(TRAINING, num_steps=500)  # of 200 pairs: by then each was seen 160 times
LENGTH = 96  # letters of a source and of a target, at most
SEEDS = (0, 1, 2)
SMOOTHING = 0.1
BEAMS = (1, 4, 16)


def number_model(splits, how: pf.TrainingConfig, seed: int, label_smoothing: float = 0.0):
    """A model of its seed, trained on the pairs, with its vocabulary."""
    vocabulary = pair_vocabulary(splits.training)
    config = seq2seq_config(vocabulary, context_len=LENGTH, source_len=LENGTH)
    run = f"numbers_{len(splits.training)}_{label_smoothing:g}_{seed}"
    model, _ = pf.fit(
        pf.Seq2Seq(config, key=jax.random.key(seed)),
        partial(pf.translation_loss, label_smoothing=label_smoothing),
        pair_batches(splits.training, vocabulary, config, seed),
        dataclasses.replace(how, seed=seed),
        directory=BUILD / run,
    )
    return model, vocabulary


def by_counting(splits) -> dict[str, tuple[float, float]]:
    """Exact match and BLEU of the counting translator, by part."""
    counting, found = CountingTranslator(splits.training), {}
    for name in splits._fields[1:]:
        part = getattr(splits, name)
        texts, wanted = [counting.translate(pair.source) for pair in part], [pair.target for pair in part]
        found[name] = pf.generation.exact_match(texts, wanted), sacrebleu.corpus_bleu(texts, [wanted]).score
    return found


def with_few_pairs() -> list[str]:
    """Lines of a table: 200 pairs, with and without label smoothing, greedy and by beams; on new combinations."""
    splits, lines = pf.data.number_splits(200), []
    for smoothing in (0.0, SMOOTHING):
        trained = [number_model(splits, FEW, seed, smoothing) for seed in SEEDS]
        for width in BEAMS:
            how = {} if width == 1 else {"beam_width": width, "batch_size": 50}
            found = [match(model, letters, splits.new_combination[:200], **how) for model, letters in trained]
            lines.append(f"| {smoothing:g} | {'greedy' if width == 1 else f'beam of {width}'} | {shares(found)} |")
    return lines


def with_all_pairs(splits, trained) -> list[str]:
    """Lines of a table: each part, translated by the models and by counting."""
    parts = {name: getattr(splits, name) for name in splits._fields[1:]}
    found = {name: [match(each, letters, part) for each, letters in trained] for name, part in parts.items()}
    counted = by_counting(splits)
    return [
        f"| {name.replace('_', ' ')} | {found[name][0]:.1%} | {shares(found[name])} | {exact:.1%} | {bleu:.1f} |"
        for name, (exact, bleu) in counted.items()
    ]


def train() -> None:
    """Train the models, and write that of seed 0 with the card of all."""
    splits = pf.data.number_splits()
    trained = [number_model(splits, TRAINING, seed) for seed in SEEDS]
    model, vocabulary = trained[0]
    pf.save_model(LAB / "numbers" / "numbers.safetensors", model, vocabulary)
    card = f"""# The encoder–decoder of numbers of chapter 10

It puts German numbers from 1,000 to 99,999 into English, letter by letter: *vierunddreißigtausendzwölf* becomes
*thirty-four thousand and twelve*. It can do nothing else, and neither longer numbers nor most of the short ones.

- **Data.** `plainformer.data.number_splits()`: {len(splits.training):,} numbers to train on, in words by num2words;
  {len(splits.validation)} more of the same kind for validation; settings were chosen beforehand; to test on,
  {len(splits.new_combination)} with tens and units that never stand together in training (they add up to 9), and
  {len(splits.longer)} of six digits. One token per character: the vocabulary is in the file, too.
- **Model.** `numbers.json`, {pf.count_parameters(model):,} parameters.
- **Training.** {TRAINING.num_steps:,} steps of {BATCH_SIZE} pairs, seeds 0 to 2 for weights, batches and dropout;
  AdamW, learning rate up to {TRAINING.learning_rate:g}, weight decay {TRAINING.weight_decay:g}, dropout
  {DROPOUT_RATE:g}. All settings stand in `lab/numbers/run.py`; `make models` trains them again.
- **Result.** Exact match of greedy search; only seed 0 is stored. Beside it a translator that counts: a table of
  pieces, and a 3-gram model for the order, the best of 3 to 5 (`lab/numbers/numbers_by_counting.py`), with its
  exact match and BLEU.

| part | stored, seed 0 | three seeds: mean (from, to) | counting | its BLEU |
|---|---|---|---|---|
{chr(10).join(with_all_pairs(splits, trained))}

- **With 200 pairs.** {FEW.num_steps} steps, with and without label smoothing; exact match on the first 200 new
  combinations, three seeds.

| label smoothing | search | mean (from, to) |
|---|---|---|
{chr(10).join(with_few_pairs())}

- **Limits.** Six digits need places that no training text had. Of 1,000 training numbers nine are below a thousand: to
  such numbers the model likes to add thousands. A grammar of a few lines, told
  the rule, is always right.
- **Licence.** The weights are Apache-2.0, as the code.
"""
    (LAB / "numbers" / "card.md").write_text(card, encoding="utf-8")


if __name__ == "__main__":
    train()
