"""The vision transformer against that of Hugging Face with the same weights: logits, states, attention, gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from closeness import assert_close
from flat import vit_config
from torch_parameters import array, redrawn

import plainformer as pf

SIDE, PATCH, CHANNELS, WIDTH, LAYERS, HEADS, D_FF, CLASSES, IMAGES = 12, 4, 3, 24, 2, 6, 20, 5, 7
ROWS = (SIDE // PATCH) ** 2 + 1
PIXELS = np.random.default_rng(0).uniform(size=(IMAGES, SIDE, SIDE, CHANNELS)).astype(np.float32)


@pytest.fixture(scope="module")
def theirs():
    config = transformers.ViTConfig(
        image_size=SIDE,
        patch_size=PATCH,
        num_channels=CHANNELS,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=D_FF,
        hidden_act="gelu",
        layer_norm_eps=1e-5,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        num_labels=CLASSES,
        attn_implementation="eager",
    )
    return redrawn(transformers.ViTForImageClassification(config))


def their_arrays(theirs, grad=False):
    """Its parameters, or their gradients, in the order of `our_arrays`; the kernel as rows of pixels."""
    body, found = theirs.vit, []
    for layer in body.layers:
        attention = layer.attention
        maps = (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj, layer.mlp.fc1, layer.mlp.fc2)
        found += [part for each in maps for part in (array(each.weight, grad).T, array(each.bias, grad))]
        norms = (layer.layernorm_before, layer.layernorm_after)
        found += [array(part, grad) for norm in norms for part in (norm.weight, norm.bias)]
    kernel = array(body.embeddings.patch_embeddings.projection.weight, grad)  # (d_model, channels, height, width)
    found += [kernel.transpose(2, 3, 1, 0).reshape(-1, WIDTH)]
    found += [array(body.embeddings.patch_embeddings.projection.bias, grad)]
    found += [array(body.embeddings.cls_token, grad)[0, 0], array(body.embeddings.position_embeddings, grad)[0]]
    ends = (body.layernorm.weight, body.layernorm.bias)
    return [
        *found,
        *(array(each, grad) for each in ends),
        array(theirs.classifier.weight, grad).T,
        array(theirs.classifier.bias, grad),
    ]


def our_arrays(model):
    found = []
    for block in model.encoder.stack.blocks:
        attention, network = block.attention, block.feed_forward
        found += [attention.query.weight, attention.query.bias, attention.key.weight, attention.key.bias]
        found += [attention.value.weight, attention.value.bias, attention.output.weight, attention.output.bias]
        found += [network.up.weight, network.up.bias, network.down.weight, network.down.bias]
        found += [block.attention_norm.scale, block.attention_norm.bias]
        found += [block.feed_forward_norm.scale, block.feed_forward_norm.bias]
    encoder, final_norm = model.encoder, model.encoder.stack.final_norm
    found += [encoder.embedding.weight, encoder.embedding.bias, encoder.class_token, encoder.stack.scheme.table]
    return [*found, final_norm.scale, final_norm.bias, model.output.weight, model.output.bias]


@pytest.fixture(scope="module")
def ours(theirs):
    config = vit_config(
        image_size=SIDE,
        patch_size=PATCH,
        num_classes=CLASSES,
        channels=CHANNELS,
        d_model=WIDTH,
        num_layers=LAYERS,
        num_heads=HEADS,
        d_ff=D_FF,
    )
    return eqx.tree_at(our_arrays, pf.ViT(config, key=jax.random.key(0)), their_arrays(theirs))


def for_torch(pixels):
    """Channels come first there."""
    return torch.tensor(np.moveaxis(pixels, -1, 1))


def test_vit_has_as_many_parameters_as_that_of_hugging_face(theirs, ours):
    assert pf.count_parameters(ours) == sum(parameter.numel() for parameter in theirs.parameters())


def test_vit_gives_the_logits_of_hugging_face(theirs, ours):
    with torch.no_grad():
        expected = theirs(for_torch(PIXELS)).logits.numpy()
    assert np.abs(expected).max() > 1
    assert_close(ours(jnp.asarray(PIXELS)), expected)


def test_vit_gives_the_hidden_states_of_hugging_face(theirs, ours):
    with torch.no_grad():
        states = theirs(for_torch(PIXELS), output_hidden_states=True).hidden_states
        last = theirs.vit(for_torch(PIXELS)).last_hidden_state
    stream = ours.residual_stream(jnp.asarray(PIXELS))
    assert len(stream) == LAYERS + 1
    for rows, state in zip(stream, states, strict=True):
        assert state.shape == (IMAGES, ROWS, WIDTH)
        assert_close(rows, state.numpy())
    assert_close(ours.encoder.stack.normalise(stream[-1]), last.numpy())


def test_vit_gives_the_attention_of_hugging_face(theirs, ours):
    with torch.no_grad():
        expected = theirs(for_torch(PIXELS), output_attentions=True).attentions
    expected = torch.stack(expected, dim=1).numpy()
    assert expected.shape == (IMAGES, LAYERS, HEADS, ROWS, ROWS)
    assert_close(ours.attention_weights(jnp.asarray(PIXELS)), expected)


def test_classification_loss_has_the_gradients_of_hugging_face(theirs, ours):
    labels = np.arange(IMAGES) % CLASSES
    theirs.zero_grad()
    loss = theirs(for_torch(PIXELS), labels=torch.tensor(labels)).loss
    loss.backward()
    batch = pf.data.LabelledBatch(jnp.asarray(PIXELS), jnp.asarray(labels))
    found, gradients = eqx.filter_value_and_grad(pf.classification_loss)(ours, batch)
    np.testing.assert_allclose(found, loss.item(), rtol=1e-5, atol=1e-5)
    for number, (mine, other) in enumerate(zip(our_arrays(gradients), their_arrays(theirs, grad=True), strict=True)):
        np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-5, err_msg=f"parameter {number}")
