"""Train decoders with experts beside dense ones of equal work and of equal size, and write what each reached.

No weights are kept: losses, loads and what each expert reads stand in `record.json`.
"""

import dataclasses
import time
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.growing import LENGTH, NUM_KEPT_BACK, VOCABULARY, encoded, stories_of
from lab.records import BUILD, at_most, ends, kept
from plainformer.data.little_world import WORLD_WORDS
from plainformer.data.names import NAME_LANGUAGES

NEEDS = ("staircase",)
KEPT = BUILD / "experts"
BATCH_SIZE, NUM_LAYERS, HEAD, SEEDS = 16, 2, 8, (0, 1, 2)
NUM_EXPERTS, PER_TOKEN = 8, 2
BALANCE, MOVED_BY = 0.01, 0.001
DENSE = {"equal work": PER_TOKEN, "equal size": NUM_EXPERTS}  # inner widths, in those of an expert
ROUTED: dict[str, dict] = {
    "experts": {},
    "no balance": {},
    "moved bias": {"moved_bias": True},
    "one, no balance": {"per_token": 1, "renormalise": False},
}
ARMS = ("equal work", "experts", "equal size")
RATES = (0.002, 0.004, 0.008, 0.016)
LONG, LONGER = 5000, (("equal work", 0.004), ("experts", 0.004), ("experts", 0.008), ("equal size", 0.004))


@dataclasses.dataclass(frozen=True)
class Run:
    """One training: which network in each block, how wide, at which rate, for how long, on what."""

    arm: str
    rate: float
    width: int = 32
    steps: int = 1000
    seed: int = 0
    of: str = "world"


def make(run: Run, vocab_size: int) -> pf.Decoder:
    """The decoder of a run, untrained; an expert is twice as wide inside as a token."""
    expert, routed = 2 * run.width, run.arm in ROUTED
    sizes = {"num_experts": NUM_EXPERTS, "per_token": PER_TOKEN, "width": expert}
    stack = pf.StackConfig(
        d_model=run.width,
        num_layers=NUM_LAYERS,
        num_heads=run.width // HEAD,
        d_ff=None if routed else DENSE[run.arm] * expert,
        experts=pf.blocks.ExpertsConfig(**sizes | ROUTED[run.arm]) if routed else None,
        norm="rms",
        position_scheme="rotary",
        use_bias=False,
    )
    return pf.Decoder(pf.DecoderConfig(vocab_size, LENGTH, stack), key=jax.random.key(run.seed))


@cache
def names(part: str) -> tuple[pf.Vocabulary, np.ndarray, np.ndarray]:
    """Names of twenty languages in a random order, as one text of letters: its ids, and of each the language."""
    splits = pf.data.name_splits()
    vocabulary = pf.Vocabulary("".join(name.text for each in (splits.training, splits.test) for name in each) + "\n")
    found = getattr(splits, part)
    found = [found[place] for place in np.random.default_rng(0).permutation(len(found))]
    ids = np.array(vocabulary.encode("".join(f"{name.text}\n" for name in found)), np.int32)
    numbers = [NAME_LANGUAGES.index(name.language) for name in found]
    return vocabulary, ids, np.repeat(numbers, [len(name.text) + 1 for name in found])


def batches_of(run: Run):
    """From the number of steps done to the next batch."""
    if run.of == "names":
        return pf.data.random_windows(names("training")[1], seq_len=LENGTH, batch_size=BATCH_SIZE, seed=run.seed)
    stories = stories_of(run.seed)

    def batch_at(step: int) -> pf.data.Windows:
        drawn = stories[np.random.default_rng([run.seed, step]).integers(len(stories), size=BATCH_SIZE)]
        return pf.data.Windows(jnp.asarray(drawn[:, :-1]), jnp.asarray(drawn[:, 1:]))

    return batch_at


@cache
def judged_on(of: str) -> tuple[np.ndarray, np.ndarray]:
    """Texts kept back, a row each, and beside each of the tokens read another label: its language, or the token."""
    if of == "world":
        ids = encoded(pf.data.stories(NUM_KEPT_BACK, LENGTH + 1, seed=1000))
        return ids, ids[:, :-1]
    _, ids, languages = names("test")
    number = (len(ids) - 1) // LENGTH
    places = np.arange(number)[:, None] * LENGTH + np.arange(LENGTH + 1)
    return ids[places], languages[places[:, :-1]]


@eqx.filter_jit
def read(model, ids):
    """The loss on some texts, and which experts each of their tokens has, block by block."""
    windows = pf.data.Windows(ids[:, :-1], ids[:, 1:])
    loss, seen = pf.look(pf.training.next_token_loss, model, windows)
    return loss, [array for name, array in seen.items() if name.endswith("feed_forward.chosen")]


def information(experts: np.ndarray, labels: np.ndarray) -> float:
    """Nats that the choice of an expert tells of a label, from counts of both."""
    table = np.zeros((experts.max() + 1, labels.max() + 1))
    np.add.at(table, (experts, labels), 1)
    table /= table.sum()
    apart = table.sum(axis=1, keepdims=True) * table.sum(axis=0)
    return float((table * np.log(np.where(table > 0, table, 1) / np.where(apart > 0, apart, 1))).sum())


def within(experts: np.ndarray, labels: np.ndarray, tokens: np.ndarray) -> float:
    """Nats that the choice tells of a label to somebody who knows the token."""
    both = np.unique(labels * (tokens.max() + 1) + tokens, return_inverse=True)[1]
    return information(experts, both) - information(experts, tokens)


def reading(run: Run, ids: np.ndarray, chosen: list[np.ndarray]) -> dict:
    """What the experts of each block read: tables of counts and, in nats, what their choice tells."""
    labels, found = judged_on(run.of)[1], []
    tokens, labels = (np.repeat(each.ravel(), chosen[0].shape[-1]) for each in (ids[:, :-1], labels))
    shuffled = np.random.default_rng(0).permutation(judged_on(run.of)[1].ravel())
    for experts in (np.asarray(each).ravel() for each in chosen):
        table = np.zeros((NUM_EXPERTS, labels.max() + 1), int)
        np.add.at(table, (experts, labels), 1)
        told = {
            "token": information(experts, tokens),
            "chance": information(experts, np.repeat(shuffled, chosen[0].shape[-1])),
        }
        if run.of == "names":
            told |= {"language": information(experts, labels), "within": within(experts, labels, tokens)}
            told["within by chance"] = within(experts, np.repeat(shuffled, chosen[0].shape[-1]), tokens)
        told = {name: round(nats, 4) for name, nats in told.items()}
        found.append({"told": told} | ({"table": table.tolist()} if run.seed == 0 else {}))
    return {"reading": found}


def outcome(run: Run) -> dict:
    """One training, and what became of it."""
    vocab_size = len(VOCABULARY) if run.of == "world" else len(names("training")[0])
    model, moments = make(run, vocab_size), []
    parts = {"parameters": pf.count_parameters(model), "at work": pf.models.active_parameters(model)}
    config = pf.TrainingConfig(num_steps=run.steps, learning_rate=run.rate, seed=run.seed)
    loss, options = pf.training.next_token_loss, {}
    if run.arm in ROUTED:
        loss = pf.training.balanced(loss, BALANCE if run.arm == "experts" else 0.0)
    if run.arm == "moved bias":
        options["optimiser"] = pf.training.move_bias(pf.training.make_optimiser(config), MOVED_BY)
    clock = [lambda metrics, step: moments.append(time.perf_counter())]
    model, metrics = pf.fit(model, loss, batches_of(run), config, callbacks=clock, progress=False, **options)
    ids = judged_on(run.of)[0]
    losses, chosen = zip(*[read(model, part) for part in np.array_split(ids, 4)], strict=True)
    weights = [len(part) for part in np.array_split(ids, 4)]
    found = parts | {"loss": round(float(np.average(losses, weights=weights)), 5)}
    found["milliseconds"] = round(1e3 * float(np.median(np.diff(moments))), 1)
    last = metrics[-100:]
    found |= {name: round(float(np.mean([row[name] for row in last])), 4) for name in ROUTER if name in last[0]}
    if run.arm in ROUTED:
        found |= reading(run, ids, [np.concatenate(of_block) for of_block in zip(*chosen, strict=True)])
    print(run, found["loss"], found.get("busiest"), found["milliseconds"], flush=True)
    return found


ROUTER = ("balance", "busiest", "dropped")


def trained(run: Run) -> dict:
    """What became of a run, kept under `build`."""
    name = "-".join(str(value) for value in dataclasses.astuple(run)).replace(" ", "_")
    return kept(KEPT / f"{name}.json", lambda: outcome(run)) | dataclasses.asdict(run)


def best_rate(arm: str) -> float:
    """The rate at which an arm loses least, of the first seed."""
    return min(RATES, key=lambda rate: trained(Run(arm, rate))["loss"])


def runs() -> dict[str, list[dict]]:
    """All trainings: of the three arms at their best rates, of what goes wrong, and with other knobs."""
    rates = [trained(Run(arm, rate)) for arm in ARMS for rate in RATES]
    best = {arm: best_rate(arm) for arm in ARMS}
    routed = best["experts"]
    return {
        "arms": [trained(Run(arm, best[arm], seed=seed)) for arm in ARMS for seed in SEEDS],
        "no balance": [trained(Run("no balance", routed, seed=seed)) for seed in SEEDS],
        "moved bias": [trained(Run("moved bias", routed, seed=seed)) for seed in SEEDS],
        "one, no balance": [trained(Run("one, no balance", routed))],
        "names": [trained(Run("experts", routed, seed=seed, of="names")) for seed in SEEDS],
        "width 64": [trained(Run(arm, best[arm] / 2, width=64)) for arm in ARMS],
        "longer": [trained(Run(arm, rate, steps=LONG)) for arm, rate in LONGER],
        "rates": [{name: value for name, value in run.items() if name != "reading"} for run in rates],
    }


def mean(runs: list[dict], name: str) -> float:
    """The mean of a number over runs."""
    return float(np.mean([run[name] for run in runs]))


def arm(runs: list[dict], name: str) -> list[dict]:
    """The runs of one arm."""
    return [run for run in runs if run["arm"] == name]


def lines(runs: list[dict], floor: float) -> str:
    """A table of the card: of each arm the nats above the floor, seed by seed, and what it cost."""
    rows = [
        "| | numbers | at work | rate | nats above the floor | busiest | ms a step |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(run["arm"] for run in runs):
        of = arm(runs, name)
        losses = ", ".join(f"{run['loss'] - floor:.3f}" for run in of)
        busiest = f"{mean(of, 'busiest'):.2f}" if "busiest" in of[0] else ""
        sizes = f"{of[0]['parameters']:,} | {of[0]['at work']:,} | {of[0]['rate']}"
        rows.append(f"| {name} | {sizes} | {losses} | {busiest} | {mean(of, 'milliseconds'):.0f} |")
    return "\n".join(rows)


def told(runs: list[dict], what: str, block: int) -> str:
    """What the choice of an expert tells, in nats, seed by seed."""
    return ", ".join(f"{run['reading'][block]['told'][what]:.2f}" for run in runs)


def read_by(runs: dict[str, list[dict]]) -> str:
    """What the choice of an expert tells of what is read, in stories and in names."""
    worlds, names = arm(runs["arms"], "experts"), runs["names"]
    return f"""- **What experts read**, in nats that their choice tells, by seed, in the first block and in the second.
  Stories, of the word read: {told(worlds, "token", 0)} and {told(worlds, "token", 1)}. Names, of the letter read:
  {told(names, "token", 0)} and {told(names, "token", 1)}; of the language: {told(names, "language", 0)} and
  {told(names, "language", 1)}; of the language to somebody who knows the letter: {told(names, "within", 0)} and
  {told(names, "within", 1)}, where languages dealt out by chance give {told(names, "within by chance", 0)} and
  {told(names, "within by chance", 1)}."""


def card(found: dict) -> str:
    """What was done, and what came out."""
    runs, floor = found["runs"], found["floor"]
    tried = {name: {run["rate"]: run["loss"] - floor for run in arm(runs["rates"], name)} for name in ARMS}
    ends = {f"{run['arm']} at {run['rate']}": run["loss"] - floor for run in runs["longer"]}
    longer = ", ".join(f"{name} {above:.3f}" for name, above in ends.items())
    rates = [" | ".join([name, *(f"{tried[name][rate]:.3f}" for rate in RATES)]) for name in ARMS]
    return f"""# Experts beside dense networks

Decoders whose token-wise networks are {NUM_EXPERTS} experts, of which {PER_TOKEN} work on a token, beside dense ones of
equal work and of equal size. No weights are kept: the numbers stand in `record.json`. Settings:
`lab/experts/run.py`; `make models ONLY=experts` trains all again.

- **Data.** Stories of `pf.data.stories`, {LENGTH} words each, judged on {NUM_KEPT_BACK} others, whose lowest possible
  loss is {floor:.4f} nats per word. Names of twenty languages from `pf.data.name_splits()`, written one after the other
  in a random order, judged on its test part.
- **Models.** {NUM_LAYERS} blocks, width 32, heads of {HEAD} columns, RMS norm, gelu, rotary positions, no biases, tied
  output. An expert is twice as wide inside as a token.
- **Training.** {BATCH_SIZE} windows a step, 1,000 steps, AdamW, weight decay 0.1, 100 steps of warm-up, half a cosine
  to a tenth of the rate; the balance loss counts {BALANCE}, or a bias moves by {MOVED_BY}. Three seeds, for weights and
  for stories.
- **Result**, by seed. `busiest` is the largest load of an expert in either block, in equal shares, in the mean of the
  last 100 steps.

{lines([run for name in ("arms", *list(ROUTED)[1:]) for run in runs[name]], floor)}

{read_by(runs)}
- **Knobs turned.** Width 64, half the rate of width 32, seed 0:

{lines(runs["width 64"], floor)}

  {LONG:,} steps, seed 0, nats above the floor: {longer}.
  Rates, seed 0, nats above the floor:

| | {" | ".join(map(str, RATES))} |
|---|{len(RATES) * "---|"}
{chr(10).join(f"| {row} |" for row in rates)}

- **Limits.** Small models, one number of experts, and of {LONG:,} steps one seed and few rates. Seeds of
  one arm differ by up to 0.030 nats. Milliseconds are those of one core of a busy machine. Of {LONG:,} steps all but
  the experts at 0.004 were made on a GPU, in 32 bits.
"""


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: nats by which arms differ, time, loads; and what five times the steps change."""
    runs, floor = found["runs"], found["floor"]
    losses = {name: np.array([run["loss"] for run in arm(runs["arms"], name)]) for name in ARMS}
    took = {name: mean(arm(runs["arms"], name), "milliseconds") for name in ("experts", "equal work")}
    longer = {name: min(run["loss"] for run in arm(runs["longer"], name)) for name in ARMS}
    balanced = arm(runs["arms"], "experts") + runs["moved bias"]
    ahead = min(longer["experts"], longer["equal work"]) - longer["equal size"]
    return {
        **ends("ahead", losses["equal work"] - losses["experts"], ".3f"),
        "seeds.apart": at_most(max(np.ptp(each) for each in losses.values()), 3),
        "step.times": f"{took['experts'] / took['equal work']:.1f}",
        **{f"longer.{name}": f"{loss - floor:.3f}" for name, loss in longer.items()},
        "longer.equal_size.ahead": f"{ahead:.3f}",
        "busiest.balanced": at_most(max(run["busiest"] for run in balanced), 1),
        **ends("busiest.no_balance", [run["busiest"] for run in runs["no balance"]], ".1f"),
    }


def results() -> dict:
    """Train what is not trained yet and return losses, loads and what each expert reads."""
    floor = pf.data.load_record("staircase")["lowest"]
    return {"floor": floor, "words": list(WORLD_WORDS), "languages": list(NAME_LANGUAGES), "runs": runs()}
