"""The encoder–decoder against PyTorch's nn.Transformer and Hugging Face's Marian, with the same weights."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from flat import seq2seq_config
from torch_parameters import CLOSE, array

import plainformer as pf
from benchmarks.weights import arrays_of_block, arrays_of_layer

VOCAB, CONTEXT, SOURCE_LEN, WIDTH, ENCODERS, LAYERS, HEADS, D_FF = 17, 9, 7, 12, 1, 2, 3, 20
START, STOP, NEW = 0, 5, 8
SOURCES = [[3, 1, 4, 1, 5, 9, 2], [6, 5, 3], [8, 9, 7, 9, 3]]
TARGETS = [[2, 7, 1, 8], [2, 8, 1, 8, 2, 4], [3]]


def redrawn(model, draw):
    """Theirs with all parameters that are trained set to `draw(name, shape)`: biases of zero would hide a slip."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.tensor(draw(name, tuple(parameter.shape)).astype(np.float32)))
    return model


def normal(seed=1, scale=0.4):
    draw = np.random.default_rng(seed)
    return lambda name, shape: scale * draw.normal(size=shape)


def lively(seed):
    """Numbers with which different sources are translated differently: large matrices, and tokens alike at first."""
    draw = np.random.default_rng(seed)

    def of_parameter(name, shape):
        if "norm" in name:
            return ("weight" in name) * (4 if "layers.1.final" in name else 1) + 0.2 * draw.normal(size=shape)
        return (0.15 if "shared" in name else 0.6) * draw.normal(size=shape)

    return of_parameter


def arrays_of(model):
    """Ours, all of them."""
    found = [each for block in (*model.encoder.stack.blocks, *model.stack.blocks) for each in arrays_of_block(block)]
    for norm in (model.encoder.stack.final_norm, model.stack.final_norm):
        found += [] if norm is None else [norm.scale, norm.bias]
    return [*found, model.encoder.embedding.weight, model.embedding.weight, model.output.weight]


class Torch(torch.nn.Module):
    """Theirs, with two tables and an output around it."""

    def __init__(self, norm_first):
        super().__init__()
        kinds = {"dropout": 0.0, "batch_first": True, "norm_first": norm_first}
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, D_FF, **kinds)
        norm = torch.nn.LayerNorm(WIDTH) if norm_first else None
        # Given by hand, as its own warns that it cannot take a shorter way for padding.
        encoder = torch.nn.TransformerEncoder(layer, ENCODERS, norm, enable_nested_tensor=False)
        self.body = torch.nn.Transformer(WIDTH, HEADS, ENCODERS, LAYERS, D_FF, custom_encoder=encoder, **kinds)
        if not norm_first:  # it puts a norm behind each half, which with post-norm ends in one already
            self.body.decoder.norm = None
        self.source, self.target = (torch.nn.Embedding(VOCAB, WIDTH) for _ in range(2))
        self.output = torch.nn.Linear(WIDTH, VOCAB, bias=False)

    def forward(self, source, target, is_source):
        future = torch.triu(torch.ones(target.shape[1], target.shape[1], dtype=torch.bool), diagonal=1)
        rows = self.body(
            self.source(source),
            self.target(target),
            tgt_mask=future,
            src_key_padding_mask=~is_source,
            memory_key_padding_mask=~is_source,
        )
        return self.output(rows)


def arrays_of_torch(theirs, grad=False):
    """Its parameters, or their gradients, in the order of `arrays_of`."""
    layers = (*theirs.body.encoder.layers, *theirs.body.decoder.layers)
    found = [each for layer in layers for each in arrays_of_layer(layer, grad)]
    for norm in (theirs.body.encoder.norm, theirs.body.decoder.norm):
        found += [] if norm is None else [array(norm.weight, grad), array(norm.bias, grad)]
    tables = array(theirs.source.weight, grad), array(theirs.target.weight, grad)
    return [*found, *tables, array(theirs.output.weight, grad).T]


def new_config(**options):
    sizes = {
        "vocab_size": VOCAB,
        "source_vocab_size": VOCAB,
        "context_len": CONTEXT,
        "source_len": SOURCE_LEN,
        "start_token": START,
        "stop_token": STOP,
        "d_model": WIDTH,
        "num_encoder_layers": ENCODERS,
        "num_decoder_layers": LAYERS,
        "num_heads": HEADS,
        "d_ff": D_FF,
        "activation": "relu",
        "tied_embedding": False,
    }
    return seq2seq_config(**sizes | options)


@pytest.fixture(params=[False, True], ids=["post", "pre"])
def pair(request):
    """PyTorch's, and ours with its weights."""
    # In training mode: else it may take a shorter way, without dropout either.
    theirs = redrawn(Torch(request.param), normal())
    config = new_config(norm_placement="pre" if request.param else "post", position_scheme="none")
    ours = eqx.tree_at(arrays_of, pf.Seq2Seq(config, key=jax.random.key(0)), arrays_of_torch(theirs))
    return theirs, ours


def batch_of(config):
    return pf.translation_batch(list(zip(SOURCES, TARGETS, strict=True)), config)


def in_torch(*arrays):
    tensors = [torch.tensor(np.asarray(each)) for each in arrays]
    return [each if each.dtype == torch.bool else each.long() for each in tensors]


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_translation_loss_and_its_gradients_are_those_of_torch(pair, share):
    theirs, ours = pair
    batch = batch_of(ours.config)
    source, is_source, inputs, targets, is_target = batch
    logits = theirs(*in_torch(source, inputs, is_source))
    targets = torch.tensor(np.where(is_target, targets, -100)).long()
    criterion = torch.nn.CrossEntropyLoss(ignore_index=-100, label_smoothing=share)
    loss = criterion(logits.reshape(-1, VOCAB), targets.reshape(-1))
    loss.backward()
    found, gradients = eqx.filter_value_and_grad(pf.translation_loss)(ours, batch, label_smoothing=share)
    np.testing.assert_allclose(found, loss.item(), **CLOSE)
    for number, (mine, other) in enumerate(zip(arrays_of(gradients), arrays_of_torch(theirs, grad=True), strict=True)):
        np.testing.assert_allclose(mine, other, **CLOSE, err_msg=f"parameter {number}")


def marian(draw):
    """Theirs: one table for source, target and output, and sines in the first half of the columns."""
    config = transformers.MarianConfig(
        vocab_size=VOCAB,
        d_model=WIDTH,
        encoder_layers=ENCODERS,
        decoder_layers=LAYERS,
        encoder_attention_heads=HEADS,
        decoder_attention_heads=HEADS,
        encoder_ffn_dim=D_FF,
        decoder_ffn_dim=D_FF,
        max_position_embeddings=CONTEXT,
        activation_function="swish",
        scale_embedding=True,
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        pad_token_id=START,
        decoder_start_token_id=START,
        eos_token_id=STOP,
        bos_token_id=None,
        forced_eos_token_id=None,
        attn_implementation="eager",
    )
    return redrawn(transformers.MarianMTModel(config), draw).eval()


def opened(theirs, folder):
    """Ours, of the folder that theirs is saved to."""
    theirs.save_pretrained(folder)
    return pf.open_model(folder)[0]


def written_by_marian(theirs, **options):
    """What it writes for all sources, without the start token and what stands behind the stop token."""
    tokens, mask = in_torch(*pf.data.pad_texts(SOURCES))
    found = theirs.generate(tokens, attention_mask=mask.long(), max_new_tokens=NEW, do_sample=False, **options)
    return [text[1 : text.index(STOP) + 1] if STOP in text else text[1:] for text in found.tolist()]


def test_translate_writes_the_greedy_texts_of_hugging_face(tmp_path):
    theirs = marian(lively(9))
    found = [each.tokens for each in pf.translate(opened(theirs, tmp_path), SOURCES, NEW)]
    assert len({tuple(text) for text in found}) > 1
    assert found == written_by_marian(theirs, num_beams=1)


@pytest.mark.parametrize(("seed", "beam_width"), [(2, 3), (9, 2)])
def test_translate_finds_the_texts_of_beam_search_in_hugging_face(seed, beam_width, tmp_path):
    # Its scores are ours, with its length_penalty for our length_power. It keeps texts that have ended apart from the
    # beam, where we let them compete with those that go on: with other powers than 1 it sometimes keeps one that we
    # drop.
    theirs = marian(lively(seed))
    best = pf.translate(opened(theirs, tmp_path), SOURCES, NEW, beam_width=beam_width, length_power=1.0)
    found = [each.tokens for each in best]
    assert len({tuple(text) for text in found}) > 1
    assert found == written_by_marian(theirs, num_beams=beam_width, length_penalty=1.0)


def test_beam_search_gives_the_scores_of_hugging_face(tmp_path):
    theirs = marian(lively(2))
    ours = opened(theirs, tmp_path)
    tokens, mask = in_torch(*pf.data.pad_texts(SOURCES[:1]))
    options = {"num_beams": 3, "num_return_sequences": 3, "return_dict_in_generate": True, "output_scores": True}
    expected = theirs.generate(tokens, attention_mask=mask.long(), max_new_tokens=NEW, do_sample=False, **options)
    found = pf.beam_search(ours.condition_on(jnp.array(SOURCES[0])), [START], NEW, beam_width=3, stop_tokens=[STOP])
    np.testing.assert_allclose(found[0].score, expected.sequences_scores[0].item(), rtol=1e-5)
