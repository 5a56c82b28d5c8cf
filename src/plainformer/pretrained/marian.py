"""Marian (Junczys-Dowmunt et al., 2018), which the translators of OPUS-MT are, by the names of Hugging Face."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from plainformer.models.config import StackConfig
from plainformer.models.seq2seq import Seq2Seq, Seq2SeqConfig
from plainformer.pretrained.family import Family, Head, activation_of, in_blocks, their_activation
from plainformer.pretrained.names import First, Line, array, dense, norm


@dataclass(frozen=True)
class Shared:
    """One table for the source, the target and the output, of which the first two are multiplied by a factor."""

    factor: float

    def read(self, tensor, shapes):
        """Make three arrays of it."""
        return [tensor * self.factor, tensor * self.factor, tensor.T]

    def write(self, arrays):
        """The output's, if the others are what it makes of them."""
        source, target, output = arrays
        if not all(np.allclose(table, output.T * self.factor, rtol=1e-6) for table in (source, target)):
            raise ValueError("they differ, and have one tensor there")
        return output.T


@dataclass(frozen=True)
class Clocks:
    """No tensor there: sines in the first half of the columns, and cosines in the second."""

    def read(self, tensor, shapes):
        """Compute them."""
        return [self.table(*shape) for shape in shapes]

    def write(self, arrays):
        """Nothing, if they are what they were."""
        if not all(np.allclose(each, self.table(*each.shape), atol=1e-6) for each in arrays):
            raise ValueError("it is not what that model computes there")

    @staticmethod
    def table(num_positions: int, width: int):
        """The hands of the clocks at all positions."""
        angles = np.arange(num_positions)[:, None] * 10_000.0 ** (-2 * np.arange((width + 1) // 2) / width)
        return jnp.asarray(np.concatenate([np.sin(angles), np.cos(angles[:, : width // 2])], axis=1), jnp.float32)


def _half(theirs: str, ours: str, has_context: bool) -> list[Line]:
    """The lines of the encoder's blocks or of the decoder's."""
    block = f"{theirs}.layers.{{}}"
    parts = [("self_attn", "attention", "self_attn_layer_norm", "attention_norm")]
    parts += [("encoder_attn", "cross_attention", "encoder_attn_layer_norm", "cross_norm")] if has_context else []
    lines = []
    for their_attention, attention, their_norm, our_norm in parts:
        names = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}
        for their_map, our_map in names.items():
            place = ours + in_blocks(f"{attention}.{our_map}")
            lines.append(dense(f"{block}.{their_attention}.{their_map}", place))
        lines.append(norm(f"{block}.{their_norm}", ours + in_blocks(our_norm)))
    return [
        *lines,
        dense(f"{block}.fc1", ours + in_blocks("feed_forward.up")),
        dense(f"{block}.fc2", ours + in_blocks("feed_forward.down")),
        norm(f"{block}.final_layer_norm", ours + in_blocks("feed_forward_norm")),
    ]


def _lines(theirs: dict) -> list[Line]:
    """The table of names."""
    shared = Shared(theirs["d_model"] ** 0.5 if theirs["scale_embedding"] else 1.0)
    return [
        array("model.shared.weight", "encoder.embedding.weight embedding.weight output.weight", shared),
        array(None, "encoder.stack.scheme.table stack.scheme.table", Clocks()),
        *_half("model.encoder", "encoder.", has_context=False),
        *_half("model.decoder", "", has_context=True),
        array("final_logits_bias", "output.bias", First(1)),
    ]


def _read(theirs: dict) -> Seq2SeqConfig:
    """Our configuration; a table each for source and target, since the output's is not multiplied."""
    activation: Any = activation_of(theirs, "activation_function")

    def stack(name: str) -> StackConfig:
        return StackConfig(
            d_model=theirs["d_model"],
            num_layers=theirs[f"{name}_layers"],
            num_heads=theirs[f"{name}_attention_heads"],
            d_ff=theirs[f"{name}_ffn_dim"],
            activation=activation,
            norm_placement="post",
        )

    return Seq2SeqConfig(
        vocab_size=theirs["vocab_size"],
        source_vocab_size=theirs["vocab_size"],
        context_len=theirs["max_position_embeddings"],
        source_len=theirs["max_position_embeddings"],
        start_token=theirs["decoder_start_token_id"],
        stop_token=theirs["eos_token_id"],
        encoder=stack("encoder"),
        decoder=stack("decoder"),
        tied_embedding=False,
        output_bias=True,
    )


def _write(model: Seq2Seq) -> dict:
    """Theirs; its tables are multiplied by the root of the width, or they are what the output has."""
    ours, target, output = model.config, model.embedding, model.output
    is_scaled = not (target and output and np.array_equal(target.weight, output.weight.T))
    found = {
        "vocab_size": ours.vocab_size,
        "decoder_vocab_size": ours.vocab_size,
        "max_position_embeddings": ours.context_len,
        "d_model": ours.decoder.d_model,
        "decoder_start_token_id": ours.start_token,
        "pad_token_id": ours.start_token,
        "eos_token_id": ours.stop_token,
        "forced_eos_token_id": ours.stop_token,
        "activation_function": their_activation(ours.decoder.activation),
        "scale_embedding": is_scaled,
    }
    for name, stack in (("encoder", ours.encoder), ("decoder", ours.decoder)):
        found |= {f"{name}_layers": stack.num_layers, f"{name}_attention_heads": stack.num_heads}
        found[f"{name}_ffn_dim"] = stack.inner_width
    return found


FAMILY = Family(
    "marian",
    {"MarianMTModel": Head(Seq2Seq, _read, _write, _lines)},
    defaults={"scale_embedding": False},
    fixed={
        "share_encoder_decoder_embeddings": True,
        "tie_word_embeddings": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        "add_bias_logits": False,
    },
    extras=("model.*coder.embed_positions.weight",),
    twins={
        "lm_head.weight": "model.shared.weight",
        "model.encoder.embed_tokens.weight": "model.shared.weight",
        "model.decoder.embed_tokens.weight": "model.shared.weight",
    },
)
