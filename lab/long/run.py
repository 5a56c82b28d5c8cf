"""Slow the rotary positions of trained models, and ask them on texts four and eight times as long.

No weights are kept: the answers are the result. `record.json` holds them.
"""

import dataclasses
import itertools
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab import growing
from lab.positions import run as looking
from lab.records import BUILD, at_most, ends, kept, percent
from plainformer.data.little_world import CLOTHES, PEOPLE, after, sentences
from plainformer.positions.rotary import turn_pairs
from plainformer.positions.window import Window

NEEDS = ("staircase",)
KEPT = BUILD / "long"
BASE, FACTORS, FURTHER = 10_000.0, (4.0, 8.0), 100
SHORT, LONG, NUM_LONG, STEPS = growing.LENGTH, 512, 24, 500
LONG_BATCH = 4
DISTANCES, NUM_NEEDLES = (32, 64, 128, 256, 480), 18
STRETCHES = [(0, 128), (128, 256), (256, 384), (384, 512)]
PLACES, LOOK_LONG = [(3, 32), (32, 64), (64, 128), (128, 256)], 256
LOOK_WINDOW = 16
LARGER_BASE = BASE * 4 ** (8 / 6)  # NTK-aware, of heads of 8 columns


def ways(trained_len: int) -> dict:
    """Every scaling by its name and factor."""
    kinds = {
        "linear": pf.positions.LinearScaling,
        "NTK-aware": pf.positions.NtkScaling,
        "by parts": partial(pf.positions.RotaryScaling, trained_len=trained_len),
        "YaRN": partial(pf.positions.YarnScaling, trained_len=trained_len),
    }
    return {f"{kind}, {by:g}": make(factor=by) for by, (kind, make) in itertools.product(FACTORS, kinds.items())}


class Turning(pf.PositionScheme):
    """Rotary positions whose speeds are arrays, which are not learned, so that one program serves every scaling."""

    can_slide = True
    acts_on_scores = True
    speeds: jax.Array
    magnitude: jax.Array

    def rotate(self, rows, positions=None):
        """Turn queries or keys."""
        positions = jnp.arange(rows.shape[-2]) if positions is None else positions
        speeds, magnitude = jax.lax.stop_gradient((self.speeds, self.magnitude))
        return turn_pairs(rows, positions[..., None].astype(float) * speeds, magnitude)


def turning(width: int, scaling=None, base: float = BASE) -> Turning:
    """The scheme of heads of this width."""
    speeds = base ** -(np.arange(0, width, 2) / width)
    magnitude = 1.0 if scaling is None else scaling.magnitude
    return Turning(jnp.asarray(speeds if scaling is None else scaling.slowed(speeds), float), jnp.float32(magnitude))


# --- the letter three places before ---


def looked(run: looking.Run) -> dict:
    """Shares of right answers of one model: at once, and after more steps on windows of four times the length."""
    model, width = looking.trained(run)[0], run.width // run.heads
    batches = jnp.asarray(looking.batches(run, 4 * looking.SHORT, FURTHER))
    found = {}
    for name, how in {"as it is": None, **ways(looking.SHORT)}.items():
        changed = eqx.tree_at(lambda model: model.scheme, model, turning(width, how))
        found[name] = [shares(changed)]
        if not name.endswith("8"):
            found[name].append(shares(looking.learn(changed, batches, looking.RATE / 3, FURTHER)[0]))
    return found


def shares(model) -> list[float]:
    """The share of right answers in each stretch of long windows; the first three places have no answer."""
    texts = jnp.asarray(looking.windows(looking.parts()[1], LOOK_LONG, looking.NUM_TEXTS, seed=1000))
    right = np.asarray(looking.num_right(model, texts)) / looking.NUM_TEXTS
    return [round(float(right[start - 3 : end - 3].mean()), 4) for start, end in PLACES]


def windowed(run: looking.Run, key) -> Window:
    """Rotary positions of which a token sees the nearest ones."""
    return Window(pf.RotaryPositions(), LOOK_WINDOW)


OTHERS = {"larger base from the start": "rotary, larger base", "window of 16": "rotary, window"}
looking.SCHEMES["rotary, larger base"] = partial(looking.rotary_with, LARGER_BASE)
looking.SCHEMES["rotary, window"] = windowed


# --- stories ---


def config_of(scheme: str = "rotary", base: float = BASE, window: int | None = None) -> pf.DecoderConfig:
    """The decoder of the staircase, with another scheme."""
    stack = pf.StackConfig(
        d_model=64,
        num_layers=4,
        num_heads=8,
        norm="rms",
        position_scheme=scheme,
        rope_theta=base,
        window=window,
        use_bias=False,
    )
    return pf.DecoderConfig(growing.WORDS, LONG + 1, stack=stack)


def trained(base: float, seed: int) -> pf.Decoder:
    """A decoder after its training on stories of 128 words; one that was stopped goes on."""
    model = pf.Decoder(config_of(base=base), key=jax.random.split(jax.random.key(seed))[0])
    how = dataclasses.replace(growing.training_of(growing.ROWS["positions"], seed), num_steps=STEPS)
    where = KEPT / f"decoder-{base:.0f}-{seed}"
    loss = pf.training.next_token_loss
    return pf.fit(model, loss, growing.batches_of(seed), how, directory=where, progress=False).model


def with_alibi(seed: int) -> pf.Decoder:
    """The decoder of the staircase with linear biases, which has learned from the same batches."""
    arrays = pf.data.load_weights("machines").items()
    own = {name.removeprefix(f"positions.{seed}."): jnp.float32(each) for name, each in arrays}
    model = pf.Decoder(config_of("alibi"), key=jax.random.key(0))
    return pf.training.with_arrays(model, {name: own[name] for name in pf.training.named_arrays(model)})


@cache
def long_stories(seed: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Stories of 512 words, and the least surprise of each word."""
    file = KEPT / f"told-{seed}.npz"
    if not file.exists():
        told = pf.data.stories(number, LONG + 1, seed=seed)
        least = [pf.data.word_surprises(story) for story in told] if seed >= 1000 else []
        KEPT.mkdir(parents=True, exist_ok=True)
        np.savez(file, ids=growing.encoded(told), least=np.array(least))
    read = np.load(file)
    return read["ids"], read["least"]


def without_weather(random: np.random.Generator, most_words: int) -> list[str]:
    """A story of whole sentences in which nobody tells the weather, or wears anything."""
    world: dict[str, str] = {}
    words: list[str] = []
    while True:
        allowed = [(p, one) for p, one in sentences(world) if not is_of_weather(one.text)]
        chances = np.array([p for p, _ in allowed])
        sentence = allowed[random.choice(len(allowed), p=chances / chances.sum())][1]
        if len(words) + len(sentence.text.split()) + 1 > most_words:
            return words
        words += [*sentence.text.split(), "."]
        world = after(world, sentence)


def is_of_weather(sentence: str) -> bool:
    """Whether a sentence tells of the weather, or of clothes."""
    return " wears " in sentence or sentence.removeprefix("it is ") in CLOTHES


@cache
def needles(distance: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stories that begin with the weather and end, so many words later, with somebody who *wears*.

    Their ids, up to the same length; where each ends; the right next words. A distance may be three words shorter or
    longer, as sentences are whole.
    """
    random = np.random.default_rng(distance)
    ids = np.zeros((NUM_NEEDLES, SHORT + 8 if distance <= SHORT else LONG), np.int32)
    ends, right = np.zeros((2, NUM_NEEDLES), int)
    for number, weather in zip(range(NUM_NEEDLES), itertools.cycle(CLOTHES), strict=False):
        told = without_weather(random, distance)
        who = next((word for word in told if word in PEOPLE), PEOPLE[0])
        story = growing.VOCABULARY.encode(" ".join([".", "it", "is", weather, ".", *told, who, "wears"]))
        ids[number, : len(story)], ends[number] = story, len(story) - 1
        right[number] = growing.VOCABULARY.encode(CLOTHES[weather])[0]
    return ids, ends, right


def asked(model: pf.Decoder) -> dict:
    """Nats per word above the floor in each stretch of long stories; right answers by the distance of the needle."""
    ids, least = long_stories(1000, NUM_LONG)
    expected = np.concatenate([growing.log_probabilities(model, part[:, :-1]) for part in np.split(ids, NUM_LONG // 8)])
    above = -np.take_along_axis(expected, ids[:, 1:, None], axis=2)[..., 0] - least
    found = []
    for distance in DISTANCES:
        texts, ends, right = needles(distance)
        answers = np.asarray(growing.log_probabilities(model, texts))[np.arange(NUM_NEEDLES), ends].argmax(axis=1)
        found.append(round(float((answers == right).mean()), 4))
    return {"above": [round(float(above[:, a:b].mean()), 4) for a, b in STRETCHES], "needle": found}


@eqx.filter_jit
def trained_further(model: pf.Decoder, batches) -> pf.Decoder:
    """The model after a step on every batch of long stories, at a third of the first learning rate."""
    config = pf.TrainingConfig(FURTHER, learning_rate=0.001, warmup_steps=10, weight_decay=0.1)
    optimiser = pf.training.make_optimiser(config)

    def step(carry, batch):
        model, state = carry
        windows = pf.data.Windows(batch[:, :-1], batch[:, 1:])
        slopes = eqx.filter_grad(pf.training.next_token_loss)(model, windows)
        updates, state = optimiser.update(slopes, state, eqx.filter(model, eqx.is_inexact_array))
        return (eqx.apply_updates(model, updates), state), None

    start = (model, optimiser.init(eqx.filter(model, eqx.is_inexact_array)))
    return jax.lax.scan(step, start, batches)[0][0]


def stretched(seed: int, name: str, further: bool) -> dict:
    """What a decoder of stories knows with its positions slowed: at once, or after more steps on long stories."""
    how = {"as it is": None, **ways(SHORT)}[name]
    model = eqx.tree_at(lambda model: model.stack.scheme, trained(BASE, seed), turning(8, how))
    if further:
        stories, _ = long_stories(seed, FURTHER * LONG_BATCH)
        model = trained_further(model, jnp.asarray(stories.reshape(FURTHER, LONG_BATCH, -1)))
    return asked(model)


def otherwise(seed: int, name: str) -> dict:
    """What a decoder knows that has linear biases, or that sees only the last 128 words when it is asked."""
    if name == "ALiBi":
        return asked(with_alibi(seed))
    model = pf.Decoder(config_of(window=SHORT), key=jax.random.key(0))
    return asked(pf.training.with_arrays(model, pf.training.named_arrays(trained(BASE, seed))))


def look(name: str, heads: int, seed: int):
    """What the models of the chapter on positions answer, by the name of what was done to them."""
    if name == "slowed":
        return looked(looking.Run("rotary", heads, seed=seed))
    return [shares(looking.trained(looking.Run(OTHERS[name], heads, seed=seed))[0])]


def told(name: str, further: bool, seed: int) -> dict:
    """What the decoders of stories answer, by the name of what was done to them."""
    if name == LARGER:
        return asked(trained(LARGER_BASE, seed))
    own = {"window of 128": otherwise, "ALiBi": otherwise}
    return own[name](seed, name) if name in own else stretched(seed, name, further)


LARGER = "larger base from the start"  # with the first seed alone
AT_ONCE = ["as it is", *ways(SHORT), "window of 128", "ALiBi"]
AFTER_MORE = ["as it is", *list(ways(SHORT))[:4]]  # these cost half a minute each, so with one seed
AGAIN = ["as it is", "by parts, 4"]  # and with a second one


def results() -> dict:
    """All that is recorded: of each model a list with what each seed gave; found where it is missing."""
    found: dict = {"look": {}, "stories": {"at once": {}, "further": {}}}
    for heads in looking.HEADS:
        of_width = found["look"].setdefault(str(64 // heads), {})
        for name in ["slowed", *OTHERS]:
            for seed in growing.SEEDS:
                one = kept(KEPT / f"look-{name}-{heads}-{seed}.json", partial(look, name, heads, seed))
                for way, answers in one.items() if name == "slowed" else [(name, one)]:
                    of_width.setdefault(way, []).append(answers)
    pieces = [(name, "at once", seed) for seed in growing.SEEDS for name in AT_ONCE]
    pieces += (
        [(LARGER, "at once", 0)]
        + [(name, "further", 0) for name in AFTER_MORE]
        + [(name, "further", 1) for name in AGAIN]
    )
    for name, when, seed in pieces:
        file = KEPT / f"stories-{name}-{when}-{seed}.json"
        one = kept(file, partial(told, name, when == "further", seed))
        found["stories"][when].setdefault(name, []).append(one)
        print(when, name, seed, one, flush=True)
    return found


def cells(of_seeds: list[list[float]], digits: int, scale: float = 1.0) -> str:
    """The cells of a row: mean, least and largest of the seeds."""
    numbers = scale * np.array(of_seeds)
    rows = zip(numbers.mean(axis=0), numbers.min(axis=0), numbers.max(axis=0), strict=True)
    return " | ".join(f"{mean:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})" for mean, low, high in rows)


def table(heads: list[str], rows: dict[str, str]) -> str:
    """A table of cells."""
    lines = [f"| | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    return "\n".join([*lines, *(f"| {name} | {row} |" for name, row in rows.items())])


def tables(found: dict) -> tuple[str, str, str]:
    """The letter three places before; the nats of stories; the needles."""
    looked_at = {}
    for width, names in found["look"].items():
        for name, seeds in names.items():
            for when, answers in enumerate(zip(*seeds, strict=True)):
                more = f", {FURTHER} more steps" if when else ""
                looked_at[f"heads of {width}: {name}{more}"] = cells(list(answers), 0, 100)
    above, right = {}, {}
    for when, names in found["stories"].items():
        more = f", {FURTHER} more steps" if when == "further" else ""
        for name, seeds in names.items():
            above[name + more] = cells([one["above"] for one in seeds], 3)
            right[name + more] = cells([one["needle"] for one in seeds], 0, 100)
    return (
        table([f"places {a} to {b - 1}" for a, b in PLACES], looked_at),
        table([f"words {a} to {b - 1}" for a, b in STRETCHES], above),
        table([f"{distance} words" for distance in DISTANCES], right),
    )


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: nats of the first words, per cent of needles found, and shares of right letters."""
    texts, at_once = {}, found["stories"]["at once"]
    above = {name: float(np.mean([one["above"][0] for one in seeds])) for name, seeds in at_once.items()}
    needles = {name: np.mean([one["needle"] for one in seeds], axis=0) for name, seeds in at_once.items()}
    for name in at_once:
        shares = zip(DISTANCES, needles[name], strict=True)
        texts[f"{name}.above"] = f"{above[name]:.2f}"
        texts[f"{name}.above.more"] = f"{above[name] - above['as it is']:.2f}"
        texts |= {f"{name}.needle.{distance}": percent(share) for distance, share in shares}
    texts |= ends(f"slower.needle.{DISTANCES[-1]}", [100 * needles[name][-1] for name in ways(SHORT)], ".0f")
    return texts | after_more(found["stories"]["further"]) | letters(found["look"])


def after_more(further: dict) -> dict[str, str]:
    """After more steps on long stories: by how many nats the last words are apart, and how many needles are found."""
    lasts = [seeds[0]["above"][-1] for seeds in further.values()]
    again = {name: further[name][1] for name in AGAIN}
    apart = np.ptp([one["above"][-1] for one in again.values()])
    texts = {f"further.{name}.needles": f"{NUM_NEEDLES * one['needle'][-1]:.0f}" for name, one in again.items()}
    return texts | {"further.apart": at_most(float(np.ptp(lasts)), 3), "further.again.apart": f"{apart:.3f}"}


def letters(look: dict) -> dict[str, str]:
    """Shares of right letters by the width of heads, the way and the first place, at once and after more steps."""
    texts: dict[str, str] = {}
    for width, names in look.items():
        for name, seeds in names.items():
            for when, shares in zip(("", ".further"), np.mean(seeds, axis=0), strict=False):
                place = f"look.{width}.{name}{when}"
                texts |= {f"{place}.{start}": f"{share:.2f}" for (start, _), share in zip(PLACES, shares, strict=True)}
                texts |= ends(place, shares)
    return texts


def card(found: dict) -> str:
    """What was done, and what came out."""
    letters, above, right = tables(found)
    numbers = "; ".join(f"{name}: {len(seeds)}" for name, seeds in found["stories"]["further"].items())
    return f"""# Rotary positions made slower

Trained models whose rotary positions are made slower, asked on texts longer than those of their training: at once, and
after more steps on long texts. No weights are kept: the answers are the result, and stand in `record.json`.

- **Ways.** `pf.positions` has `LinearScaling`, `NtkScaling`, `RotaryScaling` (by parts, from 1 to 4 turns, as Llama 3)
  and `YarnScaling` (from 1 to 32 turns), each with the factors {" and ".join(f"{by:g}" for by in FACTORS)}. The base is
  {BASE:,.0f}, and {LARGER_BASE:,.0f} for the larger base from the start.
- **Seeds.** 0 to 2 for weights and texts; after more steps on stories the first one or two of them, as many as
  follow: {numbers}. Numbers are means (least to largest).
- **Letters.** The models of `lab/positions`, 2,000 steps on the reference in windows of {looking.SHORT}, heads of 8 and
  of 32; asked for the letter three places before, in {looking.NUM_TEXTS} windows of {LOOK_LONG}. More steps are on
  windows of {4 * looking.SHORT}, at a learning rate of {looking.RATE / 3:.4f} falling to 0. Right answers in per cent:

{letters}

- **Stories.** The decoder of `lab/staircase`, 64 wide, four blocks, heads of 8, with rotary positions in the place of
  ALiBi, after {STEPS} steps on 32 stories of {SHORT} words, learning rate 0.003 falling to 0; asked on {NUM_LONG}
  stories of {LONG} words that it did not learn from. More steps are on {LONG_BATCH} stories of {LONG} words,
  learning rate 0.001. *ALiBi* is the stored machine of the staircase, after 1,000 steps. *Window of 128*: each token
  sees the last 128 words alone, in the model as it is. Nats per word above the lowest possible:

{above}

- **Needle.** A story begins with the weather and goes on without it; so many words later, give or take three, the
  model is asked what somebody wears: the first who was named, or Anna where nobody was, as in six of the stories of 32
  words and one of 64. {NUM_NEEDLES} stories for each distance; a guess is right in 33 %. Right answers in per cent:

{right}

- **Limits.** Small models, with four pairs of columns a head where nothing else is said; 128 words of training are
  20 turns of the fastest pair, and a fifth of a turn of the third. The decoders of stories learned half as long as the
  machine with ALiBi, and only one learning rate was tried for the more steps.
"""
