"""Attention once more, in float64 NumPy, with loops: slow, obvious, and sharing no line with the package."""

import numpy as np


def attend(queries, keys, values, mask=None, scale=None):
    """One query and one key at a time, as one would do it on paper."""
    queries, keys, values = (np.asarray(a, np.float64) for a in (queries, keys, values))
    scale = queries.shape[1] ** -0.5 if scale is None else scale
    output = np.zeros((len(queries), values.shape[1]))
    for n, query in enumerate(queries):
        visible = [m for m in range(len(keys)) if mask is None or mask[n, m]]
        scores = [scale * float(sum(query * keys[m])) for m in visible]
        powers = [np.exp(score - max(scores)) for score in scores]
        for m, power in zip(visible, powers, strict=True):
            output[n] += power / sum(powers) * values[m]
    return output


def multi_head(x, context, layer, mask=None):
    """The layer's output from its parameters, one head at a time, as the sum of the heads' contributions."""
    x, context = np.asarray(x, np.float64), np.asarray(context, np.float64)

    def columns(weight, bias, rows, head, num_heads):
        width = weight.shape[1] // num_heads
        cut = slice(head * width, (head + 1) * width)
        product = rows @ np.asarray(weight, np.float64)[:, cut]
        return product if bias is None else product + np.asarray(bias, np.float64)[cut]

    output = np.zeros((len(x), layer.output_weight.shape[1]))
    for head in range(layer.num_heads):
        kv_head = head // (layer.num_heads // layer.num_kv_heads)
        queries = columns(layer.query_weight, layer.query_bias, x, head, layer.num_heads)
        keys = columns(layer.key_weight, layer.key_bias, context, kv_head, layer.num_kv_heads)
        values = columns(layer.value_weight, layer.value_bias, context, kv_head, layer.num_kv_heads)
        d_v = values.shape[1]
        rows = np.asarray(layer.output_weight, np.float64)[head * d_v : (head + 1) * d_v]
        output += attend(queries, keys, values, mask) @ rows
    return output if layer.output_bias is None else output + np.asarray(layer.output_bias, np.float64)
