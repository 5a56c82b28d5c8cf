"""Train the first decoders of chapter 07: the small one, and three that show what mask and shift are for.

No weights are kept: losses and samples are the result. `first_decoder.json` holds them.
"""

import dataclasses
import sys
from pathlib import Path

import jax
from records import write_record
from train_decoder import VOCABULARY

import plainformer as pf

ROOT = Path(__file__).resolve().parents[2]
PROMPT = "The "
SMALL = pf.DecoderConfig(
    vocab_size=len(VOCABULARY),
    context_len=128,
    stack=pf.StackConfig(
        d_model=96,
        num_layers=3,
        num_heads=4,
        d_ff=256,
        norm="rms",
        activation="swiglu",
        position_scheme="rotary",
        use_bias=False,
    ),
)
TRAINING = pf.TrainingConfig(num_steps=250, learning_rate=6e-3, warmup_steps=20, evaluate_every=50)
SEQ_LEN, BATCH_SIZE = 128, 16

ONE_BLOCK = pf.DecoderConfig(
    vocab_size=len(VOCABULARY),
    context_len=128,
    stack=pf.StackConfig(
        d_model=32,
        num_layers=1,
        num_heads=4,
        d_ff=64,
        norm="rms",
        activation="relu",
        position_scheme="rotary",
        use_bias=False,
    ),
    tied_embedding=False,
)
TRAINING_ONE = pf.TrainingConfig(num_steps=300, learning_rate=0.02, warmup_steps=10, weight_decay=0.0)
SEQ_LEN_ONE, NUM_TESTED = 32, 8000
CASES = {  # whether there is a mask, and whether the targets are shifted
    "as it should be": (True, True),
    "without the mask": (False, True),
    "without the shift": (True, False),
}


def loss_with(*, masked: bool, shifted: bool):
    """The loss of a decoder whose mask or shift may be forgotten."""

    def loss(model, batch, key):
        inputs, targets = batch
        mask = pf.causal_mask(inputs.shape[1]) if masked else None
        x = model.embedding(inputs)
        for block in model.stack.blocks:
            x = block(x, mask, scheme=model.stack.scheme)
        return pf.cross_entropy(model.logits(x), targets if shifted else inputs)

    return loss


def batches(kind: pf.TrainingConfig, text: list[int]):
    """The function from a step to its batch."""
    return pf.data.random_windows(text, SEQ_LEN if kind == TRAINING else SEQ_LEN_ONE, BATCH_SIZE)


def first_steps(kind: pf.TrainingConfig, num_steps: int) -> dict:
    """The arguments of `fit` with which a training ends early, at the learning rates of the whole."""
    config = dataclasses.replace(kind, num_steps=num_steps, warmup_steps=None)
    return {"config": config, "schedule": pf.training.learning_rate_schedule(kind)}


def losses_of(metrics: list[dict]) -> list[float]:
    """The loss at every step, three digits behind the point."""
    return [round(each["loss"], 3) for each in metrics]


def write(model: pf.Decoder, num_tokens: int, seed: int, temperature: float = 1.0) -> str:
    """What the model writes behind the prompt."""
    prompt, key = VOCABULARY.encode(PROMPT), jax.random.key(seed)
    (written,) = pf.generate(model, [prompt], num_tokens, temperature=temperature, key=key)
    return VOCABULARY.decode(written.tokens)


def learn_case(name: str, text: list[int], num_steps: int = TRAINING_ONE.num_steps):
    """The model with one block, with or without mask and shift, and its metrics."""
    masked, shifted = CASES[name]
    model, loss = pf.Decoder(ONE_BLOCK, key=jax.random.key(1)), loss_with(masked=masked, shifted=shifted)
    return pf.fit(model, loss, batches(TRAINING_ONE, text), **first_steps(TRAINING_ONE, num_steps), progress=False)


def case(name: str, training: list[int], validation: list[int]) -> dict:
    """What comes of one case: losses, the loss where the past is all that is given, and what the model writes."""
    model, metrics = learn_case(name, training)
    in_use = pf.training.corpus_loss(model, pf.data.consecutive_windows(validation[:NUM_TESTED], SEQ_LEN_ONE))
    return {"losses": losses_of(metrics), "in_use": round(in_use, 3), "sample": write(model, 50, seed=0)}


def learn_small(text: list[int], num_steps: int = TRAINING.num_steps, **rest):
    """The small decoder, and its metrics."""
    model, loss = pf.Decoder(SMALL, key=jax.random.key(0)), pf.training.next_token_loss
    return pf.fit(model, loss, batches(TRAINING, text), **first_steps(TRAINING, num_steps), **rest, progress=False)


def small(training: list[int], validation: list[int]) -> dict:
    """What comes of the small decoder: losses, and every 50 steps the loss on all that is held out, and a sample."""
    windows = pf.data.consecutive_windows(validation, SEQ_LEN)
    samples, held_out = [], []

    def evaluate(model) -> float:
        samples.append(write(model, 70, seed=2, temperature=0.7))
        held_out.append(round(pf.training.corpus_loss(model, windows), 3))
        print(held_out[-1], repr(samples[-1]), flush=True)
        return held_out[-1]

    evaluate(pf.Decoder(SMALL, key=jax.random.key(0)))
    _, metrics = learn_small(training, evaluate=evaluate)
    return {"losses": losses_of(metrics), "validation": held_out, "samples": samples}


def card(results: dict) -> str:
    """What was done, and what came out."""
    parameters = [f"{pf.count_parameters(pf.Decoder(each, key=jax.random.key(0))):,}" for each in (SMALL, ONE_BLOCK)]
    cases = "\n".join(
        f"| {name} | {each['losses'][-1]:.2f} | {each['in_use']:.2f} |" for name, each in results["cases"].items()
    )
    steps = range(0, TRAINING.num_steps + 1, TRAINING.evaluate_every or 1)
    evaluated = zip(steps, results["small"]["validation"], strict=True)
    rows = "\n".join(f"| {step} | {loss:.2f} |" for step, loss in evaluated)
    return f"""# The first decoders of chapter 07

A small decoder of Python's reference, and one with a single block that is trained as it should be, without the mask,
and without the shift. No weights are kept: losses and samples are the result, and stand in `first_decoder.json`.

- **Data.** `plainformer.data.python_reference_splits()` of Python {results["python"]}, one token per character:
  {results["training"]:,} to train on, {results["validation"]:,} held out.
- **Models.** Small: 3 blocks of width 96 with 4 heads, inner width 256, SwiGLU, tied, {parameters[0]} parameters. One
  block: width 32, 4 heads, inner width 64, relu, not tied, {parameters[1]} parameters. Both with RMS norm and rotary
  positions, without biases.
- **Training.** Small: {TRAINING.num_steps} steps of {BATCH_SIZE} windows of {SEQ_LEN}, AdamW, learning rate up to 0.006
  after {TRAINING.warmup_steps} steps of warm-up, seed 0. One block: {TRAINING_ONE.num_steps} steps of {BATCH_SIZE}
  windows of {SEQ_LEN_ONE}, up to 0.02, no weight decay, weights of seed 1. All settings stand in
  `tools/models/train_first_decoder.py`; `make models` trains them again.
- **Small.** Loss on all that is held out, in nats per character; `first_decoder.json` has what is written behind
  {PROMPT!r} at a temperature of 0.7, too:

| steps | loss |
|---|---|
{rows}

- **One block.** The last loss in training; the loss in use, on {NUM_TESTED:,} characters held out, where the past is
  all that is given; in the file also what is written behind {PROMPT!r} at a temperature of 1:

| case | training loss | in use |
|---|---|---|
{cases}

- **Limits.** One seed, few steps; nothing was tuned. On other versions of Python the text differs a little, and so do
  losses and samples.
- **Licence.** The numbers are under Apache-2.0, as the code; the text is part of CPython and has its licence.
"""


def train() -> None:
    """Train all of them, and write losses and samples with a card."""
    training, validation = (VOCABULARY.encode(text) for text in pf.data.python_reference_splits())
    results = {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "training": len(training),
        "validation": len(validation),
        "cases": {name: case(name, training, validation) for name in CASES},
        "small": small(training, validation),
    }
    write_record("first_decoder", results, card(results))


if __name__ == "__main__":
    train()
