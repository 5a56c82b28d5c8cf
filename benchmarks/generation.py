"""Writing text with a cache, and reading the prompt: ours against `transformers`, with the same weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch
from gpt2 import same_weights
from hardware import gigabytes_per_second, sums, use_all_cores
from report import Goal, Section, Settings, say, table
from timing import in_turn, ratios, spread

import plainformer as pf

KINDS = {"context_len": 1024, "activation": "gelu_tanh"}
CONFIGS = {
    "6 × 384": pf.DecoderConfig(65, d_model=384, num_layers=6, num_heads=6, **KINDS),
    "12 × 768": pf.DecoderConfig(50_257, d_model=768, num_layers=12, num_heads=12, **KINDS),
}
WANTED = {"6 × 384": 3, "12 × 768": 2}
PROMPT_LEN, NEW_TOKENS = 10, 128
LONG_PROMPT = 512
EARLY, LATE, STRETCH = 10, 1000, 24


def new_model(config: pf.DecoderConfig) -> pf.Decoder:
    """A decoder with random numbers everywhere, in biases and norms too, so that a wrong copy cannot go unseen."""
    model = pf.Decoder(config, key=jax.random.key(0))
    leaves, shape = jax.tree.flatten(model)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    noisy = [leaf + 0.05 * jax.random.normal(key, leaf.shape) for leaf, key in zip(leaves, keys, strict=True)]
    return jax.tree.unflatten(shape, noisy)


def new_prompt(config: pf.DecoderConfig, length: int) -> list[int]:
    return np.random.default_rng(0).integers(config.vocab_size, size=length).tolist()


def writers(model: pf.Decoder, gpt2, num_tokens: int) -> dict:
    """Functions that continue the same prompt greedily, ours and theirs, and give the new tokens."""
    prompt = new_prompt(model.config, PROMPT_LEN)
    ids = torch.tensor([prompt])

    def ours():
        return pf.generate(model, [prompt], num_tokens, temperature=0)[0].tokens

    def theirs():
        everything = torch.ones_like(ids)
        with torch.inference_mode():
            text = gpt2.generate(ids, attention_mask=everything, max_new_tokens=num_tokens, do_sample=False)
        return text[0, len(prompt) :].tolist()

    return {"Plainformer": ours, "transformers": theirs}


def readers(model: pf.Decoder, gpt2) -> dict:
    """Functions that read a long prompt into a cache, with room for an answer, and give the logits after it."""
    prompt = np.asarray([new_prompt(model.config, LONG_PROMPT)])
    capacity = LONG_PROMPT + NEW_TOKENS

    @eqx.filter_jit
    def read(model, tokens):
        rows, cache = model.extend(tokens, model.new_cache(capacity))
        return model.logits(rows[:, -1]), cache

    def theirs():
        with torch.inference_mode():
            return gpt2(torch.tensor(prompt), use_cache=True, logits_to_keep=1).logits.numpy()[:, -1]

    return {"Plainformer": lambda: read(model, jnp.asarray(prompt, jnp.int32))[0], "transformers": theirs}


def stretches(model: pf.Decoder) -> dict:
    """Functions that write a few tokens after a short and after a long text, in caches of the same size."""

    @eqx.filter_jit
    def read(model, tokens):
        rows, cache = model.extend(tokens, model.new_cache(model.config.context_len))
        return model.logits(rows[-1:])[0].argmax().astype(jnp.int32), cache

    @eqx.filter_jit
    def write(model, token, cache):
        def one(state, _):
            token, cache = state
            rows, cache = model.extend(token[None], cache)
            token = model.logits(rows)[0].argmax().astype(jnp.int32)
            return (token, cache), token

        return jax.lax.scan(one, (token, cache), length=STRETCH)[1]

    def after(length):
        token, cache = read(model, jnp.asarray(new_prompt(model.config, length), jnp.int32))
        return lambda: write(model, token, cache)

    return {"early": after(EARLY), "late": after(LATE)}


def agreement(ours: list[int], theirs: list[int]) -> str:
    same = next((n for n, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b), len(ours))
    if same == len(ours):
        return f"Both wrote the same {same} tokens, {len(set(ours))} of them different."
    return f"**The texts differ from token {same + 1} of {len(ours)} on.**"


def one_size(label: str, config: pf.DecoderConfig, rounds: int) -> tuple[str, list[Goal]]:
    say(f"generation, {label}")
    model = new_model(config)
    gpt2 = same_weights(model)
    runs = writers(model, gpt2, NEW_TOKENS)
    lines = [agreement(runs["Plainformer"](), runs["transformers"]())]
    say(lines[0])
    reads = readers(model, gpt2)
    apart = np.abs(np.asarray(reads["Plainformer"]()) - reads["transformers"]()).max()
    lines.append(f"Logits after the long prompt differ by at most {apart:.0e}.")
    times = in_turn({**runs, **sums()}, rounds)
    ours, theirs = times["Plainformer"], times["transformers"]
    ratio = ratios(theirs, ours)
    say(f"generation, {label}: {ratio.show(2)}")
    reading = in_turn(reads, rounds)
    rows = []
    for name in runs:
        ms = spread(1e3 * second / NEW_TOKENS for second in times[name]).show(2)
        speed = spread(NEW_TOKENS / second for second in times[name]).show(0)
        rows.append([name, ms, speed, spread(1e3 * second for second in reading[name]).show(1)])
    rows.append(
        ["transformers / ours", ratio.show(2), "", ratios(reading["transformers"], reading["Plainformer"]).show(2)]
    )
    num_bytes = 4 * (pf.count_parameters(model) - pf.count_parameters(model.positions))
    rate = spread(num_bytes * NEW_TOKENS / second / 1e9 for second in ours)
    bandwidth = {name: spread(gigabytes_per_second(times[name])) for name in sums()}
    best = max(bandwidth, key=lambda name: bandwidth[name].middle)
    lines.append(
        f"Each token reads {num_bytes / 1e6:.0f} MB of weights: {rate.show(1)} GB/s, where the fastest plain sum, the "
        f"{best}, reads {bandwidth[best].show(1)} GB/s."
    )
    goals = [Goal(f"Generation {label}: transformers / ours", ratio.middle, "at least", WANTED[label])]
    if label == "6 × 384":
        flat = in_turn(stretches(model), 2 * rounds)
        growth = ratios(flat["late"], flat["early"])
        early, late = (spread(1e3 * second / STRETCH for second in flat[name]).show(2) for name in flat)
        lines.append(
            f"Time per token, {STRETCH} tokens each, in a cache for {config.context_len}: {early} ms after {EARLY} "
            f"tokens, {late} ms after {LATE}; ratio {growth.show(2)}."
        )
        goals.append(
            Goal(
                f"Generation {label}: time per token after {LATE} / after {EARLY} tokens", growth.middle, "at most", 1.2
            )
        )
    title = f"### {label}, vocabulary {config.vocab_size:,}"
    head = ["", f"ms per token ({NEW_TOKENS} tokens)", "tokens/s", f"ms to read {LONG_PROMPT} tokens"]
    return "\n\n".join([title, table(head, rows), "\n".join(lines)]), goals


def generation(settings: Settings) -> Section:
    use_all_cores()
    note = (
        f"One text, greedy, float32, after a prompt of {PROMPT_LEN} tokens, by `pf.generate` and by `transformers`' "
        "`generate` with the same weights; then the time to read a long prompt into a cache."
    )
    parts, goals = [note], []
    for label, config in CONFIGS.items():
        part, expected = one_size(label, config, settings.rounds)
        parts.append(part)
        goals += expected
    return Section("Generation and prefill", "\n\n".join(parts), goals)
