"""What a cache of few bits costs three stored models, and what batches that texts join and leave save.

No weights are kept: `record.json` holds losses, ranges of keys, and seconds of the machine that it was made on.
"""

import dataclasses
import statistics
import time
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

import plainformer as pf
from lab.records import BUILD, at_most, ends, kept, percent
from plainformer.attention.self_attention import scaled_scores, softmax
from plainformer.positions.positions import bias_of, near_keys

NEEDS = ("staircase", "shakespeare", "docstrings")
KEPT = BUILD / "caches"
LENGTH, NUM_TEXTS = 128, 48
WAYS = [  # bits, size of a group, by what keys and values are grouped, whether the newest is exact in any case
    *((8, 32, "channel", "token", False), (4, 8, "channel", "token", False), (4, 32, "channel", "token", False)),
    *((4, 32, "token", "token", False), (2, 32, "channel", "token", False), (2, 32, "token", "token", False)),
    *((2, 32, "channel", "token", True), (2, 32, "token", "token", True), (2, 32, "channel", "channel", True)),
]
LARGE_WAYS = WAYS[2:4]  # 4 bits, by channel and by token
FACTOR = 16.0
PLACES, MOST, WIDE = 8, 64, "drawn, twice as wide"


def texts_of(name: str, sample: int) -> np.ndarray:
    """Texts of a token more than are read, which the model has not learned from: another sample, other texts."""
    _, tokenizer = pf.load_pretrained(name)
    if name == "stories":
        return np.array([tokenizer.encode(text) for text in pf.data.stories(NUM_TEXTS, LENGTH + 1, seed=2000 + sample)])
    split = pf.data.tiny_shakespeare if name == "shakespeare" else pf.data.docstring_splits
    ids = tokenizer.encode(split()[1][sample * 50_000 :][:50_000])
    return np.array(ids[: NUM_TEXTS * (LENGTH + 1)]).reshape(NUM_TEXTS, LENGTH + 1)


def rounded(numbers: Float[Array, "*batch group"], most) -> Float[Array, "*batch group"]:
    """The numbers of each group as `pf.attention.quantise_groups` would keep them, with any largest code."""
    low, high = numbers.min(axis=-1, keepdims=True), numbers.max(axis=-1, keepdims=True)
    step = ((high - low) / most).astype(jnp.float16).astype(jnp.float32)
    low = low.astype(jnp.float16).astype(jnp.float32)
    return low + step * jnp.clip(jnp.round((numbers - low) / jnp.where(step == 0, 1, step)), 0, most)


class Rounded(pf.attention.Softmax):
    """Softmax attention to keys and values in few bits, as a model that reads one token at a time sees them: where a
    group is of several tokens, the newest one is exact; with `all_exact` as many tokens are, if it is not."""

    most: Float[Array, ""]
    keys_by_channel: Bool[Array, ""]
    values_by_channel: Bool[Array, ""]
    all_exact: Bool[Array, ""]
    group: int = eqx.field(static=True)

    def attend(self, queries, keys, values, mask, scheme):
        """Attend to the rounded ones, and add what the exact ones of the newest group have besides."""
        (*_, num_heads, seq, _), places = queries.shape, jnp.arange(queries.shape[-2])
        newest = places[:, None] // self.group == places // self.group
        small_keys, off_keys = self._rounded(keys, self.keys_by_channel)
        small_values, off_values = self._rounded(values, self.values_by_channel)
        scores = scaled_scores(queries, small_keys, bias=bias_of(scheme, places, places, num_heads))
        scores += scaled_scores(queries, off_keys) * (newest & (self.keys_by_channel | self.all_exact))
        near, table = near_keys(scheme, places, places), mask.table(seq, seq)
        weights = softmax(scores, table if near is None else table & near)
        return weights @ small_values + weights * (newest & (self.values_by_channel | self.all_exact)) @ off_values

    def _rounded(self, rows, by_channel):
        width = rows.shape[-1]

        def in_groups(rows, size):
            return rounded(rows.reshape(*rows.shape[:-1], -1, size), self.most).reshape(rows.shape)

        by_token = in_groups(rows, min(self.group, width))
        small = jnp.where(by_channel, in_groups(rows.mT, self.group).mT, by_token)
        return small, rows - small


def with_kernel(model, kernel):
    """The model with another way of attention in all blocks."""
    return eqx.tree_at(
        lambda model: [block.attention.kernel for block in model.stack.blocks], model, replace_fn=lambda _: kernel
    )


@eqx.filter_jit
def loss(model, ids) -> Float[Array, ""]:
    """Nats per token."""
    return pf.cross_entropy(model(ids[:, :-1]), ids[:, 1:])


def with_large_channels(model, factor: float = FACTOR):
    """The same model with a few channels of all keys so many times as large, and those of the queries as small.

    Scores are what they were. Of rotary positions whole pairs are taken, so that turning changes nothing either.
    """
    d_k, num_heads = model.config.stack.key_width, model.config.stack.num_heads
    large = [0] if model.config.stack.position_scheme == "alibi" else [0, 1, d_k // 2, d_k // 2 + 1]
    scale = np.tile(np.where(np.isin(np.arange(d_k), large), factor, 1), num_heads).astype(np.float32)

    def matrices(model):
        return [layer.weight for block in model.stack.blocks for layer in (block.attention.query, block.attention.key)]

    by = [1 / scale, scale] * len(model.stack.blocks)
    return eqx.tree_at(matrices, model, [matrix * each for matrix, each in zip(matrices(model), by, strict=True)])


def losses_of(name: str, sample: int, ways=WAYS, *, large: bool = False) -> dict:
    """By how much the loss of a model rises in each way, in nats per token; also if some channels are made large."""
    (model, _), ids = pf.load_pretrained(name), jnp.asarray(texts_of(name, sample))
    model = with_large_channels(model) if large else model
    whole = float(loss(model, ids))
    found = {"32 bits": round(whole, 4)}
    for bits, group, keys, values, all_exact in ways:
        most = jnp.asarray(2.0**bits - 1)
        flags = (jnp.asarray(flag) for flag in (keys == "channel", values == "channel", all_exact))
        kernel = Rounded(most, *flags, group)
        of_way = float(loss(with_kernel(model, kernel), ids))
        way = f"{bits} bits, groups of {group}, keys by {keys}, values by {values}"
        found[way + ", newest exact" * all_exact] = round(of_way - whole, 5)
    print(name, sample, found, flush=True)
    return found


def loss_by_cache(name: str, ids, bits: int, group: int) -> float:
    """Nats per token of a model that reads one token at a time with the package's cache."""
    model, _ = pf.load_pretrained(name)

    @eqx.filter_jit
    def read(model, ids):
        def step(cache, column):
            rows, cache = model.extend(column[0][:, None], cache)
            return cache, pf.cross_entropy(model.logits(rows)[:, 0], column[1])

        cache = model.make_cache(ids.shape[1], batch=(len(ids),), bits=bits, group=group)
        return jax.lax.scan(step, cache, (ids[:, :-1].T, ids[:, 1:].T))[1].mean()

    return float(read(model, jnp.asarray(ids)))


def ranges_of(name: str) -> dict:
    """How far the numbers of keys reach: by how many times the widest channel is wider than the middle one, in each
    head; the same of tokens; and the reach of each channel in the head where channels differ most."""
    (model, _), ids = pf.load_pretrained(name), texts_of(name, 0)[:16, :-1]
    seen = pf.look(model, jnp.asarray(ids))[1]
    ratios: dict[str, list[float]] = {"channels": [], "tokens": []}
    reaches = []
    for layer in range(len(model.stack.blocks)):
        keys = np.asarray(seen[f"stack.blocks.{layer}.attention.keys"])  # texts, heads, tokens, channels
        for head in keys.swapaxes(0, 1):
            by_channel, by_token = np.abs(head).max(axis=(0, 1)), np.abs(head).max(axis=-1).ravel()
            reaches.append(by_channel)
            for kind, reach in zip(ratios, (by_channel, by_token), strict=True):
                ratios[kind].append(float(reach.max() / np.median(reach)))
    worst = int(np.argmax(ratios["channels"]))
    summary = {kind: [round(float(np.median(each)), 2), round(max(each), 2)] for kind, each in ratios.items()}
    return summary | {
        "worst": [round(float(each), 2) for each in reaches[worst]],
        "place": [*divmod(worst, len(keys.swapaxes(0, 1)))],
    }


def seconds_of_bits(d_model: int = 256, capacity: int = 1024, batch: int = 8, rounds: int = 7, steps: int = 10) -> dict:
    """Milliseconds for a token of each text, from a cache that is nearly full; medians over interleaved rounds."""
    stack = pf.StackConfig(d_model=d_model, num_layers=4, num_heads=8, position_scheme="rotary", activation="swiglu")
    model = pf.Decoder(pf.DecoderConfig(512, capacity, stack=stack), key=jax.random.key(0))

    @eqx.filter_jit(donate="all-except-first")
    def step(model, cache, tokens):
        rows, cache = model.extend(tokens, cache)
        return cache, model.logits(rows)[:, 0].argmax(axis=-1)[:, None].astype(jnp.int32)

    states: dict = {}
    taken: dict = {}
    for bits in (None, 8, 4):
        read = eqx.filter_jit(lambda model, tokens, cache: model.extend(tokens, cache)[1])
        empty = model.make_cache(capacity, batch=(batch,), bits=bits)
        first = jnp.zeros((batch, capacity - (rounds + 1) * steps), jnp.int32)
        states[bits], taken[bits] = (read(model, first, empty), jnp.zeros((batch, 1), jnp.int32)), []
    for _ in range(rounds + 1):  # the first of them compiles
        for bits, state in states.items():
            start = time.perf_counter()
            for _ in range(steps):
                state = step(model, *state)
            jax.block_until_ready(state)
            taken[bits].append((time.perf_counter() - start) / steps * 1000)
            states[bits] = state
    sizes = {
        bits: sum(leaf.nbytes for part in cache for leaf in jax.tree.leaves((part.key_columns, part.value_rows)))
        for bits, (cache, _) in states.items()
    }
    return {
        str(bits or 32): {"milliseconds": round(statistics.median(each[1:]), 2), "bytes": sizes[bits]}
        for bits, each in taken.items()
    }


def prompts_of(count: int = 96) -> list[list[int]]:
    """The first 40 tokens of speeches that the model has not read, no two of which begin with the same eight."""
    _, tokenizer = pf.load_pretrained("shakespeare")
    speeches = [each for each in pf.data.tiny_shakespeare()[1].split("\n\n") if len(each) > 120]
    return list({tuple(ids[:8]): ids[:40] for ids in map(tokenizer.encode, speeches[:count])}.values())


def case_of(kind: str, seed: int) -> tuple[list[list[int]], list[int], list[int]]:
    """Prompts, how long each text may become, and after which tokens it ends.

    `lines` are written to their end after beginnings of 8 to 40 tokens; others follow eight tokens and are as long as
    is drawn: most are short, and some are long.
    """
    prompts, (_, tokenizer) = prompts_of(), pf.load_pretrained("shakespeare")
    if kind == "lines":
        prompts = [prompt[: 8 + 5 * number % 33] for number, prompt in enumerate(prompts)]
        ends = [token for token in range(len(tokenizer)) if "\n" in tokenizer.decode([token])]
        return prompts, [MOST] * len(prompts), ends
    lengths = np.random.default_rng(seed).geometric(1 / 24, size=len(prompts))
    return [prompt[:8] for prompt in prompts], np.clip(lengths, 1, 100).tolist(), []


def wait_for_the_slowest(model, prompts, lengths, options) -> tuple[list[list[int]], int]:
    """What batches write that end with their longest text, and after how many steps."""
    found, steps = [], 0
    for first in range(0, len(prompts), PLACES):
        some = slice(first, first + PLACES)
        texts = pf.generate(model, prompts[some], max(lengths[some]), **options)
        steps += max(len(text.tokens) for text in texts) - 1  # the first token comes with the prompt
        found += [text.tokens[:length] for text, length in zip(texts, lengths[some], strict=True)]
    return found, steps


def join_and_leave(model, prompts, lengths, options) -> tuple[list[list[int]], int]:
    """The same texts, written by texts that join and leave."""
    server = pf.generation.Server(model, places=PLACES, **options)
    for prompt, length in zip(prompts, lengths, strict=True):
        server.submit(prompt, length)
    return [text.tokens for text in server.run().values()], server.num_steps


def writer_of(kind: str) -> pf.Decoder:
    """The model that writes plays, of width 256; or one twice as wide, which is not trained: only its time counts."""
    model, _ = pf.load_pretrained("shakespeare")
    if kind != WIDE:
        return model
    stack = dataclasses.replace(model.config.stack, d_model=2 * model.config.stack.d_model, d_ff=None)
    return pf.Decoder(dataclasses.replace(model.config, stack=stack), key=jax.random.key(0))


def serving(kind: str, rounds: int = 3) -> dict:
    """Seconds and steps of both ways for two seeds, and how long the texts were."""
    model, found = writer_of(kind), {}
    ways = {"waits": wait_for_the_slowest, "joins": join_and_leave}
    for seed in (0, 1):
        prompts, most, ends = case_of(kind, seed)
        options = {"stop_tokens": ends, "key": jax.random.key(seed)}
        taken: dict = {name: [] for name in ways}
        texts, steps = {}, {}
        for _ in range(rounds + 1):  # the first of them compiles
            for name, way in ways.items():
                start = time.perf_counter()
                texts[name], steps[name] = way(model, prompts, most, options)
                taken[name].append(time.perf_counter() - start)
        seconds = {name: round(statistics.median(each[1:]), 3) for name, each in taken.items()}
        lengths, same = sorted(map(len, texts["waits"])), texts["waits"] == texts["joins"]
        found[f"seed {seed}"] = {"steps": steps, "seconds": seconds, "lengths": lengths, "same texts": same}
        print(kind, found[f"seed {seed}"], flush=True)
    return found


def results() -> dict:
    """All that is recorded; what was found already is not measured again."""
    found: dict = {"losses": {}, "large": {}, "ranges": {}, "seconds": {}}
    for name in ("stories", "shakespeare", "docstrings"):
        found["losses"][name] = [kept(KEPT / f"{name}_{n}.json", partial(losses_of, name, n)) for n in (0, 1)]
        large = [partial(losses_of, name, n, LARGE_WAYS, large=True) for n in (0, 1)]
        found["large"][name] = [kept(KEPT / f"{name}_{n}_large.json", large[n]) for n in (0, 1)]
        found["ranges"][name] = kept(KEPT / f"{name}_ranges.json", partial(ranges_of, name))
    for capacity in (256, 1024):
        seconds = partial(seconds_of_bits, capacity=capacity)
        found["seconds"][str(capacity)] = kept(KEPT / f"seconds_{capacity}.json", seconds)
    found["serving"] = {
        kind: kept(KEPT / f"serving_{kind}.json", partial(serving, kind)) for kind in ("lines", "drawn", WIDE)
    }
    return found


def lines_of_losses(losses: dict) -> str:
    """A line of the card for each way: what it costs each model, in both samples."""
    lines = []
    for way in list(losses["stories"][0])[1:]:
        cells = (", ".join(f"{sample[way]:+.4f}" for sample in samples) for samples in losses.values())
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines)


def lines_of_ranges(ranges: dict) -> str:
    """A line of the card for each model: how unequal channels of keys are, and tokens."""
    cells = {name: (*found["channels"], *found["tokens"]) for name, found in ranges.items()}
    return "\n".join(f"| {name} | {' | '.join(f'{each:.2f}' for each in line)} |" for name, line in cells.items())


def lines_of_seconds(seconds: dict) -> str:
    """A line of the card for each length and number of bits."""
    return "\n".join(
        f"| {capacity} | {bits} | {one['bytes'] / 2**20:.1f} MiB | {one['milliseconds']:.1f} |"
        for capacity, found in seconds.items()
        for bits, one in found.items()
    )


def lines_of_serving(served: dict) -> str:
    """A line of the card for each case, seed and way."""
    lines = []
    for kind, seeds in served.items():
        for seed, one in seeds.items():
            quarters = ", ".join(f"{each:.0f}" for each in np.percentile(one["lengths"], (0, 25, 50, 75, 100)))
            for way, seconds in one["seconds"].items():
                speed = sum(one["lengths"]) / seconds
                lines.append(
                    f"| {kind}, {seed} | {quarters} | {sum(one['lengths'])} | {way} | {one['steps'][way]} | "
                    f"{seconds:.2f} | {speed:.0f} |"
                )
    return "\n".join(lines)


def costs(losses: dict, way: str) -> dict[str, float]:
    """By how much the loss of each model rises in one way, in the mean of its samples."""
    return {name: float(np.mean([sample[way] for sample in samples])) for name, samples in losses.items()}


def facts(found: dict) -> dict[str, str]:
    """What the chapter says: nats that few bits cost, what the axis changes, how far channels reach, and speeds."""
    losses, way = found["losses"], "{} bits, groups of 32, keys by {}, values by token"
    rises = {
        bits: [sample[way.format(bits, "channel")] for samples in losses.values() for sample in samples]
        for bits in (8, 4)
    }
    channel, token = (costs(losses, way.format(2, axis)) for axis in ("channel", "token"))
    exact, exact_token = (costs(losses, way.format(2, axis) + ", newest exact") for axis in ("channel", "token"))
    texts = {
        "8_bits.moves": at_most(max(map(abs, rises[8])), 4),
        "4_bits.rises": at_most(max(rises[4]), 3),
        "4_bits.token.docstrings": f"{costs(losses, way.format(4, 'token'))['docstrings']:.3f}",
        "2_bits.token.docstrings": f"{token['docstrings']:.2f}",
        "newest_exact.token.docstrings": f"{exact_token['docstrings']:.2f}",
        "large.token.docstrings": f"{costs(found['large'], way.format(4, 'token'))['docstrings']:.2f}",
    }
    texts |= ends("2_bits.token.times", [token[name] / channel[name] for name in losses], ".1f")
    texts |= {f"newest_exact.channel.{name}": percent(exact[name] / exact_token[name]) for name in losses}
    texts |= ends("channels.reach", [each["channels"][0] for each in found["ranges"].values()], ".1f")
    return texts | speeds(found["serving"])


def speeds(served: dict) -> dict[str, str]:
    """How many texts were written, and by how many per cent joining changes the tokens per second."""
    seconds = {kind: [one["seconds"] for one in seeds.values()] for kind, seeds in served.items()}
    faster = {kind: [each["waits"] / each["joins"] - 1 for each in runs] for kind, runs in seconds.items()}
    fewer = [-100 * share for kind, shares in faster.items() if kind != WIDE for share in shares]
    texts = {f"joins.wide.more.{seed}": percent(share) for seed, share in enumerate(faster[WIDE])}
    return texts | ends("joins.fewer", fewer, ".0f") | {"prompts": str(len(served["lines"]["seed 0"]["lengths"]))}


def card(found: dict) -> str:
    """What was done, and what came out."""
    return TEXT.format(
        texts=NUM_TEXTS,
        losses=lines_of_losses(found["losses"]),
        factor=int(FACTOR),
        large=lines_of_losses(found["large"]),
        ranges=lines_of_ranges(found["ranges"]),
        seconds=lines_of_seconds(found["seconds"]),
        prompts=len(found["serving"]["lines"]["seed 0"]["lengths"]),
        places=PLACES,
        most=MOST,
        serving=lines_of_serving(found["serving"]),
    )


TEXT = """# Caches of few bits, and texts that join and leave

By `lab/caches/run.py`, which `make models` runs. The numbers stand in `record.json`.

- **Losses.** `stories.safetensors` (width 64, 8 heads), `shakespeare.safetensors` (width 256, 8 heads) and
  `docstrings.safetensors` (width 64, 2 heads), all of four blocks, on {texts} texts of 128 tokens that they had not
  learned from; then on {texts} others. By how much the loss rises above that with 32 bits, in nats per token, in the
  first and in the second sample. Where a group is of several tokens, the newest group is exact, as in the package's
  cache; "newest exact" means that as many tokens are exact in any case. Groups of a token are not wider than a head.

| way | stories | shakespeare | docstrings |
|---|---|---|---|
{losses}

- **Large channels.** The same models and texts after one channel of the keys of each head, or two pairs of those that
  positions turn, was made {factor} times as large and the queries' as small, which leaves the models what they are.

| way | stories | shakespeare | docstrings |
|---|---|---|---|
{large}

- **Keys.** How many times the widest channel reaches as far as the middle one: the middle of all heads, and the most.
  The same of tokens.

| model | channels: middle | most | tokens: middle | most |
|---|---|---|---|---|
{ranges}

- **Seconds.** An untrained decoder of four blocks, width 256, 8 heads, eight texts, from a nearly full cache:
  milliseconds for a token of each, median of seven interleaved rounds of ten steps, on one core of a processor.

| slots | bits | cache | milliseconds |
|---|---|---|---|
{seconds}

- **Serving.** `shakespeare` writes on after {prompts} beginnings of speeches, in {places} places, at temperature 1. The
  case `lines`: after 8 to 40 tokens, to the end of the line or for {most} tokens. `drawn`: after 8 tokens, as many as
  come from a geometric distribution with mean 24, at most 100; then by an untrained model of width 512. `waits` is
  `pf.generate` with {places} prompts at once, `joins` is `pf.generation.Server`; both write the same tokens. Seconds
  are medians of three interleaved rounds, on one core.

| case | least length, quarters, most | tokens | way | steps | seconds | tokens per second |
|---|---|---|---|---|---|---|
{serving}

| knobs turned | what was tried |
|---|---|
| model | three of two widths, of words and of byte pairs, with ALiBi and with rotary positions; width 512 for time |
| sample | a second one of other texts; a second random key |
| bits | 8, 4 and 2; groups of 8 and 32 |
| axis | keys by channel and by token, values by token and by channel |
| length of the cache | 256 and 1,024 slots |

- **Limits.** Small models, which were trained with little data; texts of 128 tokens. The seconds are those of one core
  of one processor that did other work, too.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
