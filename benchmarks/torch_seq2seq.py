"""An encoder–decoder in PyTorch, by its own `nn.Transformer`, and Marian of `transformers` with our weights."""

import warnings

import equinox as eqx
import torch
import torch.nn.functional as F
import transformers
from torch import nn

import plainformer as pf
from benchmarks.weights import array, arrays_of_block, arrays_of_layer, copy_weights, of_linear, of_norm


class TorchSeq2Seq(nn.Module):
    """From sources and targets, ids `(batch, seq)`, to logits: the same model as `pf.Seq2Seq(config)`, pre-norm."""

    def __init__(self, config: pf.Seq2SeqConfig):
        super().__init__()
        d_model = config.decoder.d_model
        self.embedding = nn.Embedding(config.vocab_size, d_model)
        self.source_positions = nn.Embedding(config.source_len, d_model)
        self.target_positions = nn.Embedding(config.context_len, d_model)
        self.dropout = nn.Dropout(config.decoder.dropout_rate)
        warnings.filterwarnings("ignore", "enable_nested_tensor is True", UserWarning)  # not with pre-norm: we know
        self.transformer = nn.Transformer(
            d_model,
            config.decoder.num_heads,
            config.encoder.num_layers,
            config.decoder.num_layers,
            config.decoder.inner_width,
            dropout=config.decoder.dropout_rate,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        for table in (self.embedding, self.source_positions, self.target_positions):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, sources, is_padding, targets):
        num_targets = targets.shape[1]
        read = self.embedding(sources) + self.source_positions(torch.arange(sources.shape[1]))
        written = self.embedding(targets) + self.target_positions(torch.arange(num_targets))
        rows = self.transformer(
            self.dropout(read),
            self.dropout(written),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(num_targets),
            src_key_padding_mask=is_padding,
            memory_key_padding_mask=is_padding,
            tgt_is_causal=True,
        )
        return F.linear(rows, self.embedding.weight)


def with_weights_of(theirs: TorchSeq2Seq, model: pf.Seq2Seq) -> pf.Seq2Seq:
    """Our model with PyTorch's weights: it computes what theirs does."""
    return eqx.tree_at(_arrays_of, model, _arrays_of_torch(theirs))


def _arrays_of(model: pf.Seq2Seq) -> list:
    stacks = (model.encoder.stack, model.stack)
    found = [each for stack in stacks for block in stack.blocks for each in arrays_of_block(block)]
    found += [each for stack in stacks for each in (stack.final_norm.scale, stack.final_norm.bias, stack.scheme.table)]
    return [*found, model.encoder.embedding.weight]


def _arrays_of_torch(theirs: TorchSeq2Seq) -> list:
    halves = (theirs.transformer.encoder, theirs.transformer.decoder)
    found = [each for half in halves for layer in half.layers for each in arrays_of_layer(layer)]
    for half, positions in zip(halves, (theirs.source_positions, theirs.target_positions), strict=True):
        found += [array(half.norm.weight), array(half.norm.bias), array(positions.weight)]
    return [*found, array(theirs.embedding.weight)]


def marian(model: pf.Seq2Seq) -> transformers.MarianMTModel:
    """Marian with the weights of our model: post-norm, learned positions here, of which it makes fixed ones."""
    config = model.config
    theirs = transformers.MarianMTModel(
        transformers.MarianConfig(
            vocab_size=config.vocab_size,
            max_position_embeddings=max(config.context_len, config.source_len),
            d_model=config.decoder.d_model,
            encoder_layers=config.encoder.num_layers,
            decoder_layers=config.decoder.num_layers,
            encoder_attention_heads=config.encoder.num_heads,
            decoder_attention_heads=config.decoder.num_heads,
            encoder_ffn_dim=4 * config.encoder.d_model,
            decoder_ffn_dim=4 * config.decoder.d_model,
            activation_function="gelu",
            scale_embedding=False,
            dropout=0.0,
            decoder_start_token_id=config.start_token,
            pad_token_id=config.stop_token,
            eos_token_id=None,
            forced_eos_token_id=None,
        )
    ).eval()
    body = theirs.model
    halves = [(body.encoder, model.encoder.stack), (body.decoder, model.stack)]
    pairs = [(body.shared.weight, model.encoder.embedding.weight)]
    for half, stack in halves:
        pairs.append((half.embed_positions.weight, stack.scheme.table))
        for layer, block in zip(half.layers, stack.blocks, strict=True):
            pairs += of_attention(layer.self_attn, block.attention)
            pairs += of_norm(layer.self_attn_layer_norm, block.attention_norm)
            if hasattr(block, "cross_attention"):
                pairs += of_attention(layer.encoder_attn, block.cross_attention)
                pairs += of_norm(layer.encoder_attn_layer_norm, block.cross_norm)
            pairs += of_linear(layer.fc1, block.feed_forward.up) + of_linear(layer.fc2, block.feed_forward.down)
            pairs += of_norm(layer.final_layer_norm, block.feed_forward_norm)
    copy_weights(pairs)
    return theirs


def of_attention(theirs, ours: pf.MultiHeadAttention) -> list[tuple]:
    maps = [(theirs.q_proj, ours.query), (theirs.k_proj, ours.key), (theirs.v_proj, ours.value)]
    return [
        pair for their_map, our_map in [*maps, (theirs.out_proj, ours.output)] for pair in of_linear(their_map, our_map)
    ]
