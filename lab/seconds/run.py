"""Measure seconds of writing with fewer keys and values, a draft, batches, a cache in 8 bits; write them with a card.

Only a small draft is trained, for the stored model of Shakespeare; its weights are not kept. `record.json` holds the
times.
"""

import dataclasses
from collections.abc import Iterator
from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from lab.clock import seconds_in_turn
from lab.language_models import LENGTH, nats_per_character
from lab.records import BUILD, kept, percent
from lab.seconds import roof
from plainformer.attention.kernels import Softmax
from plainformer.generation import speculative_generate
from plainformer.models.accounting import cache_bytes

NEEDS = ("shakespeare",)
KEPT = BUILD / "seconds"
DRAFT = pf.StackConfig(
    d_model=96, num_layers=2, num_heads=3, d_ff=256, norm="rms", activation="swiglu", position_scheme="rotary",
    use_bias=False,
)  # fmt: skip
DRAFT_STEPS, DRAFT_BATCH, DRAFT_RATE = 1000, 16, 3e-3
START, NEW, NUM_TEXTS = 16, 96, 12  # tokens given, tokens written, texts
NUM_DRAFTED, TEMPERATURES, BATCHES = (1, 2, 4), (0.0, 1.0), (1, 2, 4, 8, 16)
LONG, SHORT, WIDE_HEADS = 4096, 256, 8
READ, WIDTH = (8192, 16384), 64  # tokens that a head reads at once, and its width
WIDE = pf.StackConfig(
    d_model=512, num_layers=2, num_heads=WIDE_HEADS, d_ff=1024, norm="rms", activation="swiglu",
    position_scheme="rotary", use_bias=False,
)  # fmt: skip
MODERN = pf.StackConfig(norm="rms", activation="swiglu", position_scheme="rotary", use_bias=False)
# A model too large for a processor's caches, and a draft of a tenth of its numbers; neither is trained.
PAIR = (
    pf.DecoderConfig(512, SHORT, stack=dataclasses.replace(MODERN, d_model=768, num_layers=6, num_heads=12, d_ff=2048)),
    pf.DecoderConfig(512, SHORT, stack=dataclasses.replace(MODERN, d_model=256, num_layers=5, num_heads=4, d_ff=680)),
)
PAIR_NEW = 32


@cache
def shakespeare() -> tuple:
    """The stored model, its tokenizer, and the ids of both parts of the text."""
    model, tokenizer = pf.load_pretrained("shakespeare")
    return model, tokenizer, [tokenizer.encode(text) for text in pf.data.tiny_shakespeare()]


@cache
def draft() -> pf.Decoder:
    """A model of a tenth of the size, trained on the same text; its steps are kept under `build/models`."""
    _, tokenizer, (learning, _) = shakespeare()
    model, _ = pf.fit(
        pf.Decoder(pf.DecoderConfig(len(tokenizer), LENGTH, stack=DRAFT), key=jax.random.key(0)),
        pf.training.next_token_loss,
        pf.data.random_windows(learning, LENGTH, DRAFT_BATCH),
        pf.TrainingConfig(num_steps=DRAFT_STEPS, learning_rate=DRAFT_RATE, warmup_steps=100, min_lr_ratio=0.02),
        directory=KEPT / "draft",
        progress=False,
    )
    return model


def beginnings(num: int) -> list[list[int]]:
    """Pieces of the held-out text, from anywhere."""
    ids = shakespeare()[2][1]
    return [ids[start : start + START] for start in np.random.default_rng(0).integers(len(ids) - START, size=num)]


def heads() -> dict:
    """Milliseconds per token of a model that was not trained, with all heads of keys and values and with one."""
    found: dict = {}
    for length, rounds in ((SHORT, 25), (LONG, 5)):
        writers = {}
        for num_kv_heads in (WIDE_HEADS, 1):
            config = pf.DecoderConfig(512, LONG, stack=dataclasses.replace(WIDE, num_kv_heads=num_kv_heads))
            model = pf.Decoder(config, key=jax.random.key(0))
            prompt = list(range(START))
            writers[str(num_kv_heads)] = partial(pf.generate, model, prompt, length - START, temperature=0.0)
        seconds = seconds_in_turn(writers, rounds)
        found[str(length)] = {name: round(1e3 * each / (length - START), 3) for name, each in seconds.items()}
    return found


def megabytes() -> dict[str, dict[str, float]]:
    """What the cache of a long text and the weights of the blocks take, by the heads of keys and values."""
    found: dict[str, dict[str, float]] = {"cache": {}, "weights": {}}
    for num_kv_heads in (WIDE_HEADS, 1):
        stack = dataclasses.replace(WIDE, num_kv_heads=num_kv_heads)
        model = eqx.filter_eval_shape(pf.Decoder, pf.DecoderConfig(512, LONG, stack=stack), key=jax.random.key(0))
        found["cache"][str(num_kv_heads)] = round(cache_bytes(stack, LONG) / 1e6, 1)
        found["weights"][str(num_kv_heads)] = round(4 * pf.count_parameters(model.stack) / 1e6, 1)
    return found


def speculation() -> dict:
    """Milliseconds per token alone and with a draft, and how many tokens each call of the large model gave."""
    model, small, prompts = shakespeare()[0], draft(), beginnings(NUM_TEXTS)
    found: dict = {}
    for temperature in TEMPERATURES:
        how = {"temperature": temperature} | ({"key": jax.random.key(1)} if temperature else {})

        def alone(how=how):
            return [pf.generate(model, prompt, NEW, **how).log_prob for prompt in prompts]

        def with_draft(num, how=how):
            return speculative_generate(model, small, prompts, NEW, num_drafted=num, **how)

        actions = {"alone": alone} | {str(num): partial(with_draft, num) for num in NUM_DRAFTED}
        actions["draft alone"] = lambda how=how: [pf.generate(small, prompt, NEW, **how).log_prob for prompt in prompts]
        seconds = seconds_in_turn({name: partial(_quiet, action) for name, action in actions.items()}, rounds=5)
        calls = {
            str(num): round(NEW / float(np.mean([text.num_calls for text in with_draft(num)])), 3)
            for num in NUM_DRAFTED
        }
        per_token = {name: round(1e3 * each / NEW / NUM_TEXTS, 3) for name, each in seconds.items()}
        found[f"{temperature:g}"] = {"ms": per_token, "per call": calls}
    return found


def large_pair() -> dict[str, float]:
    """Milliseconds of a token of the large model alone, of one of its draft, and of a round by the number drafted.

    Times do not depend on the numbers, so neither model is trained; of such drafts nearly all is refused.
    """
    model, small = (pf.Decoder(config, key=jax.random.key(n)) for n, config in enumerate(PAIR))
    prompt, calls = list(range(START)), {}

    def rounds(num):
        found = speculative_generate(model, small, prompt, PAIR_NEW, num_drafted=num, temperature=0.0)
        calls[str(num)] = found.num_calls

    actions = {str(num): partial(rounds, num) for num in NUM_DRAFTED}
    for name, each in {"alone": model, "draft": small}.items():
        actions[name] = partial(_quiet, partial(pf.generate, each, prompt, PAIR_NEW, temperature=0.0))
    seconds = seconds_in_turn(actions, rounds=5)
    return {name: round(1e3 * each / calls.get(name, PAIR_NEW), 3) for name, each in seconds.items()}


def reading() -> dict[str, dict[str, float]]:
    """Milliseconds of one head's causal attention to a long text, all scores at once and by blocks."""
    forms = {
        "at once": lambda q, k, v: pf.attend(q, k, v, pf.causal_mask(q.shape[-2])),
        "by blocks": lambda q, k, v: pf.attention.blockwise_attention(q, k, v, pf.attention.Mask(causal=True)),
    }
    found = {}
    for length in READ:
        rows = np.random.default_rng(length).normal(size=(3, 1, length, WIDTH)).astype(np.float32)
        seconds = seconds_in_turn({name: partial(jax.jit(each), *rows) for name, each in forms.items()}, rounds=3)
        found[str(length)] = {name: round(1e3 * each, 1) for name, each in seconds.items()}
    return found


def _quiet(action) -> None:
    """Do it, and return nothing that one could wait for."""
    action()


def batches() -> dict[str, float]:
    """Milliseconds per token by how many texts are written side by side; what they begin with does not matter."""
    (model, tokenizer), key = pf.load_pretrained("shakespeare"), jax.random.key(1)
    prompts = np.random.default_rng(0).integers(len(tokenizer), size=(max(BATCHES), START)).tolist()
    writers = {str(num): partial(_quiet, partial(pf.generate, model, prompts[:num], NEW, key=key)) for num in BATCHES}
    seconds = seconds_in_turn(writers, rounds=7)
    return {name: round(1e3 * each / NEW / int(name), 3) for name, each in seconds.items()}


def in_whole_numbers(rows, bits: int = 8):
    """Each row in whole numbers times a step of its own, as a cache may keep keys and values."""
    largest = 2 ** (bits - 1) - 1
    step = jnp.abs(rows).max(axis=-1, keepdims=True) / largest
    return jnp.round(rows / jnp.where(step == 0, 1, step)).astype(jnp.int8), step


class Rounded(Softmax):
    """Attention to keys and values that were kept in few bits."""

    bits: int = eqx.field(static=True, default=8)

    def attend(self, queries, keys, values, mask, scheme):
        """Attend to what is left of them."""
        keys, values = (whole * step for whole, step in (in_whole_numbers(rows, self.bits) for rows in (keys, values)))
        return super().attend(queries, keys, values, mask, scheme)


def loss_in_bits(bits: int) -> float:
    """Nats per token of the held-out text, with keys and values of so many bits; 32 for floats."""
    model, _, (_, held_out) = shakespeare()
    if bits < 32:
        layers = [block.attention for block in model.stack.blocks]
        few = [eqx.tree_at(lambda layer: layer.kernel, each, Rounded(bits), is_leaf=_is_kernel) for each in layers]
        model = eqx.tree_at(lambda model: [block.attention for block in model.stack.blocks], model, few)
    return round(float(pf.training.corpus_loss(model, pf.data.consecutive_windows(held_out, LENGTH))), 5)


def _is_kernel(part) -> bool:
    return isinstance(part, Softmax)


def reading_the_cache() -> dict[str, float]:
    """Milliseconds for one token's attention to 4,096 keys and values in eight heads, kept as floats or in 8 bits."""
    width = WIDE.d_model // WIDE_HEADS
    query, keys, values = (
        jnp.asarray(np.random.default_rng(n).normal(size=(WIDE_HEADS, rows, width)), jnp.float32)
        for n, rows in enumerate((1, LONG, LONG))
    )
    small = [in_whole_numbers(rows) for rows in (keys, values)]

    def products(query, keys, values):
        return jax.nn.softmax(query @ keys.mT / width**0.5) @ values

    def from_bytes(query, keys, values):
        return products(query, *(whole.astype(jnp.float32) * step for whole, step in (keys, values)))

    def sums(query, keys, values):  # every whole number becomes a float on its way, and is not stored as one
        scores = (keys[0].astype(jnp.float32) * query).sum(axis=-1, keepdims=True) * keys[1] / width**0.5
        weights = jax.nn.softmax(scores, axis=-2) * values[1]
        return (values[0].astype(jnp.float32) * weights).sum(axis=-2, keepdims=True)

    actions = {
        "32": partial(jax.jit(products), query, keys, values),
        "8": partial(jax.jit(from_bytes), query, *small),
        "8, by sums": partial(jax.jit(sums), query, *small),
    }
    np.testing.assert_allclose(actions["8"](), actions["8, by sums"](), atol=1e-5)
    return {name: round(1e3 * each, 3) for name, each in seconds_in_turn(actions, rounds=15, calls=10).items()}


def sizes() -> dict:
    """Parameters of both models, and their nats per character of the held-out text."""
    models, held_out = {"model": shakespeare()[0], "draft": draft()}, shakespeare()[2][1]
    characters = len(pf.data.tiny_shakespeare()[1])
    losses = {name: round(nats_per_character(model, held_out, characters), 4) for name, model in models.items()}
    return {"parameters": {name: pf.count_parameters(model) for name, model in models.items()}, "losses": losses}


def cache_in_bits() -> dict:
    """What keys and values in few bits cost, and what they save: nats, milliseconds, bytes per token and head."""
    width = WIDE.d_model // WIDE_HEADS
    nats = {str(bits): loss_in_bits(bits) for bits in (32, 8, 4)}
    return {"nats": nats, "ms": reading_the_cache(), "bytes": {"32": 8 * width, "8": 2 * (width + 4)}}


PARTS = {
    "bits": cache_in_bits,
    "batches": batches,
    "heads": heads,
    "large pair": large_pair,
    "megabytes": megabytes,
    "reading": reading,
    "sizes": sizes,
    "speculation": speculation,
}


def results() -> dict:
    """All numbers of the card; the roof is that of the faster of two measurements, before all else and after it."""
    before = kept(KEPT / "machine.json", roof.machine)
    found = {name: kept(KEPT / f"{name}.json", find) for name, find in PARTS.items()}
    after = kept(KEPT / "machine after.json", roof.machine)
    return found | {"machine": {name: max(before[name], after[name]) for name in before}}


def speculation_table(found: dict) -> str:
    """Milliseconds per token with a draft, and tokens per call of the large model."""
    titles = " | ".join(f"{num} drafted" for num in NUM_DRAFTED)
    lines = [f"| temperature | alone | {titles} | the draft alone |", "|---" * (3 + len(NUM_DRAFTED)) + "|"]
    for temperature, each in found["speculation"].items():
        ms, per_call = each["ms"], each["per call"]
        cells = [f"{ms[str(num)]:.2f} ms ({per_call[str(num)]:.2f} per call)" for num in NUM_DRAFTED]
        lines.append(f"| {temperature} | {ms['alone']:.2f} ms | {' | '.join(cells)} | {ms['draft alone']:.2f} ms |")
    return "\n".join(lines)


def lines(found: dict) -> Iterator[roof.Line]:
    """What is compared: milliseconds per token or, where a text is only read, in all; with the work of both ways."""
    for length, ms in found["heads"].items():
        works = [
            roof.writing(pf.DecoderConfig(512, LONG, stack=dataclasses.replace(WIDE, num_kv_heads=num)), int(length))
            for num in (WIDE_HEADS, 1)
        ]
        yield roof.Line(f"1 head of keys and values for 8, room for {int(length):,}", ms["8"], ms["1"], *works)
    model, room = pf.load_pretrained("shakespeare")[0].config, START + NEW
    alone = roof.writing(model, room)
    for num in ("4", "16"):
        work = roof.writing(model, room, texts=int(num)).times(1 / int(num))
        yield roof.Line(f"{num} texts at once", found["batches"]["1"], found["batches"][num], alone, work)
    small = pf.DecoderConfig(model.vocab_size, LENGTH, stack=DRAFT)
    for temperature, each in found["speculation"].items():
        work = roof.speculating(model, small, room, 4).times(1 / each["per call"]["4"])
        name = f"a draft for {of_millions(model)} numbers, temperature {temperature}"
        yield roof.Line(name, each["ms"]["alone"], each["ms"]["4"], alone, work)
    pair, room = found["large pair"], START + PAIR_NEW
    for temperature, each in found["speculation"].items():
        per_call = each["per call"]["4"]
        work = roof.speculating(*PAIR, room, 4).times(1 / per_call)
        name = f"a draft for {of_millions(PAIR[0])} numbers, temperature {temperature}"
        yield roof.Line(name, pair["alone"], pair["4"] / per_call, roof.writing(PAIR[0], room), work)
    for length, ms in found["reading"].items():
        works = [roof.attending(int(length), WIDTH, blocks) for blocks in (False, True)]
        yield roof.Line(f"one head reads {int(length):,} tokens by blocks", ms["at once"], ms["by blocks"], *works)
    bits, rows = found["bits"], WIDE_HEADS * LONG
    works = [roof.Work(rows * bits["bytes"][num], 4 * rows * WIDE.d_model // WIDE_HEADS) for num in ("32", "8")]
    yield roof.Line("keys and values in 8 bits, attention alone", bits["ms"]["32"], bits["ms"]["8"], *works)


def of_millions(config: pf.DecoderConfig) -> str:
    """How many numbers a decoder has."""
    return f"{roof.weights(config) / 4e6:.1f} million"


def of_heads(found: dict) -> str:
    """What the card says of fewer keys and values."""
    cache, weights = found["megabytes"]["cache"], found["megabytes"]["weights"]
    return f"""- **Fewer keys and values.** `pf.generate` writes {LONG - START:,} tokens, greedily, after {START}, in a
  cache with room for {LONG:,}, and {SHORT - START} in one for {SHORT}. The model was not trained, since times do not
  depend on the numbers: {WIDE.num_layers} blocks of width {WIDE.d_model}, {WIDE_HEADS} heads. The large cache takes
  {cache["8"]:.1f} MB and, with one head of keys and values, {cache["1"]:.1f}; the blocks {weights["8"]:.1f} and
  {weights["1"]:.1f}."""


def of_drafts(found: dict) -> str:
    """What the card says of a draft."""
    count, loss, pair = found["sizes"]["parameters"], found["sizes"]["losses"], found["large pair"]
    rounds = ", ".join(f"{pair[str(num)]:.1f} ms with {num} drafted" for num in NUM_DRAFTED)
    return f"""- **A draft.** The model of plays is `shakespeare.safetensors`, {count["model"]:,} parameters and
  {loss["model"]:.3f} nats per character. Its draft has {count["draft"]:,}, {DRAFT.num_layers} blocks of width
  {DRAFT.d_model}, and {loss["draft"]:.3f} nats after {DRAFT_STEPS:,} steps of {DRAFT_BATCH} windows of {LENGTH}, rate
  {DRAFT_RATE:g}, seed 0. {NUM_TEXTS} texts of {NEW} tokens after {START} of the held-out part, one text at a time.
  Milliseconds per token, and tokens per call of the model:

{speculation_table(found)}

- **A larger model.** Two models that were not trained, {of_millions(PAIR[0])} and {of_millions(PAIR[1])} numbers, write
  {PAIR_NEW} tokens after {START}: {pair["alone"]:.1f} and {pair["draft"]:.2f} ms a token. A round, in which both are
  called and nearly nothing is accepted, takes {rounds}.
  In the table, the milliseconds per token are those of a round, divided by the tokens per call of the pair above: what
  this pair would take if it agreed as often as that one."""


def of_bits(found: dict) -> str:
    """What the card says of keys and values in 8 bits."""
    bits = found["bits"]
    nats = ", ".join(f"{bits['nats'][name]:.4f} in {name} bits" for name in ("32", "8", "4"))
    ms = bits["ms"]
    return f"""- **Keys and values in 8 bits.** Each key and each value of a head has a step of its own:
  {bits["bytes"]["8"]} bytes per token and head in place of {bits["bytes"]["32"]}, of width
  {WIDE.d_model // WIDE_HEADS}. Nats per token of the held-out text, in windows of {LENGTH}: {nats}. One token's
  attention to {LONG:,} keys in {WIDE_HEADS} heads: {ms["32"]:.2f} ms from floats, {ms["8"]:.2f} ms from 8 bits; by sums
  in place of products, where no float is stored, {ms["8, by sums"]:.2f} ms."""


def facts(found: dict) -> dict[str, str]:
    """How many times as fast writing became, or as long it took; tokens per call; what few bits take and cost."""
    megabytes, batches, bits = found["megabytes"], found["batches"], found["bits"]
    pair = found["large pair"]
    texts = {
        f"one_head.{name}.times": f"{each[str(WIDE_HEADS)] / each['1']:.1f}" for name, each in found["heads"].items()
    }
    texts |= {f"cache.{num}.megabytes": f"{each:.1f}" for num, each in megabytes["cache"].items()}
    for num, ms in batches.items():
        texts[f"texts.{num}.share"] = f"{ms / batches['1']:.2f}"  # of the time per token
        texts[f"texts.{num}.times"] = f"{int(num) * ms / batches['1']:.1f}"  # as long as one text
    texts |= {f"bits.{num}.bytes": f"{each}" for num, each in bits["bytes"].items()}
    texts |= {"lines": roof.table(lines(found), found["machine"]), "pair.millions": of_millions(PAIR[0]).split()[0]}
    texts |= {"pair.draft": percent(pair["draft"] / pair["alone"]), "pair.round": f"{pair['4'] / pair['alone']:.1f}"}
    texts["pair.rows"] = f"{(pair['4'] - 5 * pair['draft']) / pair['alone']:.1f}"
    for temperature, each in found["speculation"].items():
        texts[f"pair.{temperature}.per_call"] = f"{each['per call']['4']:.1f}"
    texts |= {f"machine.{what}": f"{rate:.0f}" for what, rate in found["machine"].items()}
    for name, ms in found["reading"][str(max(READ))].items():
        texts[f"reading.{name}"] = f"{ms / 1e3:.1f}"
    texts["bits.8.times"] = f"{bits['ms']['8'] / bits['ms']['32']:.1f}"  # as long as floats
    return texts | {"bits.4.nats": f"{bits['nats']['4'] - bits['nats']['32']:.3f}"}


def card(found: dict) -> str:
    """What was done, and what came out."""
    return f"""# How long attention takes

What makes writing and reading faster on a processor, by the clock and by the roofline. No weights are kept: the times
are the result, and stand in `record.json`.

- **Clock.** Processor time of the whole process on one core, so that waiting for other programs does not count; what is
  compared is called in turn, round after round, in one process; medians. Other programs were at work, and share caches
  and memory: only the ratios of one line mean anything.
- **Roofline.** The core summed {found["machine"]["gigabytes"]:.1f} GB per second of an array that no cache holds, and
  did {found["machine"]["operations"]:.0f} thousand million operations per second in a product of two matrices of
  {roof.SIDE:,} × {roof.SIDE:,}. A way takes at least the time of its bytes or that of its operations
  (`lab/seconds/roof.py`). Where what is fetched stays in the caches, the clock may show less.
- **Runs.** The draft of the model of plays was timed in an earlier run than all else, on the same machine.

{roof.table(lines(found), found["machine"])}

{of_heads(found)}
{of_drafts(found)}
- **Batches.** The model of plays, {", ".join(map(str, BATCHES))} texts side by side:
  {", ".join(f"{ms:.3f}" for ms in found["batches"].values())} ms per token.
- **Reading.** One head of {WIDTH}, causal, forward only, with `pf.attend` and `pf.attention.blockwise_attention`.
{of_bits(found)}
- **Limits.** One machine, one core, one size of each model. Accelerators have far more arithmetic for each byte of
  memory, so a batch or a draft pays more there. All settings stand in `lab/seconds/run.py`; `make models
  ONLY=seconds` measures again.
- **Licence.** The numbers are under Apache-2.0, as the code.
"""
