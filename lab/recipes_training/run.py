"""Train one decoder on the same stories by several recipes: optimisers, schedules, a z-loss, ways of decaying weights.

Each optimiser and each schedule has a learning rate of its own, the best of at least three. No weights are kept: the
losses stand in `record.json`.
"""

import dataclasses
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import plainformer as pf
from lab.growing import KEPT as STAIRCASE, WORDS, kept_back, log_probabilities, stories_of
from lab.records import ends, kept

KEPT = STAIRCASE.with_name("recipes_training")
SEEDS, STEPS, LONG, WIDTH, NARROW, WIDE = (0, 1, 2), 400, 2000, 64, 32, 128
LADDER, FIRST = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3), (2, 3, 4)  # rates, and the places of those tried first
BATCH_SIZE, LENGTH, NUM_HEADS, WARMUP, EVERY = 8, 64, 8, 50, 40
DECAY = 0.25  # the share of a run in which a rate that was constant falls
ROUNDS = 12  # steps that are timed
ROUGH = 100  # stories that a run is judged on while it goes on


@dataclasses.dataclass(frozen=True)
class Recipe:
    """All that may differ between two trainings."""

    optimiser: str = "adamw"
    schedule: str = "cosine"
    rate: float = 0.01
    seed: int = 0
    steps: int = STEPS
    width: int = WIDTH
    decay: float = 0.1  # times the rate, beside Adam's quotient
    l2: float = 0.0  # times the weights, added to the gradient
    decays: str = "matrices"
    z_loss: float = 0.0
    precision: str = "float32"

    @property
    def name(self) -> str:
        """What differs from the plain recipe, as a file name."""
        return "-".join(f"{value:g}" if isinstance(value, float) else str(value) for value in dataclasses.astuple(self))


def config_of(width: int = WIDTH) -> pf.DecoderConfig:
    """A block as in models of today, without windows."""
    stack = pf.StackConfig(
        d_model=width,
        num_layers=4,
        num_heads=NUM_HEADS,
        num_kv_heads=2,
        norm="rms",
        activation="swiglu",
        d_ff=width * 8 // 3,
        position_scheme="rotary",
        use_bias=False,
        qk_norm=True,
    )
    return pf.DecoderConfig(WORDS, LENGTH, stack=stack, tied_embedding=False)


def training_of(recipe: Recipe, decay_steps: int = 0) -> pf.TrainingConfig:
    """The configuration of the package that says the same."""
    schedule: Any = "constant" if recipe.schedule == "free" else recipe.schedule
    return pf.TrainingConfig(
        num_steps=recipe.steps,
        learning_rate=recipe.rate,
        warmup_steps=WARMUP,
        optimiser="muon" if recipe.optimiser == "muon" else "adamw",
        schedule=schedule,
        decay_steps=decay_steps,
        weight_decay=recipe.decay,
        precision="bfloat16" if recipe.precision == "bfloat16" else "float32",
        seed=recipe.seed,
    )


def rates_of(recipe: Recipe, decay_steps: int = 0) -> np.ndarray:
    """The learning rate of every step."""
    schedule = pf.training.learning_rate_schedule(training_of(recipe, decay_steps))
    return np.asarray(jax.vmap(schedule)(jnp.arange(recipe.steps)), np.float32)


def optimiser_of(recipe: Recipe, rate, decay, l2):
    """What moves the weights: clipped gradients, with a share of the weights if they are to decay in the old way."""
    hidden = pf.training.hidden_matrices
    decays = hidden if recipe.decays == "hidden" else partial(jax.tree.map, lambda leaf: leaf.ndim >= 2)
    first = 0.0 if recipe.schedule == "free" else 0.9
    moved = optax.adamw(rate, b1=first, b2=0.99, weight_decay=decay, mask=decays)
    if recipe.optimiser == "muon":
        moved = pf.training.muon(lambda count: rate, weight_decay=recipe.decay, others=moved)
    both = optax.chain(optax.clip_by_global_norm(1.0), optax.add_decayed_weights(l2, decays), moved)
    return optax.contrib.schedule_free(both, lambda count: rate, b1=0.9) if recipe.schedule == "free" else both


def loss_of(params, static, batch, z_loss, precision: str):
    """Nats per word, with a z-loss."""
    if precision == "bfloat16":
        params = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), params)
    logits = eqx.combine(params, static)(batch.inputs).astype(jnp.float32)
    log_sum = jax.nn.logsumexp(logits, axis=-1)
    return pf.training.cross_entropy(logits, batch.targets) + z_loss * (log_sum**2).mean()


@cache
def program_of(optimiser: str, is_free: bool, decays: str, precision: str, width: int) -> tuple[Callable, Any]:
    """A compiled step, which is told the numbers, so that few programs are compiled; and what of a model is fixed."""
    recipe = Recipe(optimiser, "free" if is_free else "cosine", decays=decays)
    model = eqx.filter_eval_shape(lambda key: pf.Decoder(config_of(width), key=key), jax.random.key(0))
    _, static = eqx.partition(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(params, state, batch, rate, decay, l2, z_loss):
        loss, grads = jax.value_and_grad(loss_of)(params, static, batch, z_loss, precision)
        updates, state = optimiser_of(recipe, rate, decay, l2).update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    return step, static


@dataclasses.dataclass
class Run:
    """A training on its way: it can be copied, and go on in two ways."""

    recipe: Recipe
    params: Any
    state: Any
    curve: list

    @classmethod
    def begin(cls, recipe: Recipe) -> "Run":
        """A model as it is drawn."""
        params = eqx.filter(pf.Decoder(config_of(recipe.width), key=jax.random.key(recipe.seed)), eqx.is_inexact_array)
        params = jax.tree.map(jnp.copy, params)  # norms of queries and keys begin as one array
        return cls(recipe, params, optimiser_of(recipe, 0.01, 0.1, 0.0).init(params), [])

    def copy(self) -> "Run":
        """The same, to go on in another way."""
        params, state = jax.tree.map(jnp.copy, (self.params, self.state))
        return Run(self.recipe, params, state, list(self.curve))

    def go_on(self, rates: np.ndarray, begin: int, end: int, seen: Callable = lambda done, params: None) -> "Run":
        """Make the steps from `begin` to `end`, judged every few on stories kept back."""
        r = self.recipe
        step, _ = program_of(r.optimiser, r.schedule == "free", r.decays, r.precision, r.width)
        for done in range(begin, end):
            batch = batch_at(r.seed, done)
            self.params, self.state, _ = step(
                self.params, self.state, batch, rates[done], np.float32(r.decay), np.float32(r.l2), np.float32(r.z_loss)
            )
            seen(done + 1, self.params)
            if (done + 1) % EVERY == 0:
                self.curve.append(round(judged(self.model, ROUGH)["above"], 4))
        return self

    @property
    def model(self) -> Any:
        """The model that is judged."""
        r = self.recipe
        _, static = program_of(r.optimiser, r.schedule == "free", r.decays, r.precision, r.width)
        averaged = optax.contrib.schedule_free_eval_params
        return eqx.combine(averaged(self.state, self.params) if r.schedule == "free" else self.params, static)


def batch_at(seed: int, step: int) -> pf.data.Windows:
    """The beginnings of stories, drawn at random."""
    stories = stories_of(seed)[:, : LENGTH + 1]
    drawn = stories[np.random.default_rng([seed, step]).integers(len(stories), size=BATCH_SIZE)]
    return pf.data.Windows(jnp.asarray(drawn[:, :-1]), jnp.asarray(drawn[:, 1:]))


@eqx.filter_jit
def log_sums(model, ids):
    """The logarithm of the softmax's denominator at each word."""
    return jax.nn.logsumexp(model(ids), axis=-1)


@cache
def judges() -> tuple[np.ndarray, np.ndarray]:
    """Beginnings of stories that are kept back, and the least surprise at each word; kept as a file."""
    if not (file := KEPT / "judges.npz").exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        stories = kept_back()
        np.savez(file, ids=stories.ids[:, : LENGTH + 1], least=stories.least[:, :LENGTH])
    stored = np.load(file)
    return stored["ids"], stored["least"]


def judged(model, number: int) -> dict[str, float]:
    """Nats per word above the lowest loss, and the logarithm of the softmax's denominator, as mean and largest size."""
    ids, least = (part[:number] for part in judges())
    parts = np.split(ids, max(1, number // 100))
    found = np.concatenate([np.asarray(log_probabilities(model, part[:, :-1])) for part in parts])
    sums = np.concatenate([np.asarray(log_sums(model, part[:, :-1])) for part in parts]) if number > ROUGH else least
    above = -np.take_along_axis(found, ids[:, 1:, None], axis=2)[..., 0] - least
    return {"above": round(float(above.mean()), 5), "log_z": round(float(sums.mean()), 3),
            "log_z_largest": round(float(np.abs(sums).max()), 3)}  # fmt: skip


def trained(recipe: Recipe) -> dict[str, Any]:
    """What a recipe reached; kept under `build`. Of a constant rate, what its end and its mean reached as well."""

    def find() -> dict:
        begin, half_way = time.process_time(), round((1 - DECAY) * recipe.steps)
        run, mean = Run.begin(recipe), None
        ends: dict[str, Any] = {}
        if recipe.schedule == "constant":
            rates, falling = rates_of(recipe), rates_of(recipe, recipe.steps - half_way)
            run.go_on(rates, 0, half_way)
            branch = run.copy().go_on(falling, half_way, recipe.steps)
            ends["wsd"] = judged(branch.model, len(judges()[0])) | {"curve": branch.curve}

            def add(done, params):
                nonlocal mean
                share = 1 / (done - half_way)
                mean = params if mean is None else jax.tree.map(lambda m, p: m + share * (p - m), mean, params)
                mean = jax.tree.map(jnp.copy, mean)

            run.go_on(rates, half_way, recipe.steps, add)
            ends["averaged"] = judged(eqx.combine(mean, run.model), len(judges()[0]))
        else:
            run.go_on(rates_of(recipe), 0, recipe.steps)
        found = judged(run.model, len(judges()[0])) | {"curve": run.curve} | ends
        spent = round(time.process_time() - begin, 1)
        print(recipe.name, spent, {key: value for key, value in found.items() if key != "curve"}, flush=True)
        return found | {"seconds": spent}

    return kept(KEPT / f"{recipe.name}.json", find)


def reached(recipe: Recipe) -> dict[str, Any]:
    """What a recipe reached; the two that grow out of a constant rate are read from its run."""
    if recipe.schedule in ("wsd", "averaged"):
        return trained(dataclasses.replace(recipe, schedule="constant"))[recipe.schedule]
    return trained(recipe)


@cache
def rates_tried(recipe: Recipe) -> dict[float, float]:
    """What a recipe reached with each of its rates: three, and further ones while the best is the first or the last."""
    low, high = FIRST[0], FIRST[-1]
    while True:
        found = {r: reached(dataclasses.replace(recipe, rate=r))["above"] for r in LADDER[low : high + 1]}
        best = min(found, key=lambda rate: found[rate])
        if best == LADDER[low] and low:
            low -= 1
        elif best == LADDER[high] and high < len(LADDER) - 1:
            high += 1
        else:
            return found


def best_rate(recipe: Recipe) -> float:
    """The rate with the least loss."""
    found = rates_tried(recipe)
    return min(found, key=lambda rate: found[rate])


def at_best(recipe: Recipe, **changed) -> Recipe:
    """A recipe at its own best rate."""
    return dataclasses.replace(recipe, rate=best_rate(recipe), **changed)


ADAMW, MUON = Recipe(), Recipe("muon")
SCHEDULES = {name: Recipe(schedule=name) for name in ("cosine", "wsd", "constant", "averaged", "inverse_sqrt", "free")}


def of_seeds(recipe: Recipe) -> dict[str, Any]:
    """What a recipe reached with three seeds, at its best rate, and what it reached with others."""
    runs = [reached(at_best(recipe, seed=seed)) for seed in SEEDS]
    tried = {f"{rate:g}": loss for rate, loss in rates_tried(recipe).items()}
    curves = [run["curve"] for run in runs] if "curve" in runs[0] else None
    return {"rate": best_rate(recipe), "above": [run["above"] for run in runs], "tried": tried, "curves": curves}


Z_LOSSES: dict[str, dict] = {
    "none": {},
    "0.0001": {"z_loss": 1e-4},
    "0.01": {"z_loss": 1e-2},
    "none, rate too large": {"rate": 0.1},
    "0.0001, rate too large": {"rate": 0.1, "z_loss": 1e-4},
    "none, 16 bits": {"precision": "bfloat16"},
    "0.0001, 16 bits": {"precision": "bfloat16", "z_loss": 1e-4},
}
DECAYS: dict[str, dict] = {
    "none": {"decay": 0.0},
    "0.1": {},
    "1": {"decay": 1.0},
    "1, within blocks alone": {"decay": 1.0, "decays": "hidden"},
    "in the gradient, 0.0001": {"decay": 0.0, "l2": 1e-4},
    "in the gradient, 0.001": {"decay": 0.0, "l2": 1e-3},
    "in the gradient, 0.01": {"decay": 0.0, "l2": 1e-2},
}
PLACES = ("above", "log_z", "log_z_largest")


def one_change(changes: dict) -> dict[str, Any]:
    """What AdamW reached with one thing changed."""
    found = reached(dataclasses.replace(at_best(ADAMW), **changes))
    return {place: found[place] for place in PLACES}


def longer() -> dict[str, Any]:
    """Five times the steps."""
    runs = {name: reached(at_best(recipe, steps=LONG)) for name, recipe in (("adamw", ADAMW), ("muon", MUON))}
    return {name: {"above": run["above"], "curve": run["curve"]} for name, run in runs.items()}


def widths() -> dict[str, Any]:
    """Half and twice the width, each optimiser at its own best rate."""
    found: dict[str, Any] = {}
    for width in (NARROW, WIDE):
        found[str(width)] = {}
        for recipe in (ADAMW, MUON):
            wider = dataclasses.replace(recipe, width=width)
            rate = best_rate(wider) if width == NARROW else best_rate(recipe)
            above = reached(dataclasses.replace(wider, rate=rate))["above"]
            found[str(width)][recipe.optimiser] = {"rate": rate, "above": above}
    return found


def milliseconds(width: int, rounds: int = ROUNDS) -> dict[str, float]:
    """The processor time of a step, the least of some, the two optimisers in turn."""
    runs = {recipe.optimiser: Run.begin(dataclasses.replace(recipe, width=width)) for recipe in (ADAMW, MUON)}
    rates = rates_of(ADAMW)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for done in range(rounds):
        for name, run in runs.items():
            begin = time.process_time()
            jax.block_until_ready(run.go_on(rates, done, done + 1).params)
            times[name].append(time.process_time() - begin)
    return {name: round(1000 * min(each[1:]), 1) for name, each in times.items()}


def steps_to(curve: list[float], level: float) -> int | None:
    """After how many steps a curve first is at a level."""
    return next((EVERY * (place + 1) for place, loss in enumerate(curve) if loss <= level), None)


def times() -> dict[str, Any]:
    """The processor time of a step, at three widths."""
    return {str(width): kept(KEPT / f"times-{width}.json", partial(milliseconds, width)) for width in WIDTHS}


WIDTHS = (NARROW, WIDTH, WIDE)
JOBS: dict[str, Callable] = {
    "optimisers": lambda: {"adamw": of_seeds(ADAMW), "muon": of_seeds(MUON)},
    "schedules": lambda: {name: of_seeds(recipe) for name, recipe in SCHEDULES.items()},
    "z_loss": lambda: {name: one_change(changes) for name, changes in Z_LOSSES.items()},
    "decay": lambda: {name: one_change(changes) for name, changes in DECAYS.items()},
    "longer": longer,
    "widths": widths,
    "milliseconds": times,
}


def results() -> dict:
    """All that was measured."""
    ids, least = judges()
    model = eqx.filter_eval_shape(lambda key: pf.Decoder(config_of(), key=key), jax.random.key(0))
    hidden = pf.training.hidden_matrices(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), model))
    sizes = [leaf.size for leaf, is_hidden in zip(*map(jax.tree.leaves, (model, hidden)), strict=True) if is_hidden]
    fixed = {"floor": round(float(least.mean()), 5), "stories": len(ids), "steps": STEPS, "every": EVERY}
    counts = {"parameters": pf.count_parameters(model), "hidden": sum(sizes)}
    return fixed | counts | {name: job() for name, job in JOBS.items()}


def spread(losses: list[float]) -> str:
    """The mean of the seeds, least and largest."""
    return f"{np.mean(losses):.3f} ({min(losses):.3f} to {max(losses):.3f})"


def tried(each: dict) -> str:
    """What each rate gave."""
    return ", ".join(f"{rate}: {loss:.3f}" for rate, loss in each["tried"].items())


def table(found: dict[str, Any]) -> str:
    """A line of the card for each recipe that has three seeds."""
    lines = ["| recipe | rate | nats above | with each rate, seed 0 |", "|---|---|---|---|"]
    for name, each in found.items():
        lines.append(f"| {name} | {each['rate']:g} | {spread(each['above'])} | {tried(each)} |")
    return "\n".join(lines)


def changed(found: dict[str, Any]) -> str:
    """A line of the card for each thing that was changed."""
    lines = ["| change | nats above | mean of ln Z | largest size |", "|---|---|---|---|"]
    for name, each in found.items():
        lines.append(f"| {name} | {each['above']:.3f} | {each['log_z']:.2f} | {each['log_z_largest']:.2f} |")
    return "\n".join(lines)


def knobs(found: dict) -> str:
    """A line of the card for each knob that was turned."""
    lines = ["| recipe | knob | nats above |", "|---|---|---|"]
    lines += [f"| {name} | {LONG:,} steps | {each['above']:.3f} |" for name, each in found["longer"].items()]
    for width, each in found["widths"].items():
        lines += [f"| {name} | width {width}, rate {e['rate']:g} | {e['above']:.3f} |" for name, e in each.items()]
    return "\n".join(lines)


def limits() -> str:
    """On what it ran, and what was not tried."""
    return f"""\
- **Machines.** Made on one H100 GPU: AdamW and Muon with a cosine at width {WIDTH}, {STEPS} steps, a decay of 0.1
  and no z-loss, but for a rate of 0.1; most runs with a constant rate; the long one of AdamW. All others were made on a
  processor. None was repeated on the other machine.
- **Limits.** {STEPS} steps in which all recipes still learn; small models; one made-up world. Each z-loss and each
  decay has AdamW's rate and not one of its own, and one seed, as have the widths; at width {WIDE} the rates are those
  of width {WIDTH}. The long runs have the rates of short ones, and one seed. Times were taken on a processor that
  others used, too. Not tried: Muon with other schedules than the cosine, other momenta, batches of another size, falls
  of other lengths than {STEPS - round((1 - DECAY) * STEPS)} steps."""


def learned(found: dict) -> str:
    """What is learned from, and by what."""
    return f"""\
- **Data.** The first {LENGTH} words of stories of the little world as in `lab/staircase`, others for each seed;
  {found["stories"]} are kept back, whose lowest possible loss in these words is {found["floor"]:.4f} nats per word. The
  curves, one number each {EVERY} steps, are of the first {ROUGH} of them.
- **Model.** Width {WIDTH}, {NUM_HEADS} heads, 2 of keys and values, 4 blocks, as `grouped heads` in `lab/walk`, with
  {found["parameters"]:,} numbers, {found["hidden"]:,} of them in hidden matrices."""


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: by how many nats recipes differ, and what a z-loss and a decay change."""
    texts = of_optimisers(found) | of_schedules(found["schedules"])
    plain, rough = found["z_loss"]["none"]["above"], "none, rate too large"
    for name, each in found["z_loss"].items():
        place = f"z_loss.{name}"
        texts |= {place: f"{each['above']:.3f}", f"{place}.log": f"{each['log_z']:.1f}"}
    gain = found["z_loss"][rough]["above"] - found["z_loss"][rough.replace("none", "0.0001")]["above"]
    texts["z_loss.rate_too_large.gain"] = f"{gain:.3f}"
    for name, each in found["decay"].items():
        place = f"decay.{name}"
        texts |= {place: f"{each['above']:.3f}", f"{place}.cost": f"{each['above'] - plain:.3f}"}
    return texts


def of_optimisers(found: dict) -> dict[str, str]:
    """Where Muon is ahead of AdamW: in nats, in steps, at other widths, in more steps; and what a step takes."""
    adamw, muon = found["optimisers"]["adamw"], found["optimisers"]["muon"]
    curves = zip(adamw["curves"], muon["curves"], strict=True)
    steps: list[Any] = [steps_to(ours, theirs[-1]) for theirs, ours in curves]
    texts = {
        "adamw.rate": f"{adamw['rate']:g}",
        "seeds.apart": f"{np.ptp(adamw['above']):.3f}",
        "muon.ahead": f"{np.mean(adamw['above']) - np.mean(muon['above']):.3f}",
        "muon.steps": f"{np.mean(steps):.0f}",
        "muon.speed": f"{found['steps'] / np.mean(steps):.2f}",
        "longer.muon.ahead": f"{found['longer']['adamw']['above'] - found['longer']['muon']['above']:.3f}",
    }
    texts |= ends("muon.steps", steps, ".0f")
    texts |= {f"muon.ahead.at.{rate}": f"{adamw['tried'][rate] - loss:.3f}" for rate, loss in muon["tried"].items()}
    texts |= {f"longer.{name}": f"{each['above']:.3f}" for name, each in found["longer"].items()}
    for width, each in found["widths"].items():
        texts[f"width.{width}.rate"] = f"{each['muon']['rate']:g}"
        texts[f"width.{width}.muon.ahead"] = f"{each['adamw']['above'] - each['muon']['above']:.3f}"
    taken = found["milliseconds"][str(WIDTH)]
    return texts | {f"milliseconds.{name}": f"{number:.0f}" for name, number in taken.items()}


def of_schedules(found: dict) -> dict[str, str]:
    """By how many nats schedules are behind the cosine, and ahead of it, seed by seed."""
    texts: dict[str, str] = {}
    cosine = np.array(found["cosine"]["above"])
    for name in ("wsd", "averaged", "inverse_sqrt", "free"):
        behind = found[name]["above"] - cosine
        texts |= ends(f"{name}.behind", behind, ".3f") | ends(f"{name}.ahead", -behind, ".3f")
    mean = np.mean(found["constant"]["above"]) - cosine.mean()
    last = max(found["wsd"]["above"] - cosine)
    return texts | {"constant.behind": f"{mean:.2f}", "wsd.behind.most": f"{last:.4f}"}


def card(found: dict) -> str:
    """What was done, and what came out."""
    times = "; ".join(
        f"width {w}: " + ", ".join(f"{n} {ms:g}" for n, ms in e.items()) for w, e in found["milliseconds"].items()
    )
    return f"""# One decoder, several recipes

The same decoder trained on the same stories by other optimisers, schedules, a z-loss and other decays. No weights are
kept: the numbers stand in `record.json`. Settings: `lab/recipes_training/run.py`; `make models
ONLY=recipes_training` trains all again.

{learned(found)}
- **Training.** {STEPS} steps of {BATCH_SIZE} stories, a warm-up of {WARMUP} steps, weight decay 0.1, gradients clipped
  at 1, a cosine down to a tenth of the rate, if nothing else is said. Rates were chosen with seed 0 among
  {", ".join(f"{LADDER[place]:g}" for place in FIRST)}, and further ones while the best was the first or the last.
  `wsd`: constant, then a fall to a tenth in the last {STEPS - round((1 - DECAY) * STEPS)} steps. `averaged`: constant,
  and the mean of the weights of these last steps. `free`: schedule-free AdamW of optax.

{table(found["optimisers"])}

- **Schedules**, with AdamW:

{table(found["schedules"])}

- **A z-loss**, AdamW at its best rate, seed 0; too large is a rate of 0.1. Z is the denominator of the softmax, on the
  stories kept back. In 16 bits, weights were rounded before each step's loss, and the logits came in 32:

{changed(found["z_loss"])}

- **Decay**, AdamW at its best rate, seed 0. In the gradient: the old form, L2 before Adam's quotient.

{changed(found["decay"])}

- **Knobs turned**, with seed 0:

{knobs(found)}

- **Time.** Milliseconds of one processor for a step, the least of {ROUNDS - 1}, in turn: {times}.
{limits()}
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
