"""The encoder against BERT of Hugging Face and PyTorch's own, with the same weights: rows, logits, loss, gradients."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from closeness import assert_close
from flat import encoder_config
from torch_parameters import CLOSE, array, redrawn

import plainformer as pf
from plainformer.models.encoder import RowEncoder

VOCAB, CONTEXT, SEQ, WIDTH, LAYERS, HEADS, D_FF, TEXTS = 17, 13, 8, 24, 2, 6, 20, 3
LENGTHS = np.array([8, 5, 1])
DRAW = np.random.default_rng(0)
TOKENS = DRAW.integers(VOCAB, size=(TEXTS, SEQ))
SEGMENTS = DRAW.integers(2, size=(TEXTS, SEQ))
IS_TOKEN = np.arange(SEQ) < LENGTHS[:, None]
OURS = tuple(jnp.asarray(array) for array in (TOKENS, IS_TOKEN, SEGMENTS))
THEIRS = {
    "input_ids": torch.tensor(TOKENS),
    "attention_mask": torch.tensor(IS_TOKEN.astype(int)),
    "token_type_ids": torch.tensor(SEGMENTS),
}


def bert():
    """Theirs."""
    config = transformers.BertConfig(
        vocab_size=VOCAB,
        max_position_embeddings=CONTEXT,
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=D_FF,
        type_vocab_size=2,
        hidden_act="gelu",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=None,
        attn_implementation="eager",
    )
    return redrawn(transformers.BertForMaskedLM(config))


def both(module, grad=False):
    """The weight and the bias of a linear map, the weight turned on its side, since theirs stands the other way."""
    return [array(module.weight, grad).T, array(module.bias, grad)]


def scale_and_bias(norm, grad=False):
    return [array(norm.weight, grad), array(norm.bias, grad)]


def arrays_of_bert(theirs, grad=False):
    """Its parameters, or their gradients, in the order of `arrays_of`."""
    ends, head = theirs.bert.embeddings, theirs.cls.predictions
    tables = (ends.word_embeddings, ends.position_embeddings, ends.token_type_embeddings)
    found = [*(array(table.weight, grad) for table in tables), *scale_and_bias(ends.LayerNorm, grad)]
    for layer in theirs.bert.encoder.layer:
        own, mixed = layer.attention.self, layer.attention.output
        for module in (own.query, own.key, own.value, mixed.dense, layer.intermediate.dense, layer.output.dense):
            found += both(module, grad)
        found += scale_and_bias(mixed.LayerNorm, grad) + scale_and_bias(layer.output.LayerNorm, grad)
    found += both(head.transform.dense, grad) + scale_and_bias(head.transform.LayerNorm, grad)
    return [*found, array(head.decoder.bias, grad)]


def arrays_of_blocks(blocks):
    """Ours, the linear maps first, then the norms, block by block."""
    found = []
    for block in blocks:
        attention, network = block.attention, block.feed_forward
        found += [attention.query.weight, attention.query.bias, attention.key.weight, attention.key.bias]
        found += [attention.value.weight, attention.value.bias, attention.output.weight, attention.output.bias]
        found += [network.up.weight, network.up.bias, network.down.weight, network.down.bias]
        found += [block.attention_norm.scale, block.attention_norm.bias]
        found += [block.feed_forward_norm.scale, block.feed_forward_norm.bias]
    return found


def arrays_of(model):
    """Ours."""
    encoder = model.encoder
    found = [encoder.embedding.weight, encoder.stack.scheme.table, encoder.segment_embedding.weight]
    found += [encoder.embedding_norm.scale, encoder.embedding_norm.bias, *arrays_of_blocks(encoder.stack.blocks)]
    return [*found, model.head.weight, model.head.bias, model.head_norm.scale, model.head_norm.bias, model.output_bias]


@pytest.fixture
def pair():
    """Theirs, and ours with its weights."""
    theirs = bert()
    config = encoder_config(
        context_len=CONTEXT,
        vocab_size=VOCAB,
        d_model=WIDTH,
        num_layers=LAYERS,
        num_heads=HEADS,
        d_ff=D_FF,
        num_segments=2,
        embedding_norm=True,
        norm_placement="post",
        norm_eps=1e-12,  # as theirs
    )
    model = pf.MaskedLanguageModel(config, key=jax.random.key(0))
    return theirs, eqx.tree_at(arrays_of, model, arrays_of_bert(theirs))


def test_encoder_gives_the_rows_of_bert_in_hugging_face(pair):
    theirs, ours = pair
    with torch.no_grad():
        expected = theirs.bert(**THEIRS, output_hidden_states=True)
    found = ours.encoder(*OURS)
    assert np.abs(expected.last_hidden_state.numpy()).max() > 0.5
    assert_close(found[IS_TOKEN], expected.last_hidden_state.numpy()[IS_TOKEN])
    for rows, state in zip(ours.residual_stream(*OURS), expected.hidden_states, strict=True):
        assert_close(rows[IS_TOKEN], state.numpy()[IS_TOKEN])


def test_encoder_weights_are_those_of_bert_in_hugging_face(pair):
    theirs, ours = pair
    with torch.no_grad():
        expected = theirs.bert(**THEIRS, output_attentions=True).attentions
    found, expected = np.asarray(ours.attention_weights(*OURS)), torch.stack(expected, dim=1).numpy()
    assert found.shape == expected.shape == (TEXTS, LAYERS, HEADS, SEQ, SEQ)
    for text, length in enumerate(LENGTHS):
        assert_close(found[text, ..., :length, :], expected[text, ..., :length, :])


def test_masked_language_model_gives_the_logits_of_bert_in_hugging_face(pair):
    theirs, ours = pair
    with torch.no_grad():
        expected = theirs(**THEIRS).logits.numpy()
    assert np.abs(expected).max() > 1
    assert_close(ours(*OURS)[IS_TOKEN], expected[IS_TOKEN])


def test_masked_token_loss_has_the_gradients_of_bert_in_hugging_face(pair):
    theirs, ours = pair
    is_selected = IS_TOKEN & (np.random.default_rng(2).random((TEXTS, SEQ)) < 0.4)
    targets = (TOKENS + 3) % VOCAB
    loss = theirs(**THEIRS, labels=torch.tensor(np.where(is_selected, targets, -100))).loss
    loss.backward()
    batch = pf.data.MaskedBatch(OURS[0], jnp.asarray(targets), jnp.asarray(is_selected), *OURS[1:])
    found, gradients = eqx.filter_value_and_grad(pf.masked_token_loss)(ours, batch)
    np.testing.assert_allclose(found, loss.item(), **CLOSE)
    for number, (mine, other) in enumerate(zip(arrays_of(gradients), arrays_of_bert(theirs, grad=True), strict=True)):
        np.testing.assert_allclose(mine, other, **CLOSE, err_msg=f"parameter {number}")


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True])
def test_encoder_gives_the_rows_of_pytorch(norm_first, activation):
    layer = torch.nn.TransformerEncoderLayer(
        WIDTH, HEADS, D_FF, 0.0, activation, norm_first=norm_first, batch_first=True
    )
    final = torch.nn.LayerNorm(WIDTH) if norm_first else None
    theirs = redrawn(torch.nn.TransformerEncoder(layer, LAYERS, final, enable_nested_tensor=False))
    found = []
    for each in theirs.layers:
        attention = each.self_attn
        weights, biases = attention.in_proj_weight.chunk(3), attention.in_proj_bias.chunk(3)
        for weight, bias in zip(weights, biases, strict=True):
            found += [array(weight).T, array(bias)]
        for module in (attention.out_proj, each.linear1, each.linear2):
            found += both(module)
        found += scale_and_bias(each.norm1) + scale_and_bias(each.norm2)
    config = encoder_config(
        context_len=CONTEXT,
        d_in=WIDTH,
        d_model=WIDTH,
        num_layers=LAYERS,
        num_heads=HEADS,
        d_ff=D_FF,
        norm_placement="pre" if norm_first else "post",
        activation=activation,
        position_scheme="none",
    )
    ours = RowEncoder(config, key=jax.random.key(0))
    ours = eqx.tree_at(lambda m: arrays_of_blocks(m.stack.blocks), ours, found)
    ours = eqx.tree_at(lambda m: m.embedding.weight, ours, jnp.eye(WIDTH))  # their rows come in as they are
    if norm_first:
        ours = eqx.tree_at(
            lambda m: [m.stack.final_norm.scale, m.stack.final_norm.bias], ours, scale_and_bias(theirs.norm)
        )
    rows = np.random.default_rng(3).normal(size=(TEXTS, SEQ, WIDTH)).astype(np.float32)
    with torch.no_grad():
        expected = theirs(torch.tensor(rows), src_key_padding_mask=torch.tensor(~IS_TOKEN)).numpy()
    assert_close(ours(jnp.asarray(rows), jnp.asarray(IS_TOKEN))[IS_TOKEN], expected[IS_TOKEN])
