"""One block on stories, as it should be, without the mask, and without the shift, and its losses.

No weights are kept: losses and what is written are the result. `record.json` holds them.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab import growing
from lab.growing import VOCABULARY, WORDS

BEGINNING = ". Anna is in the hall ."
ONE_BLOCK = pf.DecoderConfig(
    WORDS,
    growing.LENGTH + 1,
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
TRAINING = pf.TrainingConfig(num_steps=300, learning_rate=0.02, warmup_steps=10, weight_decay=0.0)
NUM_TESTED = 100  # of the stories kept back
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


def learned(name: str, num_steps: int = TRAINING.num_steps):
    """The model with one block, with or without mask and shift, and its metrics."""
    masked, shifted = CASES[name]
    model, loss = pf.Decoder(ONE_BLOCK, key=jax.random.key(1)), loss_with(masked=masked, shifted=shifted)
    config = dataclasses.replace(TRAINING, num_steps=num_steps, warmup_steps=None)
    schedule = pf.training.learning_rate_schedule(TRAINING)  # that of the whole, if a training ends early
    return pf.fit(model, loss, growing.batches_of(0), config, schedule=schedule, progress=False)


def in_use(model) -> float:
    """The loss on stories kept back, where the past is all that is given."""
    ids = growing.kept_back().ids[:NUM_TESTED]
    return float(pf.cross_entropy(growing.log_probabilities(model, ids[:, :-1]), jnp.asarray(ids[:, 1:])))


def case(name: str) -> dict:
    """What comes of one case: losses, the loss in use, and what the model writes."""
    model, metrics = learned(name)
    (written,) = pf.generate(model, [BEGINNING], 16, tokenizer=VOCABULARY, key=jax.random.key(0))
    losses = [round(each["loss"], 3) for each in metrics]
    found = {"losses": losses, "in_use": round(in_use(model), 3), "sample": written.text}
    print(name, losses[-1], found["in_use"], found["sample"], flush=True)
    return found


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: the lowest loss possible."""
    return {"lowest": f"{found['lowest']:.2f}"}


def card(found: dict) -> str:
    """What was done, and what came out."""
    parameters = pf.count_parameters(pf.Decoder(ONE_BLOCK, key=jax.random.key(0)))
    cases = "\n".join(
        f"| {name} | {np.mean(each['losses'][-20:]):.2f} | {each['in_use']:.2f} |"
        for name, each in found["cases"].items()
    )
    return f"""# A block without its mask, and without its shift

One block that learns stories as it should, without the mask, and without the shift. No weights are
kept: losses and what is written are the result, and stand in `record.json`.

- **Data.** Stories of the little world, as for the machines of `lab/staircase`: {growing.NUM_STORIES:,} to learn from,
  {NUM_TESTED} others to test on, whose lowest possible loss is {found["lowest"]:.2f} nats per word.
- **Model.** One block of width 32 with 4 heads, inner width 64, relu, RMS norm, rotary positions, not tied, without
  biases: {parameters:,} parameters.
- **Training.** {TRAINING.num_steps} steps of {growing.BATCH_SIZE} stories of {growing.LENGTH} words, AdamW, learning
  rate up to {TRAINING.learning_rate} after {TRAINING.warmup_steps} steps of warm-up, no weight decay, seed 1.
- **Result.** The loss in training, mean of the last twenty steps; the loss in use, where the past is all that is given;
  in the file also what is written behind {BEGINNING!r}:

| case | training loss | in use |
|---|---|---|
{cases}

- **Limits.** One seed, few steps; nothing was tuned.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""


def results() -> dict:
    """Train the three and return losses and what they write."""
    lowest = round(float(growing.kept_back().least[:NUM_TESTED].mean()), 4)
    return {"lowest": lowest, "cases": {name: case(name) for name in CASES}}
