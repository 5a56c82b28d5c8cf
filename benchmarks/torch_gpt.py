"""A plain GPT in PyTorch, as one would write it there for speed: the peer that training is compared with."""

import torch
import torch.nn.functional as F
from torch import nn

import plainformer as pf

GELU = {"gelu": "none", "gelu_tanh": "tanh"}


class Block(nn.Module):
    def __init__(self, config: pf.DecoderConfig):
        super().__init__()
        d_model, self.num_heads = config.stack.d_model, config.stack.num_heads
        self.attention_norm = nn.LayerNorm(d_model)
        self.query_key_value = nn.Linear(d_model, 3 * d_model)
        self.attention_out = nn.Linear(d_model, d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = nn.Sequential(
            nn.Linear(d_model, 4 * d_model), nn.GELU(GELU[config.stack.activation]), nn.Linear(4 * d_model, d_model)
        )

    def forward(self, x):
        batch, seq, d_model = x.shape
        parts = self.query_key_value(self.attention_norm(x)).split(d_model, dim=2)
        queries, keys, values = (part.view(batch, seq, self.num_heads, -1).transpose(1, 2) for part in parts)
        heads = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        x = x + self.attention_out(heads.transpose(1, 2).reshape(batch, seq, d_model))
        return x + self.feed_forward(self.feed_forward_norm(x))


class GPT(nn.Module):
    """From ids, `(batch, seq)`, to logits, `(batch, seq, vocab_size)`: the same model as `pf.Decoder(config)`."""

    def __init__(self, config: pf.DecoderConfig):
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.stack.d_model)
        self.positions = nn.Embedding(config.context_len, config.stack.d_model)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.stack.num_layers))
        self.final_norm = nn.LayerNorm(config.stack.d_model)
        for table in (self.embedding, self.positions):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids):
        x = self.embedding(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return F.linear(self.final_norm(x), self.embedding.weight)
