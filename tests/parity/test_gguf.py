"""Tiny models of each architecture that is read from GGUF, against `transformers`, which opens the same files."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from gguf_written import TOKENS, tensors_of, write_gguf

import plainformer as pf
from plainformer.training.arrays import named_arrays

MODERN = {"norm": "rms", "activation": "swiglu", "position_scheme": "rotary", "use_bias": False, "rope_theta": 50.0}
SIZES = {"d_model": 32, "num_layers": 2, "num_heads": 4, "num_kv_heads": 2, "d_ff": 64}
WIDE = {"d_k": 16, "d_v": 16}
# Of each file its architecture, whether the output is the table, and what is odd about its blocks.
FILES = {
    "llama": ("llama", True, {}),
    "llama untied": ("llama", False, {"num_kv_heads": 1}),
    "qwen2": ("qwen2", True, {"use_bias": True}),
    "qwen2 untied": ("qwen2", False, {"use_bias": True, "num_kv_heads": 4}),
    "qwen3": ("qwen3", True, {"qk_norm": True} | WIDE),
    "qwen3 untied": ("qwen3", False, {"qk_norm": True, "num_kv_heads": 1}),
}


def written(path, name):
    """Write a model all of whose numbers are drawn: zeros and ones would hide a slip."""
    architecture, tied, fields = FILES[name]
    stack = pf.StackConfig(**SIZES | MODERN | fields)
    model = pf.Decoder(pf.DecoderConfig(len(TOKENS), 24, stack, tied), key=jax.random.key(0))
    draw = np.random.default_rng(0)
    drawn = {name: jnp.asarray(0.3 * draw.normal(size=array.shape)) for name, array in named_arrays(model).items()}
    if architecture == "qwen2":  # which has biases of queries, keys and values alone
        without = ("output.bias", "up.bias", "down.bias", "gate.bias")
        drawn |= {name: 0 * array for name, array in drawn.items() if name.endswith(without)}
    model = pf.training.with_arrays(model, drawn)
    write_gguf(path, model, architecture, tensors=tensors_of(model, architecture))


@pytest.mark.parametrize("name", FILES)
def test_logits_and_greedy_texts_agree(tmp_path, name):
    written(tmp_path / "a.gguf", name)
    ours, _ = pf.open_model(tmp_path / "a.gguf", tokenizer=False)
    config = transformers.AutoConfig.from_pretrained(tmp_path, gguf_file="a.gguf")
    config.head_dim = ours.config.stack.key_width  # which `transformers` does not read from such a file
    given = {"gguf_file": "a.gguf", "config": config, "dtype": torch.float32}
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, **given).eval()
    texts = np.random.default_rng(1).integers(len(TOKENS), size=(3, 12))
    with torch.no_grad():
        expected = theirs(torch.tensor(texts)).logits.numpy()
    np.testing.assert_allclose(ours(jnp.asarray(texts)), expected, atol=1e-4)
    prompts = [texts[0].tolist(), texts[1, :5].tolist()]
    how = {"max_new_tokens": 8, "do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    for prompt, text in zip(prompts, pf.generate(ours, prompts, 8, temperature=0), strict=True):
        with torch.no_grad():
            assert text.tokens == theirs.generate(torch.tensor([prompt]), **how)[0, len(prompt) :].tolist()
