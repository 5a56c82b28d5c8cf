"""Train a small decoder of letters on the Python reference.

No weights are kept: losses and samples are the result. `record.json` holds them.
"""

import dataclasses
import sys

import jax

import plainformer as pf
from lab.decoder.run import VOCABULARY

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


def losses_of(metrics: list[dict]) -> list[float]:
    """The loss at every step, three digits behind the point."""
    return [round(each["loss"], 3) for each in metrics]


def write(model: pf.Decoder, num_tokens: int, seed: int, temperature: float = 1.0) -> str:
    """What the model writes behind the prompt."""
    prompt, key = VOCABULARY.encode(PROMPT), jax.random.key(seed)
    (written,) = pf.generate(model, [prompt], num_tokens, temperature=temperature, key=key)
    return VOCABULARY.decode(written.tokens)


def learn_small(text: list[int], num_steps: int = TRAINING.num_steps, **rest):
    """The small decoder, and its metrics; a training that ends early has the learning rates of the whole."""
    model, loss = pf.Decoder(SMALL, key=jax.random.key(0)), pf.training.next_token_loss
    config = dataclasses.replace(TRAINING, num_steps=num_steps, warmup_steps=None)
    schedule = pf.training.learning_rate_schedule(TRAINING)
    batches = pf.data.random_windows(text, SEQ_LEN, BATCH_SIZE)
    return pf.fit(model, loss, batches, config, schedule=schedule, **rest, progress=False)


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


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: the loss on what is held out, after the last step."""
    return {"validation": f"{found['validation'][-1]:.2f}"}


def card(found: dict) -> str:
    """What was done, and what came out."""
    parameters = pf.count_parameters(pf.Decoder(SMALL, key=jax.random.key(0)))
    steps = range(0, TRAINING.num_steps + 1, TRAINING.evaluate_every or 1)
    evaluated = zip(steps, found["validation"], strict=True)
    rows = "\n".join(f"| {step} | {loss:.2f} |" for step, loss in evaluated)
    return f"""# The first decoder of letters

A small decoder of Python's reference. No weights are kept: losses and samples are the result, and stand in
`record.json`.

- **Data.** `plainformer.data.python_reference_splits()` of Python {found["python"]}, one token per character:
  {found["training characters"]:,} to train on, {found["validation characters"]:,} held out.
- **Model.** 3 blocks of width 96 with 4 heads, inner width 256, SwiGLU, tied, {parameters:,} parameters, with RMS norm
  and rotary positions, without biases.
- **Training.** {TRAINING.num_steps} steps of {BATCH_SIZE} windows of {SEQ_LEN}, AdamW, learning rate up to
  {TRAINING.learning_rate} after {TRAINING.warmup_steps} steps of warm-up, seed 0. All settings stand in
  `lab/first_decoder/run.py`; `make models` trains it again.
- **Result.** Loss on all that is held out, in nats per character; `record.json` has what is written behind
  {PROMPT!r} at a temperature of 0.7, too:

| steps | loss |
|---|---|
{rows}

- **Limits.** One seed, few steps; nothing was tuned. On other versions of Python the text differs a little, and so do
  losses and samples.
- **Licence.** The numbers are under Apache-2.0, as the code; the text is part of CPython and has its licence.
"""


def results() -> dict:
    """Train it and return losses and samples."""
    training, validation = (VOCABULARY.encode(text) for text in pf.data.python_reference_splits())
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "training characters": len(training),
        "validation characters": len(validation),
        **small(training, validation),
    }
