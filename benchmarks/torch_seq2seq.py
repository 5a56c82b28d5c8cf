"""An encoder–decoder in PyTorch, by its own `nn.Transformer`, and Marian of `transformers` with our weights."""

import warnings

import numpy as np
import torch
import torch.nn.functional as F
import transformers
from torch import nn

import plainformer as pf


class TorchSeq2Seq(nn.Module):
    """From sources and targets, ids `(batch, seq)`, to logits: the same model as `pf.Seq2Seq(config)`, pre-norm."""

    def __init__(self, config: pf.Seq2SeqConfig):
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.source_positions = nn.Embedding(config.source_len, config.d_model)
        self.target_positions = nn.Embedding(config.context_len, config.d_model)
        warnings.filterwarnings("ignore", "enable_nested_tensor is True", UserWarning)  # not with pre-norm: we know
        self.transformer = nn.Transformer(
            config.d_model,
            config.num_heads,
            config.num_encoder_layers,
            config.num_decoder_layers,
            4 * config.d_model,
            dropout=0.0,
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
            read,
            written,
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(num_targets),
            src_key_padding_mask=is_padding,
            memory_key_padding_mask=is_padding,
            tgt_is_causal=True,
        )
        return F.linear(rows, self.embedding.weight)


def marian(model: pf.Seq2Seq) -> transformers.MarianMTModel:
    """Marian with the weights of our model: post-norm, learned positions here, of which it makes fixed ones."""
    config = model.config
    theirs = transformers.MarianMTModel(
        transformers.MarianConfig(
            vocab_size=config.vocab_size,
            max_position_embeddings=max(config.context_len, config.source_len),
            d_model=config.d_model,
            encoder_layers=config.num_encoder_layers,
            decoder_layers=config.num_decoder_layers,
            encoder_attention_heads=config.num_heads,
            decoder_attention_heads=config.num_heads,
            encoder_ffn_dim=4 * config.d_model,
            decoder_ffn_dim=4 * config.d_model,
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
    pairs = [(body.shared.weight, model.encoder.embedding.weight)]
    pairs += [(body.encoder.embed_positions.weight, model.encoder.positions.table)]
    pairs += [(body.decoder.embed_positions.weight, model.positions.table)]
    for half, blocks in ((body.encoder, model.encoder.blocks), (body.decoder, model.blocks)):
        for layer, block in zip(half.layers, blocks, strict=True):
            attentions = [(layer.self_attn, block.attention, layer.self_attn_layer_norm, block.attention_norm)]
            if block.cross_attention is not None:
                attentions += [
                    (layer.encoder_attn, block.cross_attention, layer.encoder_attn_layer_norm, block.cross_norm)
                ]
            for their_attention, attention, their_norm, norm in attentions:
                for part, name in (("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value"), ("out_proj", "output")):
                    linear = getattr(their_attention, part)
                    pairs += [(linear.weight, getattr(attention, f"{name}_weight").T)]
                    pairs += [(linear.bias, getattr(attention, f"{name}_bias"))]
                pairs += [(their_norm.weight, norm.scale), (their_norm.bias, norm.bias)]
            network = block.feed_forward
            pairs += [(layer.fc1.weight, network.in_weight.T), (layer.fc1.bias, network.in_bias)]
            pairs += [(layer.fc2.weight, network.out_weight.T), (layer.fc2.bias, network.out_bias)]
            pairs += [(layer.final_layer_norm.weight, block.feed_forward_norm.scale)]
            pairs += [(layer.final_layer_norm.bias, block.feed_forward_norm.bias)]
    with torch.no_grad():
        for parameter, array in pairs:
            parameter.copy_(torch.tensor(np.asarray(array)))
    return theirs
