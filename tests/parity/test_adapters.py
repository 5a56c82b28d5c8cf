"""Adapters beside those of `peft`: the same arrays give the same logits, gradients and merged matrices."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import peft
import pytest
import torch
import transformers
from closeness import assert_close
from flat import decoder_config
from safetensors.numpy import load_file
from test_families import CONTEXT, KEY, MODERN, MODERN_THEIRS, SIZES, TEXTS, THEIRS, VOCAB, llamas, rope
from torch_parameters import array, redrawn

import plainformer as pf
from plainformer.models import add_adapters, is_adapter, load_adapters, merge_adapters, save_adapters

# `peft` asks `transformers` by a name that it will no longer have.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
MAPS = {
    "self_attn.q_proj": "attention.query",
    "self_attn.k_proj": "attention.key",
    "self_attn.v_proj": "attention.value",
    "self_attn.o_proj": "attention.output",
    "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.up",
    "mlp.down_proj": "feed_forward.down",
}
MATRICES = {"lora_A": "adapter_in", "lora_B": "adapter_out"}


class Pair(NamedTuple):
    """Theirs with adapters, ours with the numbers of the file that `peft` writes, and ours before."""

    theirs: peft.PeftModel
    ours: pf.Decoder
    fresh: pf.Decoder


def our_name(name):
    """Where ours has what their file calls `base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight`."""
    *_, layer, kind, linear, matrix = name.removesuffix(".weight").split(".")
    return f"stack.blocks.{layer}.{MAPS[f'{kind}.{linear}']}.{MATRICES[matrix]}"


@pytest.fixture(params=[(1, 2.0, False), (3, 7.0, False), (8, 4.0, True)], ids=["rank 1", "rank 3", "rank 8, by root"])
def pair(request, tmp_path):
    """A decoder as Llama's with adapters of both kinds in every map of its blocks.

    `peft` divides its α by the rank, or by the root of it (Kalajdzievski, 2023); our scale is the quotient.
    """
    rank, alpha, by_root = request.param
    base = redrawn(
        transformers.LlamaForCausalLM(transformers.LlamaConfig(**THEIRS | MODERN_THEIRS, rope_parameters=rope()))
    )
    config = decoder_config(VOCAB, CONTEXT, **SIZES | MODERN | {"activation": "swiglu"})
    ours = pf.training.with_arrays(pf.Decoder(config, key=KEY), llamas(base))
    linears = [name.partition(".")[2] for name in MAPS]
    lora = peft.LoraConfig(r=rank, lora_alpha=alpha, use_rslora=by_root, target_modules=linears, task_type="CAUSAL_LM")
    theirs = redrawn(peft.get_peft_model(base, lora))  # of what is trained: its adapters
    theirs.save_pretrained(tmp_path)
    found = {our_name(name): array.T for name, array in load_file(tmp_path / "adapter_model.safetensors").items()}
    fresh = add_adapters(ours, rank, scale=alpha / rank ** (0.5 if by_root else 1), where="stack", key=KEY)
    return Pair(theirs, pf.training.with_arrays(fresh, pf.training.named_arrays(fresh) | found), fresh)


def their_logits(theirs):
    with torch.no_grad():
        return theirs(torch.tensor(TEXTS)).logits.numpy()


@pytest.mark.equation("eq-finetuning-adapter")
def test_adapters_give_the_logits_of_theirs(pair):
    expected = their_logits(pair.theirs)
    assert_close(pair.ours(jnp.asarray(TEXTS)), expected)
    with pair.theirs.disable_adapter():
        untuned = their_logits(pair.theirs)
    assert np.abs(expected - untuned).max() > 0.1 * np.abs(untuned).max()
    assert_close(pair.fresh(jnp.asarray(TEXTS)), untuned)


def test_the_loss_has_the_gradients_of_theirs_at_every_matrix(pair):
    loss = pair.theirs(torch.tensor(TEXTS), labels=torch.tensor(TEXTS)).loss
    loss.backward()
    learned = {name: each for name, each in pair.theirs.named_parameters() if each.requires_grad}
    expected = {our_name(name.replace(".default", "")): array(each, grad=True).T for name, each in learned.items()}
    places = jax.tree_util.tree_map_with_path(lambda path, _: is_adapter(jax.tree_util.keystr(path)), pair.ours)
    params, frozen = eqx.partition(pair.ours, places)
    windows = pf.data.Windows(jnp.asarray(TEXTS[:, :-1]), jnp.asarray(TEXTS[:, 1:]))

    def loss_of(params):
        return pf.training.next_token_loss(eqx.combine(params, frozen), windows)

    value, slopes = jax.jit(jax.value_and_grad(loss_of))(params)
    assert_close(value, loss.item())
    found = pf.training.named_arrays(slopes)
    assert found.keys() == expected.keys()
    assert len(found) == 2 * len(MAPS) * SIZES["num_layers"]
    for name, slope in expected.items():
        assert np.abs(slope).max() > 1e-4
        assert_close(found[name], slope)


@pytest.mark.equation("eq-finetuning-merge")
def test_adapters_merge_into_the_matrices_of_theirs(pair):
    found, expected = pf.training.named_arrays(merge_adapters(pair.ours)), llamas(pair.theirs.merge_and_unload())
    assert found.keys() == expected.keys()
    for name, matrix in expected.items():
        assert_close(found[name], matrix)


def test_adapters_saved_alone_and_loaded_into_the_same_decoder_give_the_logits_of_theirs(pair, tmp_path):
    save_adapters(tmp_path / "adapters.safetensors", pair.ours)
    again = load_adapters(tmp_path / "adapters.safetensors", pair.fresh)
    assert_close(again(jnp.asarray(TEXTS)), their_logits(pair.theirs))
