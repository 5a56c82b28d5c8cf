"""Train on Tiny Shakespeare by characters, as nanoGPT's recipe for a CPU does, and measure the whole validation text.

4 layers, 4 heads, 128 wide, windows of 64 characters, batches of 12, 2,000 steps, no dropout. The classic block is
GPT-2's; the modern one has RMSNorm, rotary positions and SwiGLU, with about as many parameters.
"""

import hashlib
import statistics
import time
from pathlib import Path

import jax

import plainformer as pf
from benchmarks.report import Goal, Section, Settings, say, table
from plainformer.data.text import TINY_SHAKESPEARE_SHA256

SEQ_LEN, BATCH_SIZE = 64, 12
SIZES = {"d_model": 128, "num_layers": 4, "num_heads": 4}
MODERN = {"d_ff": 344, "norm": "rms", "activation": "swiglu", "position_scheme": "rotary", "use_bias": False}
CONFIGS = {
    "classic": pf.DecoderConfig(65, SEQ_LEN, pf.StackConfig(**SIZES)),
    "modern": pf.DecoderConfig(65, SEQ_LEN, pf.StackConfig(**SIZES, **MODERN)),
}
# nanoGPT's for the classic block; the modern one bears, and wants, larger steps.
SCHEDULES = {
    "classic": {"learning_rate": 1e-3, "min_lr_ratio": 0.1},
    "modern": {"learning_rate": 3e-3, "min_lr_ratio": 0.05},
}
WANTED = {"classic": 1.88, "modern": 1.80}
ORDERS = (6, 8, 10)  # of the n-gram models that count the same text


def new_training(name: str, num_steps: int) -> pf.TrainingConfig:
    return pf.TrainingConfig(
        num_steps=num_steps,
        warmup_steps=min(100, num_steps - 1),
        evaluate_every=num_steps,
        **SCHEDULES[name],
    )


def read_text(path: str | None) -> str:
    """The text; `ValueError` says what to do if there is none, or if it is another one."""
    if not path:
        raise ValueError(
            "No text was given, so nothing was trained: make bench TEXT=path/to/tinyshakespeare.txt, "
            "1,115,394 characters, which pf.data.tiny_shakespeare() downloads."
        )
    text = pf.data.load_text(path)
    found = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    if found != TINY_SHAKESPEARE_SHA256:
        raise ValueError(f"{path} is not Tiny Shakespeare: its SHA-256 is {found}, expected {TINY_SHAKESPEARE_SHA256}.")
    return text


def train(config: pf.DecoderConfig, training: pf.TrainingConfig, text: str, seed: int) -> tuple[float, float, float]:
    """Loss on the whole validation text, mean loss of the last 100 batches, and seconds."""
    vocabulary = pf.Vocabulary.from_characters(text)
    train_ids, validation_ids = (vocabulary.encode(part) for part in pf.data.split_text(text))
    start = time.perf_counter()
    model, metrics = pf.fit(
        pf.Decoder(config, key=jax.random.key(seed)),
        pf.training.next_token_loss,
        pf.data.random_windows(train_ids, SEQ_LEN, BATCH_SIZE, seed=seed),
        training,
    )
    seconds = time.perf_counter() - start
    loss = pf.training.corpus_loss(model, pf.data.consecutive_windows(validation_ids, SEQ_LEN))
    return loss, statistics.fmean(row["loss"] for row in metrics[-100:]), seconds


def counted(text: str, order: int) -> float:
    """Loss on the whole validation text of an n-gram model with modified discounts."""
    vocabulary = pf.Vocabulary.from_characters(text)
    train_ids, validation_ids = (vocabulary.encode(part) for part in pf.data.split_text(text))
    return pf.training.NgramModel(train_ids, order, len(vocabulary), discount=None).loss(validation_ids)


def shakespeare(settings: Settings) -> Section:
    text = read_text(settings.text)
    rows, goals = [], []
    for name, config in CONFIGS.items():
        training = new_training(name, settings.steps)
        losses = []
        for seed in range(settings.seeds):
            say(f"{name} block, seed {seed}")
            validation, last, seconds = train(config, training, text, seed)
            say(f"{name} block, seed {seed}: {validation:.4f} after {seconds:.0f} s")
            losses.append(validation)
            rows.append([name, seed, f"{validation:.4f}", f"{last:.4f}", f"{seconds:.0f}"])
        mean = statistics.fmean(losses)
        goals.append(Goal(f"Tiny Shakespeare, {name} block: validation loss", mean, "at most", WANTED[name], 3))
    for order in ORDERS:
        rows.append([f"{order}-gram, counted", "", f"{counted(text, order):.4f}", "", ""])
    sizes = {name: pf.count_parameters(pf.Decoder(config, key=jax.random.key(0))) for name, config in CONFIGS.items()}
    classic, modern = sizes["classic"], sizes["modern"]
    note = (
        f"{settings.steps:,} steps of {BATCH_SIZE} windows of {SEQ_LEN} characters; loss in nats per character, over "
        "all 111,540 held-out characters in windows side by side. Learning rate up to "
        + ", ".join(f"{schedule['learning_rate']:g} ({name})" for name, schedule in SCHEDULES.items())
        + f". Parameters: classic {classic:,}, modern {modern:,} ({modern / classic - 1:+.1%}). "
        "The n-gram models have modified Kneser-Ney smoothing and see the letters of earlier windows, too."
    )
    head = ["block", "seed", "validation loss", "mean of the last 100 batches", "seconds"]
    return Section("Tiny Shakespeare", note + "\n\n" + table(head, rows), goals)
