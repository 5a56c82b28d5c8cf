"""Translate captions from German into English: ours against PyTorch's `nn.Transformer`, the same pairs in each step.

2 + 2 layers, 4 heads, 192 wide, dropout and label smoothing of 0.1; all of Multi30k's pairs (Elliott et al., 2016) in
4,000 tokens of our own byte-pair encoding, 64 in a batch; 2,000 steps. Each training has a process of its own, pinned
to one core, and its CPU seconds count: with tracing and compiling, without imports. What is found goes to
`build/benchmarks/multi30k.json`, too, from which the chapter on encoder–decoders takes its figures.
"""

import gzip
import importlib
import json
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
from benchmarks.report import ROOT, Goal, Section, Settings, say, table
from benchmarks.timing import ratios
from plainformer.data.files import write_text

SPECIAL = ("<start>", "<stop>")
VOCAB_SIZE, CONTEXT_LEN, BATCH_SIZE, NUM_BUCKETS = 4000, 80, 64, 5
STACK = pf.StackConfig(d_model=192, num_layers=2, num_heads=4, dropout_rate=0.1)
LABEL_SMOOTHING, BEAM_WIDTH = 0.1, 4
LEARNING_RATES = {"Plainformer": 0.003, "PyTorch": 0.001}  # the better ones by loss on val, after shorter trainings
BY = {"Plainformer": "benchmarks.multi30k", "PyTorch": "benchmarks.torch_translation"}
FOUND = ROOT / "build" / "benchmarks" / "multi30k.json"


class Corpus(NamedTuple):
    """What is learnt and tested: pairs of ids, German first, in buckets; the test, and its references as text."""

    training: list[list[tuple[list[int], list[int]]]]
    validation: list[list[tuple[list[int], list[int]]]]
    sources: list[list[int]]
    references: list[str]
    tokenizer: pf.BytePairEncoder

    @property
    def config(self) -> pf.Seq2SeqConfig:
        start, stop = (self.tokenizer.special[name] for name in SPECIAL)
        return pf.Seq2SeqConfig(VOCAB_SIZE, CONTEXT_LEN, CONTEXT_LEN, start, stop, encoder=STACK, decoder=STACK)

    def arrays(self, buckets) -> list[tuple]:
        return [pf.translation_batch(pairs, self.config) for pairs in buckets]


class Found(NamedTuple):
    """What one training found: CPU seconds, the loss on held-out pairs in nats per token, and the test's translations
    by each way of writing, with the CPU seconds of writing them."""

    seconds: float
    validation_loss: float
    translations: dict[str, list[list[int]]]
    times: dict[str, float]


def read_lines(folder: str | None, part: str, language: str) -> list[str]:
    """The sentences of one file; `FileNotFoundError` says what to do if there is none."""
    path = Path(folder or "", f"{part}.{language}.gz")
    if not folder or not path.exists():
        raise FileNotFoundError(
            f"There is no file {path}: name the folder of train, val and test_2016_flickr, each as .de.gz and .en.gz, "
            "one sentence per line, by MULTI30K=folder (or --multi30k folder)."
        )
    return [line.strip() for line in gzip.decompress(path.read_bytes()).decode("utf-8").strip().split("\n")]


def read_corpus(folder: str | None) -> Corpus:
    """Learn the tokens from all sentences to train on, and put pairs of about the same length together."""
    training, validation, test = (
        [read_lines(folder, part, language) for language in ("de", "en")]
        for part in ("train", "val", "test_2016_flickr")
    )
    tokenizer = pf.BytePairEncoder.train(
        "\n".join(line for side in training for line in side), VOCAB_SIZE, special=SPECIAL
    )

    def buckets(german: list[str], english: list[str]) -> list[list]:
        pairs = [(tokenizer.encode(one), tokenizer.encode(other)) for one, other in zip(german, english, strict=True)]
        return pf.data.length_buckets(pairs, NUM_BUCKETS)

    return Corpus(
        buckets(*training), buckets(*validation), [tokenizer.encode(one) for one in test[0]], test[1], tokenizer
    )


def new_training(who: str, num_steps: int, seed: int) -> pf.TrainingConfig:
    return pf.TrainingConfig(num_steps=num_steps, learning_rate=LEARNING_RATES[who], seed=seed)


def batches_of(corpus: Corpus, seed: int):
    """The function from a step to its batch, the same for both."""
    return pf.data.random_batches(corpus.arrays(corpus.training), BATCH_SIZE, seed=seed)


def train_and_write(corpus: Corpus, num_steps: int, seed: int) -> Found:
    """Train ours, then translate the test greedily and with a beam."""
    batches, loss = batches_of(corpus, seed), partial(pf.translation_loss, label_smoothing=LABEL_SMOOTHING)
    start = time.process_time()
    model = pf.Seq2Seq(corpus.config, key=jax.random.key(seed))
    model, _ = pf.fit(model, loss, batches, new_training("Plainformer", num_steps, seed), progress=False)
    return write(model, corpus, time.process_time() - start)


def write(model: pf.Seq2Seq, corpus: Corpus, seconds: float) -> Found:
    """What a trained model finds: its loss, and its translations."""
    held_out = pf.data.consecutive_batches(corpus.arrays(corpus.validation), BATCH_SIZE)
    validation_loss = pf.training.mean_loss(model, pf.translation_loss, held_out)
    writers = {
        name: partial(pf.translate, model, corpus.sources, beam_width=width)
        for name, width in (("greedy", None), ("beam", BEAM_WIDTH))
    }
    translations, times = {}, {}
    for name, write_all in writers.items():
        write_all()  # to compile
        start = time.process_time()
        translations[name] = [text.tokens[:-1] if text.stopped else text.tokens for text in write_all()]
        times[name] = time.process_time() - start
    return Found(seconds, validation_loss, translations, times)


def alone(who: str, core: int, *arguments) -> Found:
    """What one training finds on a single core, with nothing compiled before."""
    os.sched_setaffinity(0, {core})  # before JAX counts its cores
    jax.config.update("jax_enable_compilation_cache", False)
    return importlib.import_module(BY[who]).train_and_write(*arguments)


def train_all(corpus: Corpus, num_steps: int, settings: Settings) -> dict[str, list[Found]]:
    """Both with each seed, side by side on a core each; they change cores from seed to seed."""
    cores = sorted(os.sched_getaffinity(0))
    spawn, found = multiprocessing.get_context("spawn"), {who: [] for who in BY}
    for seed in range(settings.seeds):
        with ProcessPoolExecutor(min(len(BY), len(cores)), mp_context=spawn, max_tasks_per_child=1) as processes:
            running = {
                who: processes.submit(alone, who, cores[(seed + n) % len(cores)], corpus, num_steps, seed)
                for n, who in enumerate(BY)
            }
            for who, process in running.items():
                found[who].append(process.result())
                bleu = ", ".join(f"{name} {each:.1f}" for name, each in bleu_of(found[who][-1], corpus).items())
                say(f"Multi30k, seed {seed}: {who} trained for {found[who][-1].seconds:.0f} CPU s; BLEU {bleu}")
    return found


def bleu_of(one: Found, corpus: Corpus) -> dict[str, float]:
    """BLEU of each way of writing."""
    return {
        name: pf.training.corpus_bleu([corpus.tokenizer.decode(ids) for ids in texts], corpus.references)
        for name, texts in one.translations.items()
    }


def record(found: dict[str, list[Found]], scores: dict[str, list[dict]], corpus: Corpus, num_steps: int) -> None:
    """Write what the chapter on encoder–decoders shows: the figures of all trainings."""
    result = {
        "steps": num_steps,
        "parameters": pf.count_parameters(pf.Seq2Seq(corpus.config, key=jax.random.key(0))),
        "bleu": {who: {name: [each[name] for each in scores[who]] for name in ("greedy", "beam")} for who in BY},
        "validation_loss": {who: [one.validation_loss for one in found[who]] for who in BY},
        "seconds": {who: [one.seconds for one in found[who]] for who in BY},
    }
    FOUND.parent.mkdir(parents=True, exist_ok=True)
    write_text(FOUND, json.dumps(result, ensure_ascii=False) + "\n")


def goals_of(found: dict[str, list[Found]], scores: dict[str, list[dict]]) -> list[Goal]:
    """A model that translates, as good as PyTorch's, in less time; and a beam that costs little more than greedy."""
    ours, theirs = found.values()
    beam = {who: statistics.fmean(each["beam"] for each in scores[who]) for who in BY}
    faster = ratios([each.seconds for each in theirs], [each.seconds for each in ours])
    dearer = ratios([each.times["beam"] for each in ours], [each.times["greedy"] for each in ours])
    return [
        Goal(f"Multi30k: BLEU of ours, beam of {BEAM_WIDTH}", beam["Plainformer"], "at least", 30),
        Goal("Multi30k: the same less that of PyTorch", beam["Plainformer"] - beam["PyTorch"], "at least", -1),
        Goal("Multi30k, training: share of PyTorch's speed, per CPU second", faster.middle, "at least", 0.75),
        Goal(f"Multi30k: time of a beam of {BEAM_WIDTH} by that of greedy writing", dearer.middle, "at most", 1.5),
    ]


def row(who: str, seed: int, one: Found, scores: dict[str, float], num_steps: int) -> list[str]:
    """A row of the table; what is written greedily and with a beam stands side by side."""
    bleu = " / ".join(f"{number:.1f}" for number in scores.values())
    times = " / ".join(f"{seconds:.1f}" for seconds in one.times.values())
    return [
        who,
        str(seed),
        f"{one.seconds:.0f}",
        f"{num_steps / one.seconds:.2f}",
        f"{one.validation_loss:.3f}",
        bleu,
        times,
    ]


def multi30k(settings: Settings) -> Section:
    corpus, num_steps = read_corpus(settings.multi30k), settings.steps
    found = train_all(corpus, num_steps, settings)
    scores = {who: [bleu_of(one, corpus) for one in found[who]] for who in BY}
    record(found, scores, corpus, num_steps)
    rows = [
        row(who, seed, found[who][seed], scores[who][seed], num_steps) for who in BY for seed in range(settings.seeds)
    ]
    note = (
        f"{num_steps:,} steps of {BATCH_SIZE} of {sum(map(len, corpus.training)):,} pairs, the same for both, which "
        f"train side by side on a core each; all {len(corpus.sources):,} sentences of test_2016_flickr. CPU seconds of "
        "training are with making and compiling the model, of writing without. PyTorch is eager, and its "
        "`nn.Transformer` also drops weights of attention and entries inside the networks; its trained weights, put "
        "into our model, write with our search. BLEU by sacrebleu, cut by 13a, cased; greedy / with a beam of "
        f"{BEAM_WIDTH}. Loss in nats per token of val."
    )
    columns = ["training, CPU s", "steps per CPU s", "validation loss", "BLEU", "writing, CPU s"]
    return Section(
        "Multi30k, German to English", f"{note}\n\n{table(['', 'seed', *columns], rows)}", goals_of(found, scores)
    )
