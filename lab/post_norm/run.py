"""Train twelve blocks with one knob turned after the other, and see what lets post-norm learn.

No weights are kept: the losses are the result, and stand in `record.json` with a card.
"""

import dataclasses
import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.blocks import run as blocks_run
from lab.blocks.run import BATCH_SIZE, SEQ_LEN, steps_of_adam
from lab.post_norm.runs import KINDS, MASK_ID, RUNS, SAID, STARTS, Run, bert
from lab.records import BUILD, ends
from plainformer.tokens.tokens import normal

KEPT = BUILD / "post_norm"
PER_CURVE, MASKED, NUM_WINDOWS = 20, 0.15, 1784


class Reader(eqx.Module):
    """Blocks that say what byte comes next, or which one was hidden."""

    table: jax.Array
    first_norm: pf.LayerNorm | None
    blocks: pf.Block  # all of them, stacked
    final_norm: pf.LayerNorm | None
    readout: jax.Array
    skip: float = eqx.field(static=True)
    is_masked: bool = eqx.field(static=True)
    has_positions: bool = eqx.field(static=True)

    def __init__(self, run: Run, key):
        table_key, readout_key, *block_keys = jax.random.split(key, 2 + run.depth)
        self.table = jax.random.normal(table_key, (MASK_ID + (run.task == "masked"), run.width))
        self.readout = jax.random.normal(readout_key, (run.width, MASK_ID)) / run.width**0.5
        self.first_norm = pf.LayerNorm(run.width) if run.normed_input else None
        self.final_norm = pf.LayerNorm(run.width) if run.placement == "pre" else None
        kinds = pf.StackConfig(d_model=run.width, num_heads=4, activation="relu", norm_placement=run.placement)
        blocks = eqx.filter_vmap(lambda key: pf.make_block(kinds, key=key))(jnp.stack(block_keys))
        self.blocks = started(blocks, run, jax.random.fold_in(key, 1))
        self.skip, self.is_masked = run.skip, run.task == "masked"
        self.has_positions = run.positions

    def rows(self, ids):
        """The tokens after the last block."""
        x = self.table[ids]
        if self.has_positions:
            x = x + pf.sinusoidal_positions(jnp.arange(ids.shape[-1]), x.shape[-1])
        x = x if self.first_norm is None else self.first_norm(x)
        mask = None if self.is_masked else pf.causal_mask(ids.shape[-1])
        arrays, static = eqx.partition(self.blocks, eqx.is_array)

        def through(x, one):
            block = eqx.combine(one, static)
            if block.norm_placement == "pre":
                return block(x, mask), None
            x = block.attention_norm(self.skip * x + block.attention(x, mask))
            return block.feed_forward_norm(self.skip * x + block.feed_forward(x)), None

        return jax.lax.scan(through, x, arrays)[0]

    def __call__(self, ids):
        x = self.rows(ids)
        return (x if self.final_norm is None else self.final_norm(x)) @ self.readout


def matrices(blocks: pf.Block) -> dict[str, list]:
    """All matrices of the blocks, by what they make."""
    attention, network = blocks.attention, blocks.feed_forward
    assert isinstance(network, pf.FeedForward)
    return {
        "scores": [attention.query.weight, attention.key.weight],
        "values": [attention.value.weight, attention.output.weight],
        "network": [network.up.weight, network.down.weight],
    }


def started(blocks: pf.Block, run: Run, key) -> pf.Block:
    """The blocks with the initial weights of this run: Glorot's, but for the kinds of matrices that it names."""
    if run.start == "last":
        return blocks_run.with_smaller_last(blocks)

    def chosen(blocks):
        return [weight for kind, of_kind in matrices(blocks).items() for weight in of_kind if kind in run.small]

    all_keys = dict(zip(matrices(blocks), jax.random.split(key, 6).reshape(3, 2), strict=True))
    keys = [one for kind, of_kind in all_keys.items() for one in of_kind if kind in run.small]
    if run.start == "times":
        return eqx.tree_at(chosen, blocks, [run.factor * old for old in chosen(blocks)])
    if run.start == "PyTorch":  # Glorot's on queries, keys and values side by side; their output as an `nn.Linear`
        bounds = [(6 / (4 * run.width)) ** 0.5] * 3 + [run.width**-0.5]
        parts = zip(keys, chosen(blocks), bounds, strict=True)
        drawn = [jax.random.uniform(one, old.shape, minval=-bound, maxval=bound) for one, old, bound in parts]
        return eqx.tree_at(chosen, blocks, drawn)
    drawn = [run.std * normal(one, old.shape, cut_at=2.0) for one, old in zip(keys, chosen(blocks), strict=True)]
    return eqx.tree_at(chosen, blocks, drawn) if drawn else blocks


def examples(run: Run, text: np.ndarray, seed: int, num_steps: int) -> tuple[np.ndarray, ...]:
    """Inputs, targets and which of them count, `(num_steps, batch, SEQ_LEN)` each."""
    starts = np.random.default_rng(seed).integers(len(text) - SEQ_LEN, size=(num_steps, BATCH_SIZE, 1))
    return hidden(run, text[starts + np.arange(SEQ_LEN + 1)].astype(np.int32), seed)


def hidden(run: Run, pieces: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """What is read of pieces of text, what is to be said, and where it counts."""
    if run.task == "next":
        return pieces[..., :-1], pieces[..., 1:], np.ones(pieces[..., 1:].shape, bool)
    targets = pieces[..., :-1]
    is_hidden = np.random.default_rng(1000 + seed).random(targets.shape) < MASKED
    return np.where(is_hidden, MASK_ID, targets), targets, is_hidden


def loss_of(model: Reader, batch):
    """Mean loss in nats where it counts."""
    inputs, targets, counts = batch
    return pf.cross_entropy(model(inputs), targets, counts)


def trained(run: Run, text: np.ndarray, seed: int, num_steps: int | None = None):
    """A model untrained and after its training, or the first steps of it, and its losses."""
    start = eqx.filter_jit(Reader)(run, jax.random.key(seed))
    num_steps = run.steps if num_steps is None else num_steps
    batches = tuple(map(jnp.asarray, examples(run, text, seed, num_steps)))
    rates = run.rate * np.minimum(1, np.arange(1, num_steps + 1) / max(run.warmup, 1)).astype(np.float32)
    model, losses = eqx.filter_jit(steps_of_adam)(start, batches, jnp.asarray(rates), loss_of)
    return start, model, np.asarray(losses)


@eqx.filter_jit
def tested(model: Reader, batch):
    """Loss, and how different the tokens of a window are after the last block, as the chapter's r(X)."""
    x = model.rows(batch[0])
    off = x - x.mean(axis=1, keepdims=True)
    return loss_of(model, batch), (jnp.linalg.norm(off, axis=(1, 2)) / jnp.linalg.norm(x, axis=(1, 2))).mean()


def result_of(run: Run, seed: int, training: np.ndarray, validation: np.ndarray) -> dict:
    """What one model came to, kept under `build`, where it is read if it is there."""
    kept = KEPT / f"{run.name}-{seed}-{len(training)}.json"
    if not kept.exists():
        start, model, losses = trained(run, training, seed)
        pieces = validation[np.arange(NUM_WINDOWS)[:, None] * SEQ_LEN + np.arange(SEQ_LEN + 1)].astype(np.int32)
        batch = tuple(map(jnp.asarray, hidden(run, pieces, 0)))
        found = {
            "seed": seed,
            "first": [round(float(loss), 3) for loss in losses[:10]],
            "curve": [round(float(loss), 3) for loss in losses.reshape(PER_CURVE, -1).mean(axis=1)],
            "apart": round(float(tested(start, batch)[1]), 4),
            "apart_after": round(float(tested(model, batch)[1]), 4),
            "validation": round(float(tested(model, batch)[0]), 4),
        }
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps(found), encoding="utf-8")
        print(run.name, seed, found["validation"], found["apart"], found["apart_after"], flush=True)
    return json.loads(kept.read_text(encoding="utf-8"))


def described(run: Run) -> str:
    """What is changed in a run, in words."""
    changed = ["pre-norm"] if run.placement == "pre" else []
    if run.start == "last":
        changed.append("last matrices divided by √24, as in GPT-2")
    elif run.small:
        kinds = "all matrices" if run.small == KINDS else " and ".join(run.small)
        sizes = {0.02: "with a deviation of 0.02"}.get(run.std, "as BERT's")
        of_start = {"times": f"times {run.factor:.2g}", "PyTorch": "as in PyTorch's attention"}
        changed.append(f"{kinds} {of_start.get(run.start, sizes)}")
    plain, words = (
        Run(),
        {
            "rate": "a rate of {:g}",
            "warmup": "a warm-up of {:,} steps",
            "width": "width {}",
            "depth": "{} blocks",
            "skip": "the skip times {:.2g}",
            "normed_input": "a norm on the input",
            "positions": "positions",
            "task": "{} bytes to guess",
        },
    )
    fields = {name: getattr(run, name) for name in words}
    changed += [words[name].format(value) for name, value in fields.items() if value != getattr(plain, name)]
    return ", ".join(changed) or "nothing"


def line_of(run: dict) -> str:
    """The line of a run in the card, and of some in the chapter."""
    models = run["models"]
    apart, losses = (", ".join(f"{model[name]:.2f}" for model in models) for name in ("apart", "validation"))
    return f"| {run['described']} | {run['steps']:,} | {apart} | {losses} |"


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: how different the tokens are before training, the losses after it; and a table."""
    runs = dict(zip(RUNS, found["runs"], strict=True))
    texts: dict[str, str] = {}
    for name, run in SAID.items():
        for number in ("apart", "validation"):
            of_seeds = {model["seed"]: model[number] for model in runs[run]["models"]}
            texts |= {f"{name}.{number}.{seed}": f"{value:.2f}" for seed, value in of_seeds.items()}
            texts |= ends(f"{name}.{number}", of_seeds.values())
    head = ["| changed | steps | r(X) before | loss, seeds 0, 1, 2 |", "|---" * 4 + "|"]
    return texts | {"starts": "\n".join([*head, *(line_of(runs[run]) for run in STARTS)])}


def card(found: dict) -> str:
    """What was done, and what came out."""
    lines = "\n".join(line_of(run) for run in found["runs"])
    std = bert().std
    return f"""# Which knob lets twelve post-norm blocks learn

The models of `lab/blocks` with post-norm, the same data, task and optimiser, with one thing changed after the other. No
weights are kept: the losses are the result, and stand in `record.json`.

- **Model.** {Run().depth} blocks of width {Run().width} with 4 heads, Glorot's weights, post-norm.
- **Training.** Batches of {BATCH_SIZE} excerpts of {SEQ_LEN} bytes; Adam, a rate of {Run().rate:g} after a warm-up of
  {Run().warmup:,} steps along a straight line; the seeds are 0, 1, 2, or 0 alone.
- **Words.** *Scores* are the matrices of queries and keys, *values* those of values and the output matrices. *As
  BERT's*: drawn from a normal distribution, cut at twice its standard deviation of {std:.3f}, which is BERT's 0.02 at
  width 768, carried over to width 32 so that products have the same size (in proportion at other widths). *Masked*
  bytes: {MASKED:.0%} are hidden and guessed from both sides, with sinusoids as positions.
- **Result and knobs turned.** How different the tokens of a window are after the last block before training, the r(X)
  of {{ref}}`sec-depth` on validation text, and the validation loss after the last step, in nats per byte, by seed:

| changed | steps | r(X) before | loss |
|---|---|---|---|
{lines}

- **Limits.** One text, no decay of the rate; the knobs of one seed, and 2,000 steps, are enough to see who leaves the
  entropy of single bytes, 3.26, and not for fine differences: at the end all that learn still improve.
- **Licence.** The losses are under Apache-2.0, as the code; the text is part of CPython and has its licence.
"""


def results() -> dict:
    """Train all runs and return their losses."""
    training, validation = blocks_run.as_bytes()
    runs = [
        {**dataclasses.asdict(run), "described": described(run)}
        | {"models": [result_of(run, seed, training, validation) for seed in seeds]}
        for run, seeds in RUNS.items()
    ]
    return {"training_bytes": len(training), "runs": runs}
