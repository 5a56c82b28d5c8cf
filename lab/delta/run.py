"""Train layers that keep a state: on memory alone, on copying, and a hybrid on the little world.

No weights are kept: what they answer is the result, and stands in `record.json` with a card.
"""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab import growing
from lab.clock import seconds_in_turn
from lab.delta import runs as delta_runs
from lab.delta.runs import BATCH_SIZE, KEPT, NAMES, RULES, SEEDS, SYMBOLS, Kind, Task
from lab.records import ends, kept, percent
from plainformer.models.accounting import cache_bytes

RECALL, COPY = Task("recall"), Task("copy", 40, 10, 600, 12)
# What is changed in the first task, with the first seed; the rates stay.
KNOBS = {"five times the steps": RECALL._replace(num_steps=5 * RECALL.num_steps)}
KINDS: dict[Task, tuple[Kind, ...]] = {RECALL: RULES, COPY: tuple(NAMES)}
PATTERNS = {"all attention": None, "hybrid": ("delta", "delta", "delta", "full")}
WORLD_STEPS, WORLD_RATES, LENGTHS = 250, (0.001, 0.003), (128, 1024)
TOKENS_PER_STEP, ASKED_OF = 4096, 8  # of the clock: how much a step reads, and how many tokens are written


def stack_of(pattern) -> pf.StackConfig:
    """The machine's blocks, with rotary positions."""
    block: dict[str, Any] = {"norm": "rms", "use_bias": False, "position_scheme": "rotary"}
    return pf.StackConfig(d_model=64, num_layers=4, num_heads=8, pattern=pattern, **block)


def machine(name: str, seed: int, context_len: int = growing.LENGTH + 1) -> pf.Decoder:
    """A machine for the little world, untrained."""
    config = pf.DecoderConfig(growing.WORDS, context_len, stack=stack_of(PATTERNS[name]))
    return pf.Decoder(config, key=jax.random.key(seed))


def on_stories(name: str, seed: int, rate: float) -> float:
    """Nats per word above the floor, after a training on stories."""

    def find() -> float:
        row = growing.Row(num_layers=4, num_steps=WORLD_STEPS, learning_rate=rate)
        training = growing.training_of(row, seed)
        batches, loss = growing.batches_of(seed), pf.training.next_token_loss
        model, _ = pf.fit(machine(name, seed), loss, batches, training, progress=False)
        above = growing.judged(growing.expected_by(model))["above"]
        print("stories", name, seed, rate, above, flush=True)
        return above

    return kept(KEPT / f"stories-{name.replace(' ', '-')}-{seed}-{rate}.json", find)


def milliseconds() -> dict[str, dict[str, list[float]]]:
    """Of a step of training on as many tokens, and of a token that is written, for each length of text."""
    found: dict[str, dict[str, list[float]]] = {name: {"step": [], "token": []} for name in PATTERNS}
    for length in LENGTHS:
        steps = seconds_in_turn({name: training_step(name, length) for name in PATTERNS}, rounds=3)
        tokens = seconds_in_turn({name: writing(name, length) for name in PATTERNS}, rounds=5)
        for name in PATTERNS:
            found[name]["step"].append(round(1e3 * steps[name], 1))
            found[name]["token"].append(round(1e3 * tokens[name] / ASKED_OF, 3))
    return found


def training_step(name: str, length: int):
    """A function that makes the gradients of a step, long texts block by block."""
    model = machine(name, 0, length)
    if length > growing.LENGTH:
        stack = dataclasses.replace(model.config.stack, attention="blockwise")
        model = pf.Decoder(dataclasses.replace(model.config, stack=stack), key=jax.random.key(0))
    ids = jnp.zeros((TOKENS_PER_STEP // length, length + 1), jnp.int32)
    slopes = eqx.filter_jit(eqx.filter_grad(pf.training.next_token_loss))
    return lambda: slopes(model, pf.data.Windows(ids[:, :-1], ids[:, 1:]))


def writing(name: str, length: int):
    """A function that reads the last tokens of a text of this length one by one, as a model does that writes."""
    model, ids = machine(name, 0, length), jnp.zeros(length, jnp.int32)
    before = eqx.filter_jit(lambda model: model.extend(ids[:-ASKED_OF], model.make_cache())[1])(model)

    @eqx.filter_jit
    def read(model, cache):
        def step(cache, token):
            x, cache = model.extend(token[None], cache)
            return cache, model.logits(x)

        return jax.lax.scan(step, cache, ids[-ASKED_OF:])[1]

    return lambda: read(model, before)


def results() -> dict:
    """Everything that is recorded."""
    found: dict = {"recall": {}, "copy": {}, "knobs": {}, "stories": {}}
    for task, kinds in KINDS.items():
        for kind in kinds:
            losses = delta_runs.losses(kind, task)
            rate = min(losses, key=losses.__getitem__)
            runs = [delta_runs.run(kind, task, seed, rate) for seed in SEEDS]
            of_kind: dict = {"rate": rate, "losses": {str(each): loss for each, loss in losses.items()}}
            of_kind |= {"parameters": delta_runs.parameters(kind, task), "runs": runs}
            found[task.name][kind] = of_kind
    for knob, task in KNOBS.items():
        rates = {kind: found["recall"][kind]["rate"] for kind in RULES}
        found["knobs"][knob] = {kind: delta_runs.run(kind, task, 0, rates[kind])["right"] for kind in RULES}
    for name in PATTERNS:
        tried = {rate: on_stories(name, 0, rate) for rate in WORLD_RATES}
        rate = min(tried, key=lambda rate: tried[rate])
        above, parameters = [on_stories(name, seed, rate) for seed in SEEDS], pf.count_parameters(machine(name, 0))
        of_name = {"rate": rate, "tried": {str(each): tried[each] for each in tried}, "above": above}
        of_name["cache"] = [cache_bytes(stack_of(PATTERNS[name]), length) for length in LENGTHS]
        found["stories"][name] = of_name | {"parameters": parameters}
    for name, times in kept(KEPT / "milliseconds.json", milliseconds).items():
        found["stories"][name]["milliseconds"] = times
    return found


def shares(right: list[float]) -> str:
    """Shares of right answers, seed by seed."""
    return ", ".join(f"{100 * share:.0f}" for share in right)


def table(found: dict, heads: list[str]) -> str:
    """The shares of right answers of each kind, in per cent."""
    lines = [f"| layer | rate | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    for kind, of in found.items():
        cells = [shares([run["right"][head] for run in of["runs"]]) for head in heads]
        lines.append(f"| {NAMES[kind]} | {of['rate']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def knob_table(found: dict) -> str:
    """What a change does to the first task."""
    heads = list(found["knobs"][next(iter(KNOBS))]["delta"])
    lines = [f"| changed | layer | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    for knob, kinds in found["knobs"].items():
        lines += [
            f"| {knob} | {NAMES[kind]} | {' | '.join(shares([right[head]]) for head in heads)} |"
            for kind, right in kinds.items()
        ]
    return "\n".join(lines)


def story_table(found: dict) -> str:
    """The two machines for the little world."""
    lines = ["| machine | learned numbers | rate | nats per word above the floor |", "|---|---|---|---|"]
    for name, of in found["stories"].items():
        above = ", ".join(f"{nats:.3f}" for nats in of["above"])
        lines.append(f"| {name} | {of['parameters']:,} | {of['rate']} | {above} |")
    lines += ["", "| machine | length | bytes kept | ms per step | ms per token |", "|---|---|---|---|---|"]
    for name, of in found["stories"].items():
        for length, kept_bytes, step, token in zip(LENGTHS, of["cache"], *of["milliseconds"].values(), strict=True):
            lines.append(f"| {name} | {length:,} | {kept_bytes:,} | {step:.0f} | {token:.2f} |")
    return "\n".join(lines)


def rates_line(found: dict, name: str) -> str:
    """The loss at every rate, with the first seed."""
    return "; ".join(
        f"{NAMES[kind]} {', '.join(f'{rate}: {loss:.3f}' for rate, loss in of['losses'].items())}"
        for kind, of in found[name].items()
    )


def done(found: dict) -> str:
    """What was trained, and how."""
    copiers = ", ".join(f"{NAMES[kind]} {of['parameters']:,}" for kind, of in found["copy"].items())
    written, names, numbers = delta_runs.WRITTEN, delta_runs.NUM_NAMES, delta_runs.NUM_NUMBERS
    return f"""- **Recall.** {written} pairs of one of {names} names and one of {numbers}
  numbers, one token each, then {delta_runs.ASKED} names alone; the answer is the number that the name had last. A text
  uses 1 to 32 names, so that most get a number again and again. One layer with one head: keys {RECALL.d_k} wide and of
  length 1, values {RECALL.width} wide, a norm, a read-out; {found["recall"]["delta"]["parameters"]:,} learned numbers,
  the same for each rule. The scores of softmax attention fade by the same factors as the states do, and are multiplied
  by a learned number.
- **Copying.** {COPY.length // 3} to {COPY.length} random symbols of {SYMBOLS}, a mark, and the symbols again, which
  alone count. Decoders of two blocks, width {COPY.width}, 4 heads, RMSNorm, SwiGLU {2 * COPY.width} wide; rotary
  positions where there is attention and in gated linear attention. The hybrid has gated delta in the first block.
  Learned numbers: {copiers}.
- **Little world.** The machine of `lab/staircase` with rotary positions, {WORLD_STEPS} steps; in the hybrid the first
  three of the four blocks are gated delta.
- **Training.** Steps of {BATCH_SIZE} fresh texts, AdamW, a warm-up of 50 steps ({RECALL.num_steps} of recall,
  {COPY.num_steps} of copying), then half a cosine down to a tenth; for the little world as in `lab/staircase`. Of the
  rates tried, the one at which seed 0 ends best; seeds {", ".join(map(str, SEEDS))}."""


def card(found: dict) -> str:
    """What was done, and what came out."""
    tried = "; ".join(
        f"{name} {', '.join(f'{rate}: {above:.3f}' for rate, above in of['tried'].items())}"
        for name, of in found["stories"].items()
    )
    recall, copy = (list(found[name]["delta"]["runs"][0]["right"]) for name in ("recall", "copy"))
    return f"""# Layers that keep a state

Softmax attention, gated linear attention, the delta rule without and with factors, and a hybrid, on two tasks of
memory; and a hybrid beside attention alone on the little world. No weights are kept: the numbers are the result, and
stand in `record.json`.

{done(found)}
- **Recall, result.** Right answers in per cent, by seed; chance is 10:

{table(found["recall"], recall)}

- **Copying, result.** Right symbols in per cent, by seed; chance is {100 / SYMBOLS:.0f}; none was trained on
  {2 * COPY.length}:

{table(found["copy"], copy)}

- **Little world, result.** By seed; then what is kept of one text, and times on one core beside other programs, of
  which only ratios mean anything: gradients of {TOKENS_PER_STEP:,} tokens, and one token written at the end of a text:

{story_table(found)}

- **Knobs turned.** Recall, seed 0, at the rates above; right answers in per cent:

{knob_table(found)}

- **Rates.** Losses of seed 0. Recall: {rates_line(found, "recall")}. Copying: {rates_line(found, "copy")}. Nats per
  word above the floor: {tried}.
- **Limits.** One layer and one head in the first task, two small blocks in the second, {WORLD_STEPS} steps in the
  third, where no more than two rates were tried and a better one may lie beyond. A CPU, which solves small systems of
  equations slowly. All settings stand in `lab/delta/run.py` and `runs.py`; `make models` trains anew.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""


def copied(found: dict, kinds: tuple[Kind, ...], seeds: tuple[int, ...] = SEEDS) -> list[float]:
    """How many of the longest texts that were trained on some kinds copy, in per cent, with these seeds."""
    name = f"{COPY.length} symbols"
    return [100 * found["copy"][kind]["runs"][seed]["right"][name] for kind in kinds for seed in seeds]


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: per cent of right answers, by names in use, and of symbols copied; what a hybrid costs."""
    texts = {}
    for names in (4, 16, 32):
        text = f"{names} names, {delta_runs.WRITTEN} pairs"
        for kind, of in found["recall"].items():
            shares = [run["right"][text] for run in of["runs"]]
            texts[f"recall.{kind}.{names}"] = percent(float(np.mean(shares)))
            texts |= ends(f"recall.{kind}.{names}", (100 * share for share in shares), ".0f")
        for kind, right in found["knobs"]["five times the steps"].items():
            texts[f"longer.{kind}.{names}"] = percent(right[text])
    texts |= ends("copy.with_attention", copied(found, ("softmax", "hybrid"), (0, 2)), ".0f")
    texts |= ends("copy.state_alone", copied(found, ("linear", "plain delta", "delta")), ".0f")
    texts["copy.softmax.1"] = f"{copied(found, ('softmax',), (1,))[0]:.0f}"
    for name, of in found["stories"].items():
        steps = zip(LENGTHS, of["milliseconds"]["step"], strict=True)
        texts |= {f"{name}.step.{length}": f"{step:.0f}" for length, step in steps}
    plain, hybrid = (found["stories"][name]["parameters"] for name in PATTERNS)
    return texts | {"hybrid.parameters.more": percent(hybrid / plain - 1)}
