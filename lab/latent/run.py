"""Train decoders that keep less and less of each token, with grouped heads and with short vectors.

Every kind has as many learned numbers as full attention: what its attention saves or costs, its networks get or give.
No weights are kept: the losses stand in `record.json`, with the seconds that writing takes by each kind of cache.
"""

import dataclasses
import time
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.growing import LENGTH, WORDS, expected_by, kept_back, stories_of
from lab.records import BUILD, kept
from plainformer.attention import LatentAttention, LatentConfig, latent_keys, latent_values
from plainformer.models.accounting import cache_bytes
from plainformer.positions.positions import NO_POSITIONS

KEPT = BUILD / "latent"
LAYERS, HEADS, BATCH, STEPS, SEEDS, RATE = 2, 8, 16, 250, (0, 1, 2), 0.006
# Heads of keys and values, or the width of a short vector; those in a line keep equally many numbers of each token.
GROUPED, LATENT = (8, 4, 2, 1), (60, 28, 12)
ROTARY = 4  # columns that all heads share, beside 8 of their own


@dataclasses.dataclass(frozen=True)
class Run:
    """One training: what is kept of a token, and how long, how wide and how fast the model learns."""

    kind: str
    size: int
    seed: int = 0
    steps: int = STEPS
    width: int = 64
    rate: float = RATE

    @property
    def stack(self) -> pf.StackConfig:
        """The blocks, with networks of such a width that all kinds learn equally many numbers, but for norms."""
        head = self.width // HEADS
        sizes: dict[str, Any] = {"num_kv_heads": self.size}
        if self.kind == "latent":
            sizes = {"latent": LatentConfig(width=self.size, rotary_width=ROTARY), "d_k": head + ROTARY, "d_v": head}
        own: dict[str, Any] = {
            "d_model": self.width,
            "num_heads": HEADS,
            "num_layers": LAYERS,
            "norm": "rms",
            "use_bias": False,
        }
        own |= {"position_scheme": "rotary"}
        full, other = (matrices(pf.StackConfig(**own, **each)) for each in ({}, sizes))
        per_column = 2 * LAYERS * self.width
        return pf.StackConfig(**own, **sizes, d_ff=4 * self.width + round((full - other) / per_column))

    @property
    def found(self) -> dict:
        """What came out; kept under `build`."""
        name = "-".join(map(str, dataclasses.astuple(self)))
        return dataclasses.asdict(self) | kept(KEPT / f"{name}.json", lambda: trained(self))


def matrices(stack: pf.StackConfig) -> int:
    """How many numbers the matrices of a stack's blocks hold."""
    model = eqx.filter_eval_shape(pf.Decoder, pf.DecoderConfig(2, 2, stack), key=jax.random.key(0))
    return sum(leaf.size for leaf in jax.tree.leaves(model.stack) if getattr(leaf, "ndim", 0) == 2)


@cache
def words_of(seed: int) -> np.ndarray:
    """The stories of a seed, in an order of its own."""
    return np.random.default_rng(seed).permutation(stories_of(seed))


def trained(run: Run) -> dict:
    """Train one model and judge it."""
    begin, stories = time.perf_counter(), words_of(run.seed)
    model = pf.Decoder(pf.DecoderConfig(WORDS, LENGTH + 1, run.stack), key=jax.random.key(run.seed))

    def batch_at(step: int) -> pf.data.Windows:
        read = stories[np.arange(step * BATCH, (step + 1) * BATCH) % len(stories)]
        return pf.data.Windows(jnp.asarray(read[:, :-1]), jnp.asarray(read[:, 1:]))

    settings: dict[str, Any] = {
        "num_steps": run.steps,
        "learning_rate": run.rate,
        "warmup_steps": run.steps // 10,
        "weight_decay": 0.1,
    }
    config = pf.TrainingConfig(**settings, seed=run.seed)
    model, _ = pf.fit(model, pf.training.next_token_loss, batch_at, config, progress=False)
    surprise = -np.take_along_axis(expected_by(model), kept_back().ids[:, 1:, None], axis=2)[..., 0]
    found = {
        "above": round(float((surprise - kept_back().least).mean()), 5),
        "parameters": pf.count_parameters(model),
        "cache": cache_bytes(run.stack, 1),
        "seconds": round(time.perf_counter() - begin, 1),
    }
    print(run, found, flush=True)
    return found


class Expanded(LatentAttention):
    """The same layer, which makes the keys and values of all heads anew of what is kept, for every token."""

    def extend(self, x, cache, positions, *, scheme=NO_POSITIONS):
        """Read further tokens, without the absorbed form."""
        latents, rotary_keys = self._kept(x, scheme, positions)
        cache = cache.append(rotary_keys[..., None, :, :], latents[..., None, :, :], positions)
        kept, (key_up, value_up) = cache.values[..., 0, :, :], self._ups
        keys, values = latent_keys(kept, cache.keys[..., 0, :, :].mT, key_up), latent_values(kept, value_up)
        queries = self._queries(x, scheme, positions[..., None, :])
        heads = pf.attend(queries, keys, values, cache.mask(positions)[..., None, :, :])
        return self.output(pf.merge_heads(heads)), cache


WRITING: dict[str, Any] = {
    "d_model": 512,
    "num_heads": 8,
    "num_layers": 2,
    "norm": "rms",
    "use_bias": False,
    "d_ff": 512,
}
WRITTEN, CAPACITY, TEXTS = 16, 4096, 4  # tokens that are written, places in a cache, texts side by side
KINDS: dict[str, dict[str, Any]] = {
    "full": {},
    "two heads": {"num_kv_heads": 2},
    "one head": {"num_kv_heads": 1},
    "latent": {"latent": LatentConfig(width=96, rotary_width=32), "d_k": 96, "d_v": 64},
}
KINDS |= {"latent, expanded": KINDS["latent"]}


def with_expanded(model: pf.Decoder) -> pf.Decoder:
    """The model with attention of the same sizes that makes keys and values anew for every token."""

    def attentions(model):
        return [block.attention for block in model.stack.blocks]

    sizes: dict[str, Any] = KINDS["latent"] | {
        "latent_norm": attentions(model)[0].latent_norm,
        "key": jax.random.key(0),
    }
    layer = Expanded(WRITING["d_model"], WRITING["num_heads"], **sizes)
    return eqx.tree_at(attentions, model, [layer] * len(attentions(model)))


@eqx.filter_jit(donate="all-except-first")
def write(model: pf.Decoder, cache):
    """Write some tokens for several texts, greedily, and return the cache."""

    def step(carry, _):
        tokens, cache = carry
        rows, cache = model.extend(tokens, cache)
        return (model.logits(rows).argmax(axis=-1).astype(tokens.dtype), cache), None

    start = jnp.zeros((TEXTS, 1), jnp.int32), cache
    return jax.lax.scan(step, start, length=WRITTEN)[0][1]


def seconds_of(kind: str) -> dict:
    """How long a token takes, of a model that has read nearly as much as its cache holds, if it writes for some texts.

    Its numbers are as drawn, and what is kept is zeros: time does not depend on them.
    """
    stack = pf.StackConfig(**WRITING, **KINDS[kind], position_scheme="rotary")
    model = pf.Decoder(pf.DecoderConfig(WORDS, CAPACITY, stack), key=jax.random.key(0))
    model = with_expanded(model) if kind == "latent, expanded" else model
    read = CAPACITY - WRITTEN
    places = jnp.where(jnp.arange(CAPACITY) < read, jnp.arange(CAPACITY), -1) * jnp.ones((TEXTS, 1), jnp.int32)

    def full():
        parts = model.make_cache(batch=(TEXTS,))
        return tuple(eqx.tree_at(lambda c: (c.positions, c.length), each, (+places, jnp.int32(read))) for each in parts)

    times = []
    for _ in range(6):  # the first one compiles
        cache = jax.block_until_ready(full())
        begin = time.perf_counter()
        jax.block_until_ready(write(model, cache))
        times.append(time.perf_counter() - begin)
    found = {"milliseconds": round(1000 * float(np.median(times[1:])) / WRITTEN, 2), "cache": cache_bytes(stack, 1)}
    print(kind, found, flush=True)
    return found


def grid() -> list[Run]:
    """What is kept of a token, by every kind and size, with three seeds."""
    sizes = [("grouped", size) for size in GROUPED] + [("latent", size) for size in LATENT]
    return [Run(kind, size, seed) for kind, size in sizes for seed in SEEDS]


def knobs() -> dict[str, list[Run]]:
    """What else was turned, for full attention and for the two that keep least."""
    least = [("grouped", GROUPED[0]), ("grouped", GROUPED[-1]), ("latent", LATENT[-1])]
    narrow = [("grouped", GROUPED[0]), ("grouped", GROUPED[-1]), ("latent", 4)]
    return {
        "twice the steps": [Run(*each, steps=2 * STEPS) for each in (least[0], least[-1])],
        "five times the steps": [Run(*each, steps=5 * STEPS) for each in least],
        f"rate {RATE / 2:g}": [Run(*each, rate=RATE / 2) for each in least],
        f"rate {RATE * 2:g}": [Run(*each, rate=RATE * 2) for each in least],
        "half the width": [Run(*each, width=32) for each in narrow],
    }


def line(run: dict, above: str, head: str = "") -> str:
    """A line of a table."""
    heads = "one head" if run["size"] == 1 else f"{run['size']} heads"
    kind = f"{heads} of keys and values" if run["kind"] == "grouped" else f"short vector of {run['size']}"
    return f"| {head}{kind} | {run['cache']} | {run['parameters']:,} | {above} |"


def tables(found: dict) -> tuple[str, str, str]:
    """The trainings, the knobs that were turned, and the seconds of writing."""
    head = "| what is kept | bytes per token | numbers | nats above the floor |\n|---|---|---|---|\n"
    lines = []
    for first in found["runs"][:: len(SEEDS)]:
        seeds = [run["above"] for run in found["runs"] if (run["kind"], run["size"]) == (first["kind"], first["size"])]
        lines.append(line(first, f"{np.mean(seeds):.4f} ({min(seeds):.4f} to {max(seeds):.4f})"))
    turned = [line(run, f"{run['above']:.4f}", f"{name}: ") for name, runs in found["knobs"].items() for run in runs]
    writing = ["| what is kept | bytes per token | milliseconds |\n|---|---|---|"]
    writing += [f"| {kind} | {each['cache']} | {each['milliseconds']} |" for kind, each in found["writing"].items()]
    return head + "\n".join(lines), head + "\n".join(turned), "\n".join(writing)


def card(found: dict) -> str:
    """What was done, and what came out."""
    trainings, turned, writing = tables(found)
    return f"""# How little of a token can be kept

Decoders that keep keys and values of 8, 4, 2 or 1 heads, or one short vector of which those of all heads are made
(latent attention, {{ref}}`sec-modern`), on stories of the little world. No weights are kept: the numbers
stand in `record.json`.
Settings: `lab/latent/run.py`; `make models ONLY=latent` trains all again.

- **Data.** Stories of `pf.data.stories`, {LENGTH} words each, judged on 400 others, whose lowest possible loss is
  {found["floor"]:.4f} nats per word.
- **Models.** {LAYERS} blocks, width 64, {HEADS} heads of 8 columns, RMS norm, gelu, rotary positions, no biases. A key
  of latent attention has {ROTARY} columns more, which all heads share and which alone turn. Networks are wider or
  narrower, so that all learn equally many numbers, but for the norms of short vectors: those are the {found["norms"]}
  numbers by which models differ at most. Bytes are those of both blocks, 4 for each number.
- **Training.** {STEPS} steps of {BATCH} stories, each read once; AdamW, weight decay 0.1, learning rate {RATE:g} with a
  warm-up over a tenth of the steps, then falling along a cosine. Seeds 0 to 2 for weights and stories.
- **Result.** Mean of three seeds (least to largest).

{trainings}

- **Knobs turned.** Seed 0. Half the width has heads of 4 columns.

{turned}

- **Writing.** Milliseconds for a token of {TEXTS} texts side by side, one core, after {CAPACITY - WRITTEN:,} tokens;
  untrained models of width 512 with 2 blocks and 8 heads of 64 columns; short vectors of 96 numbers, beside 32 columns
  that turn. *Expanded* makes the keys and values of all heads anew of the short vectors for every token. Median of 5.

{writing}

- **Limits.** Two blocks, short trainings, a small language; rates were compared with one seed. Seconds are of one kind
  of processor.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: by how many nats full heads are ahead, seed by seed in the mean, and with other knobs."""
    above: dict[tuple, list[float]] = {}
    for run in found["runs"]:
        above.setdefault((run["kind"], run["size"]), []).append(run["above"])
    full, *others = above
    behind = {each: np.subtract(above[each], above[full]).mean() for each in others}
    texts = {f"{kind}.{size}.behind": f"{nats:.3f}" for (kind, size), nats in behind.items()}
    for knob, form in (("five times the steps", ".3f"), ("half the width", ".2f")):
        first, *losses = (run["above"] for run in found["knobs"][knob])
        texts[f"{knob}.ahead"] = format(min(losses) - first, form)
    return texts


def results() -> dict:
    """Train all and return losses, sizes and seconds."""
    runs = [run.found for run in grid()]
    sizes = [run["parameters"] for run in runs]
    writing = {kind: kept(KEPT / f"writing-{kind}.json", partial(seconds_of, kind)) for kind in KINDS}
    return {
        "floor": round(float(kept_back().least.mean()), 5),
        "norms": max(sizes) - min(sizes),
        "runs": runs,
        "knobs": {name: [run.found for run in turned] for name, turned in knobs().items()},
        "writing": writing,
    }
