"""Rotary positions for longer texts, as Hugging Face turns them: speeds, attention factor, and whole models."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from closeness import assert_close
from torch_parameters import redrawn
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

import plainformer as pf

SIZES = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 20, "vocab_size": 17}
COMMON = SIZES | {"max_position_embeddings": 64, "num_key_value_heads": 1, "attn_implementation": "eager"}
NONE = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
WIDTH, BASE, TRAINED = 16, 500.0, 16
BASIC = {"rope_theta": BASE, "factor": 4.0}
YARN = BASIC | {"rope_type": "yarn", "original_max_position_embeddings": TRAINED}
PARTS = BASIC | {
    "rope_type": "llama3",
    "low_freq_factor": 0.5,
    "high_freq_factor": 2.0,
    "original_max_position_embeddings": TRAINED,
}
OURS = {
    "linear": (BASIC | {"rope_type": "linear"}, pf.positions.LinearScaling(factor=4.0)),
    "llama3": (PARTS, pf.positions.RotaryScaling(factor=4.0, slow_turns=0.5, fast_turns=2.0, trained_len=TRAINED)),
    "yarn": (YARN, pf.positions.YarnScaling(factor=4.0, trained_len=TRAINED)),
    "yarn-between": (
        YARN | {"beta_fast": 2.0, "beta_slow": 0.25, "truncate": False},
        pf.positions.YarnScaling(factor=4.0, fast_turns=2.0, slow_turns=0.25, trained_len=TRAINED, truncate=False),
    ),
    "yarn-whole-pairs": (
        YARN | {"beta_fast": 2.0, "beta_slow": 0.25, "attention_factor": 0.8},
        pf.positions.YarnScaling(
            factor=4.0, fast_turns=2.0, slow_turns=0.25, trained_len=TRAINED, attention_factor=0.8
        ),
    ),
}
MODELS = [
    (transformers.LlamaForCausalLM, "llama3"),
    (transformers.LlamaForCausalLM, "yarn-whole-pairs"),
    (transformers.MistralForCausalLM, "linear"),
    (transformers.MistralForCausalLM, "yarn-between"),
    (transformers.Qwen2ForCausalLM, "yarn"),
]


def their_speeds(rope, seq_len=None, width=WIDTH):
    """The frequencies and the factor that their function makes of a configuration."""
    config = transformers.LlamaConfig(**COMMON, head_dim=width, rope_parameters=rope)
    frequencies, factor = ROPE_INIT_FUNCTIONS[rope["rope_type"]](config, "cpu", seq_len=seq_len)
    return frequencies.numpy(), factor


def our_speeds(scaling):
    return scaling.slowed(BASE ** -(np.arange(0, WIDTH, 2) / WIDTH))


@pytest.mark.equation("eq-serving-interpolation", "eq-serving-parts", "eq-serving-yarn", "eq-serving-attention-factor")
@pytest.mark.parametrize("name", OURS)
def test_speeds_and_factor_are_theirs(name):
    rope, ours = OURS[name]
    speeds, factor = their_speeds(rope)
    np.testing.assert_allclose(our_speeds(ours), speeds, rtol=1e-5)
    assert abs(ours.magnitude - factor) < 1e-12


@pytest.mark.equation("eq-serving-yarn")
@pytest.mark.parametrize("name", ["yarn", "yarn-between"])
def test_a_pair_that_is_alone_turns_as_theirs(name):
    rope, ours = OURS[name]
    np.testing.assert_allclose(ours.slowed(np.ones(1)), their_speeds(rope, width=2)[0], rtol=1e-5)


@pytest.mark.equation("eq-serving-ntk")
@pytest.mark.parametrize("longer", [1.0, 5.0])
def test_dynamic_speeds_are_ntk_aware_ones_of_the_length_that_is_read(longer):
    rope = BASIC | {"rope_type": "dynamic"}
    speeds, factor = their_speeds(rope, seq_len=int(longer * 64))
    # They stretch by 4 times the length that is read in lengths of the training, less 3.
    np.testing.assert_allclose(our_speeds(pf.positions.NtkScaling(factor=4 * longer - 3)), speeds, rtol=1e-5)
    assert factor == 1


def opened(model, rope, folder, **fields):
    """Theirs, saved, and what we open of it."""
    sliding = {"sliding_window": None} if model is transformers.MistralForCausalLM else {}
    theirs = redrawn(model(model.config_class(**COMMON | NONE | sliding | fields, rope_parameters=rope)))
    theirs.save_pretrained(folder)
    return theirs, pf.open_model(folder)[0]


def close(ours, theirs, length=60):
    tokens = np.random.default_rng(length).integers(3, 17, size=(2, length))
    with torch.no_grad():
        expected = theirs(torch.tensor(tokens)).logits.numpy()
    assert np.abs(expected).max() > 0.3
    assert_close(ours(jnp.asarray(tokens)), expected)


@pytest.mark.parametrize(("model", "name"), MODELS)
def test_models_of_theirs_open_and_are_written_back(model, name, tmp_path):
    rope, scaling = OURS[name]
    theirs, ours = opened(model, rope, tmp_path / "theirs")
    assert ours.config.stack.rope_scaling == scaling
    close(ours, theirs)
    pf.to_hugging_face(tmp_path / "again", ours, theirs.config.model_type)
    close(ours, model.from_pretrained(tmp_path / "again", attn_implementation="eager").eval())


def test_a_dynamic_model_opens_without_scaling_for_the_texts_that_it_was_trained_on(tmp_path):
    theirs, ours = opened(transformers.LlamaForCausalLM, BASIC | {"rope_type": "dynamic"}, tmp_path)
    assert ours.config.stack.rope_scaling is None
    close(ours, theirs, length=64)


def test_ntk_aware_scaling_is_written_as_a_larger_base(tmp_path):
    _, ours = opened(transformers.LlamaForCausalLM, {"rope_type": "default", "rope_theta": BASE}, tmp_path / "theirs")
    stack = dataclasses.replace(ours.config.stack, rope_scaling=pf.positions.NtkScaling(factor=4.0))
    skeleton = pf.Decoder(dataclasses.replace(ours.config, stack=stack), key=jax.random.key(0))
    longer = pf.training.with_arrays(skeleton, pf.training.named_arrays(ours))
    pf.to_hugging_face(tmp_path / "longer", longer, "llama")
    theirs = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "longer", attn_implementation="eager").eval()
    assert theirs.config.rope_parameters["rope_theta"] == pytest.approx(BASE * 4 ** (16 / 14))
    close(longer, theirs)


def test_the_two_numbers_of_deepseek_give_their_attention_factor(tmp_path):
    rope = YARN | {"mscale": 0.7, "mscale_all_dim": 0.4}
    theirs, ours = opened(transformers.LlamaForCausalLM, rope, tmp_path)
    assert abs(ours.config.stack.rope_scaling.magnitude - their_speeds(rope)[1]) < 1e-12
    close(ours, theirs)
