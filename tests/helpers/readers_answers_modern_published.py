"""Answers to the exercise `published_parameters` of the chapter `modern`, right ones and wrong ones."""

import jax.numpy as jnp
import numpy as np
from exercise_checks import in_jax, in_numpy


def counted_by(
    maps=3, shared=lambda heads, kv_heads: kv_heads, with_bias=1, outputs=None, norms=None, width=lambda d_k, *_: d_k
):
    """The sum of a reader who counts array by array, and some array otherwise."""

    def count(vocab_size, d_model, num_layers, num_heads, num_kv_heads, d_k, d_ff, has_bias, is_tied):
        one_more = with_bias if has_bias else 0
        columns = width(d_k, d_model, num_heads)
        queries, keys = num_heads * columns, shared(num_heads, num_kv_heads) * columns
        block = (d_model + one_more) * queries + 2 * (d_model + one_more) * keys + (queries + one_more) * d_model
        for _ in range(maps):
            block += d_model * d_ff
        whole = vocab_size * d_model * (1 if (is_tied if outputs is None else outputs == 1) else 2)
        for _ in range(num_layers):
            whole += block
        return np.array(whole + d_model * (2 * num_layers + 1 if norms is None else norms(num_layers)))

    return count


COUNTS = [
    (counted_by(maps=2), "the gate of the network"),
    (counted_by(shared=lambda heads, kv_heads: heads), "as many heads as queries"),
    (counted_by(with_bias=0), "biases of the attention"),
    (counted_by(outputs=2), "counted a second time"),
    (counted_by(outputs=1), "matrix of its own is not counted"),
    (counted_by(norms=lambda layers: 0), "the norms are forgotten"),
    (counted_by(norms=lambda layers: 2 * layers), "behind the last block"),
    (counted_by(width=lambda d_k, d_model, heads: d_model // heads), "as wide as the token divided"),
]


def counted_in_jax(vocab_size, d_model, num_layers, num_heads, num_kv_heads, d_k, d_ff, has_bias, is_tied):
    maps = 2 * d_model * d_k * (num_heads + num_kv_heads) + 3 * d_model * d_ff
    biases = jnp.where(has_bias, d_k * (num_heads + 2 * num_kv_heads) + d_model, 0)
    return (2 - jnp.int32(is_tied)) * vocab_size * d_model + num_layers * (maps + biases + 2 * d_model) + d_model


RIGHT = [("published_parameters", in_jax(counted_in_jax)), ("published_parameters", in_numpy(counted_by()))]
WRONG = [("published_parameters", in_numpy(function), words) for function, words in COUNTS]
