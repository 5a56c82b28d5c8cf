"""Translate captions from German into English: ours against PyTorch's `nn.Transformer`, the same pairs in each step.

2 + 2 layers, 4 heads, 128 wide, dropout and label smoothing of 0.1; 10,000 of Multi30k's pairs (Elliott et al., 2016)
of at most 16 and 15 tokens of our own byte-pair encoding, 48 in a batch; 1,200 steps. Each training has a process of
its own, pinned to one core, and its CPU seconds count: with tracing and compiling, without imports.
"""

import gzip
import importlib
import multiprocessing
import os
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

import jax

import plainformer as pf
from benchmarks.report import Goal, Section, Settings, say, table
from benchmarks.timing import in_turn, ratios, spread

SPECIAL = ("<start>", "<stop>")
VOCAB_SIZE, LONGEST, NUM_PAIRS, BATCH_SIZE, MOST_STEPS = 4000, 16, 10_000, 48, 1200
STACK = pf.StackConfig(d_model=128, num_layers=2, num_heads=4, dropout_rate=0.1)
LABEL_SMOOTHING, BEAM_WIDTH, MOST_ROUNDS = 0.1, 4, 5
BY = {"Plainformer": "benchmarks.multi30k", "PyTorch": "benchmarks.torch_translation"}


class Corpus(NamedTuple):
    """What is learnt and tested: pairs of ids, German first, and the references as text."""

    training: list[tuple[list[int], list[int]]]
    validation: list[tuple[list[int], list[int]]]
    sources: list[list[int]]
    references: list[str]
    tokenizer: pf.BytePairEncoder

    @property
    def config(self) -> pf.Seq2SeqConfig:
        start, stop = (self.tokenizer.special[name] for name in SPECIAL)
        return pf.Seq2SeqConfig(VOCAB_SIZE, LONGEST, LONGEST, start, stop, encoder=STACK, decoder=STACK)

    def batch(self, pairs) -> tuple:
        return pf.translation_batch(pairs, self.config, source_len=LONGEST, target_len=LONGEST)


class Found(NamedTuple):
    """What one training found: CPU seconds, the loss on held-out pairs in nats per token, and the test's translations
    by each way of writing; with the CPU seconds of writing them, at first and then round after round."""

    seconds: float
    validation_loss: float
    translations: dict[str, list[list[int]]]
    first: dict[str, float]
    times: dict[str, list[float]]


def read_lines(folder: str | None, part: str, language: str) -> list[str]:
    """The sentences of one file; `FileNotFoundError` says what to do if there is none."""
    path = Path(folder or "", f"{part}.{language}.gz")
    if not folder or not path.exists():
        raise FileNotFoundError(
            f"There is no file {path}: name the folder of train, val and test_2016_flickr, each as .de.gz and .en.gz, "
            "one sentence per line, by --multi30k."
        )
    return [line.strip() for line in gzip.decompress(path.read_bytes()).decode("utf-8").strip().split("\n")]


def read_corpus(folder: str | None) -> Corpus:
    """Learn the tokens from all sentences to train on, and keep the short pairs."""
    training, validation, test = (
        [read_lines(folder, part, language) for language in ("de", "en")]
        for part in ("train", "val", "test_2016_flickr")
    )
    tokenizer = pf.BytePairEncoder.train(
        "\n".join(line for side in training for line in side), VOCAB_SIZE, special=SPECIAL
    )

    def short(german: list[str], english: list[str]) -> list[tuple]:
        encoded = [(tokenizer.encode(one), tokenizer.encode(other)) for one, other in zip(german, english, strict=True)]
        pairs = zip(encoded, english, strict=True)
        return [(pair, text) for pair, text in pairs if len(pair[0]) <= LONGEST and len(pair[1]) < LONGEST]

    tested = short(*test)
    return Corpus(
        [pair for pair, _ in short(*training)[:NUM_PAIRS]],
        [pair for pair, _ in short(*validation)],
        [source for (source, _), _ in tested],
        [text for _, text in tested],
        tokenizer,
    )


def new_training(num_steps: int, seed: int) -> pf.TrainingConfig:
    return pf.TrainingConfig(num_steps=num_steps, seed=seed)


def batches_of(corpus: Corpus, seed: int):
    """The function from a step to its batch, the same for both."""
    return pf.data.random_batches([corpus.batch(corpus.training)], BATCH_SIZE, seed=seed)


def train_and_write(corpus: Corpus, num_steps: int, seed: int, rounds: int) -> Found:
    """Train ours, then translate the test greedily and with a beam."""
    batches, loss = batches_of(corpus, seed), partial(pf.translation_loss, label_smoothing=LABEL_SMOOTHING)
    start = time.process_time()
    model = pf.Seq2Seq(corpus.config, key=jax.random.key(seed))
    model, _ = pf.fit(model, loss, batches, new_training(num_steps, seed), progress=False)
    seconds = time.process_time() - start
    held_out = pf.data.consecutive_batches([corpus.batch(corpus.validation)], 64)
    validation_loss = pf.training.mean_loss(model, pf.translation_loss, held_out)
    writers = {
        name: partial(pf.translate, model, corpus.sources, beam_width=width)
        for name, width in (("greedy", None), ("beam", BEAM_WIDTH))
    }
    translations, first = {}, {}
    for name, write in writers.items():
        jax.clear_caches()
        start = time.process_time()
        translations[name] = write()
        first[name] = time.process_time() - start
    times = in_turn(writers, rounds, clock=time.process_time)
    return Found(seconds, validation_loss, translations, first, times)


def alone(who: str, core: int, *arguments) -> Found:
    """What one training finds on a single core, with nothing compiled before."""
    os.sched_setaffinity(0, {core})  # before JAX counts its cores
    jax.config.update("jax_enable_compilation_cache", False)
    return importlib.import_module(BY[who]).train_and_write(*arguments)


def train_all(corpus: Corpus, num_steps: int, settings: Settings) -> dict[str, list[Found]]:
    """Both with each seed, side by side on a core each; they change cores from seed to seed."""
    cores = sorted(os.sched_getaffinity(0))
    spawn, found = multiprocessing.get_context("spawn"), {who: [] for who in BY}
    rounds = min(settings.rounds, MOST_ROUNDS)
    for seed in range(settings.seeds):
        with ProcessPoolExecutor(min(len(BY), len(cores)), mp_context=spawn, max_tasks_per_child=1) as processes:
            running = {
                who: processes.submit(alone, who, cores[(seed + n) % len(cores)], corpus, num_steps, seed, rounds)
                for n, who in enumerate(BY)
            }
            for who, process in running.items():
                found[who].append(process.result())
                say(f"Multi30k, seed {seed}: {who} trained for {found[who][-1].seconds:.0f} CPU s")
    return found


def bleu_of(one: Found, corpus: Corpus) -> dict[str, float]:
    """BLEU of each way of writing."""
    return {
        name: pf.training.corpus_bleu([corpus.tokenizer.decode(ids) for ids in texts], corpus.references)
        for name, texts in one.translations.items()
    }


def goals_of(found: dict[str, list[Found]], scores: dict[str, list[dict]]) -> list[Goal]:
    """As good a model, in less time; and a beam that costs little more than greedy writing, nothing compiled."""
    ours, theirs = found.values()
    greedy = {who: statistics.fmean(each["greedy"] for each in scores[who]) for who in BY}
    faster = ratios([each.seconds for each in theirs], [each.seconds for each in ours])
    dearer = spread(ratios(each.times["beam"], each.times["greedy"]).middle for each in ours)
    return [
        Goal("Multi30k: BLEU of ours less that of PyTorch", greedy["Plainformer"] - greedy["PyTorch"], "at least", -1),
        Goal("Multi30k: steps per CPU second by those of PyTorch", faster.middle, "at least", 1.3),
        Goal(f"Multi30k: time of a beam of {BEAM_WIDTH} by that of greedy writing", dearer.middle, "at most", 1.5),
    ]


def row(who: str, seed: int, one: Found, scores: dict[str, float], num_steps: int) -> list[str]:
    """A row of the table; what is written greedily and with a beam stands side by side."""
    again = [spread(each).show(2) for each in one.times.values()]
    bleu, first = ([f"{number:.1f}" for number in each.values()] for each in (scores, one.first))
    speed = f"{num_steps / one.seconds:.2f}"
    written = [" / ".join(cells) for cells in (bleu, first, again)]
    return [who, str(seed), f"{one.seconds:.0f}", speed, f"{one.validation_loss:.3f}", *written]


def multi30k(settings: Settings) -> Section:
    corpus, num_steps = read_corpus(settings.multi30k), min(settings.steps, MOST_STEPS)
    found = train_all(corpus, num_steps, settings)
    scores = {who: [bleu_of(one, corpus) for one in found[who]] for who in BY}
    rows = [
        row(who, seed, found[who][seed], scores[who][seed], num_steps) for who in BY for seed in range(settings.seeds)
    ]
    note = (
        f"{num_steps:,} steps of {BATCH_SIZE} of {len(corpus.training):,} pairs, the same for both, which train side "
        f"by side on a core each; {len(corpus.sources)} sentences of test_2016_flickr. CPU seconds of training are "
        "with making and compiling the model, of writing at first with compiling, and again without. PyTorch is "
        "eager, and its `nn.Transformer` also drops weights of attention and entries inside the networks. BLEU by "
        "sacrebleu, cut by 13a, cased; greedy / with a beam. Loss in nats per token of the "
        f"{len(corpus.validation)} short pairs of val."
    )
    columns = ["training, CPU s", "steps per CPU s", "validation loss", "BLEU", "writing, CPU s", "again, CPU s"]
    return Section(
        "Multi30k, German to English", f"{note}\n\n{table(['', 'seed', *columns], rows)}", goals_of(found, scores)
    )
