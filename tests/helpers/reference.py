"""Attention and blocks once more, in float64 NumPy, with loops: slow, obvious, and sharing no line with the package."""

import math

import jax.numpy as jnp
import numpy as np


def attend(queries, keys, values, mask=None, scale=None, bias=None):
    """One query and one key at a time, as one would do it on paper."""
    queries, keys, values = (np.asarray(a, np.float64) for a in (queries, keys, values))
    scale = queries.shape[1] ** -0.5 if scale is None else scale
    output = np.zeros((len(queries), values.shape[1]))
    for n, query in enumerate(queries):
        visible = [m for m in range(len(keys)) if mask is None or mask[n, m]]
        scores = [scale * float(sum(query * keys[m])) + (0 if bias is None else float(bias[n, m])) for m in visible]
        powers = [np.exp(score - max(scores)) for score in scores]
        for m, power in zip(visible, powers, strict=True):
            output[n] += power / sum(powers) * values[m]
    return output


def turned(rows, base):
    """Rotary positions: columns i and i + d_k / 2 of each row as one complex number, turned by its angle."""
    half = rows.shape[1] // 2
    angles = np.array([[n * base ** (-i / half) for i in range(half)] for n in range(len(rows))])
    pairs = (rows[:, :half] + 1j * rows[:, half:]) * np.exp(1j * angles)
    return np.concatenate([pairs.real, pairs.imag], axis=1)


def multi_head(x, context, layer, mask=None, position=None):
    """The layer's output from its parameters, one head at a time, as the sum of the heads' contributions."""
    x, context = np.asarray(x, np.float64), np.asarray(context, np.float64)

    def columns(weight, bias, rows, head, num_heads):
        width = weight.shape[1] // num_heads
        cut = slice(head * width, (head + 1) * width)
        product = rows @ np.asarray(weight, np.float64)[:, cut]
        return product if bias is None else product + np.asarray(bias, np.float64)[cut]

    output = np.zeros((len(x), layer.output_weight.shape[1]))
    biases = None if position is None else position.bias(jnp.arange(len(x)), jnp.arange(len(context)))
    for head in range(layer.num_heads):
        kv_head = head // (layer.num_heads // layer.num_kv_heads)
        queries = columns(layer.query_weight, layer.query_bias, x, head, layer.num_heads)
        keys = columns(layer.key_weight, layer.key_bias, context, kv_head, layer.num_kv_heads)
        values = columns(layer.value_weight, layer.value_bias, context, kv_head, layer.num_kv_heads)
        if hasattr(position, "base") and not hasattr(position, "d_model"):  # rotary, not sinusoidal
            queries, keys = turned(queries, position.base), turned(keys, position.base)
        d_v = values.shape[1]
        rows = np.asarray(layer.output_weight, np.float64)[head * d_v : (head + 1) * d_v]
        output += attend(queries, keys, values, mask, bias=None if biases is None else biases[head]) @ rows
    return output if layer.output_bias is None else output + np.asarray(layer.output_bias, np.float64)


def normalise(x, norm):
    """`LayerNorm` or `RMSNorm` from its parameters, one token at a time."""
    shifts = hasattr(norm, "bias")  # the root-mean-square norm neither subtracts the mean nor adds a bias
    output = np.zeros(x.shape)
    for n, row in enumerate(np.asarray(x, np.float64)):
        centred = row - sum(row) / len(row) if shifts else row
        spread = math.sqrt(sum(centred**2) / len(row) + norm.eps)
        output[n] = np.asarray(norm.scale, np.float64) * centred / spread
        if shifts and norm.bias is not None:
            output[n] += np.asarray(norm.bias, np.float64)
    return output


ACTIVATIONS = {
    "relu": lambda z: max(z, 0.0),
    "gelu": lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2,
    "gelu_tanh": lambda z: z * (1 + math.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))) / 2,
    "silu": lambda z: z / (1 + math.exp(-z)),
}


def feed_forward(x, network):
    """`FeedForward` or `SwiGLU` from its parameters, one token at a time."""
    output = np.zeros((len(x), network.out_weight.shape[1]))
    for n, row in enumerate(np.asarray(x, np.float64)):
        inner = row @ np.asarray(network.in_weight, np.float64)
        if hasattr(network, "gate_weight"):
            gate = row @ np.asarray(network.gate_weight, np.float64)
            hidden = inner * [ACTIVATIONS["silu"](z) for z in gate]
        else:
            inner = inner if network.in_bias is None else inner + np.asarray(network.in_bias, np.float64)
            hidden = np.array([ACTIVATIONS[network.activation](z) for z in inner])
        output[n] = hidden @ np.asarray(network.out_weight, np.float64)
        if getattr(network, "out_bias", None) is not None:
            output[n] += np.asarray(network.out_bias, np.float64)
    return output


def block(x, block, mask=None, context=None, context_mask=None, position=None):
    """`TransformerBlock` from its parameters: each sublayer, its sum and its norm, in the order of the placement."""
    sublayers = [
        (block.attention_norm, lambda rows: multi_head(rows, rows, block.attention, mask, position)),
        (block.cross_norm, lambda rows: multi_head(rows, context, block.cross_attention, context_mask)),
        (block.feed_forward_norm, lambda rows: feed_forward(rows, block.feed_forward)),
    ]
    rows = np.asarray(x, np.float64)
    for norm, sublayer in sublayers:
        if norm is None:
            continue
        if block.placement == "pre":
            rows = rows + sublayer(normalise(rows, norm))
        else:
            rows = normalise(rows + sublayer(rows), norm)
    return rows


def placed(rows, model):
    """The rows of a text with what the scheme of positions adds to them, or multiplies them by, before all blocks."""
    kind, d_model = model.config.positions, rows.shape[1]
    if kind == "learned":
        return rows + np.asarray(model.positions.table, np.float64)[: len(rows)]
    if kind == "sinusoidal":
        clocks = [[n / 10_000 ** (2 * (i // 2) / d_model) for i in range(d_model)] for n in range(len(rows))]
        codes = [[math.cos(angle) if i % 2 else math.sin(angle) for i, angle in enumerate(row)] for row in clocks]
        scale = 1 if getattr(model.config, "d_in", None) else math.sqrt(d_model)
        return rows * scale + np.array(codes)
    return rows


def decoder(tokens, model):
    """`Decoder` from its parameters: rows of the table, with their positions, through the blocks, to logits."""
    table = np.asarray(model.embedding.weight, np.float64)
    rows = placed(np.array([table[token] for token in tokens]), model)
    mask = np.array([[m <= n for m in range(len(rows))] for n in range(len(rows))])
    for layer in model.blocks:
        rows = block(rows, layer, mask, position=model.positions)
    if model.config.placement == "pre":
        rows = normalise(rows, model.final_norm)
    return rows @ (table.T if model.config.tied_embedding else np.asarray(model.output_weight, np.float64))


def encoder_rows(inputs, model, segments=None):
    """What enters each block of an `Encoder`, and what leaves the last one: a list of one more than there are blocks.

    The inputs are the ids of a single text without padding, or its rows of numbers.
    """
    weight = np.asarray(model.embedding.weight, np.float64)
    if model.config.d_in is None:
        rows = np.array([weight[token] for token in inputs])
    else:
        rows = np.array([row @ weight for row in np.asarray(inputs, np.float64)])
        if model.embedding.bias is not None:
            rows = rows + np.asarray(model.embedding.bias, np.float64)
    if segments is not None:
        kinds = np.asarray(model.segment_embedding.weight, np.float64)
        rows = np.array([row + kinds[number] for row, number in zip(rows, segments, strict=True)])
    if model.class_vector is not None:
        rows = np.array([np.asarray(model.class_vector, np.float64), *rows])
    rows = placed(rows, model)
    if model.embedding_norm is not None:
        rows = normalise(rows, model.embedding_norm)
    found = [rows]
    for layer in model.blocks:
        found.append(block(found[-1], layer, position=model.positions))
    return found


def encoder(inputs, model, segments=None):
    """`Encoder` from its parameters: every token sees every other one."""
    rows = encoder_rows(inputs, model, segments)[-1]
    return normalise(rows, model.final_norm) if model.config.placement == "pre" else rows


def sinusoid_2d(down, right, d_model):
    """The code of every patch in reading order, one number at a time: half a row for its row, half for its column."""
    half, codes = d_model // 2, []
    for row in range(down):
        for column in range(right):
            code = []
            for place in (row, column):
                for i in range(half):
                    angle = place / 10_000 ** (2 * (i // 2) / half)
                    code.append(math.cos(angle) if i % 2 else math.sin(angle))
            codes.append(code)
    return np.array(codes)


def vision_transformer(image, model):
    """`ViT` from its parameters: pixel by pixel into patches, through the blocks, to logits."""
    image, config = np.asarray(image, np.float64), model.config
    (tall, wide), (height, width, channels) = config.patch_size, image.shape
    patches = []
    for top in range(0, height, tall):
        for left in range(0, width, wide):
            pixels = [image[top + i, left + j] for i in range(tall) for j in range(wide)]
            patches.append([float(pixel[c]) for pixel in pixels for c in range(channels)])
    embedding = model.encoder.embedding
    rows = np.array(patches) @ np.asarray(embedding.weight, np.float64)
    rows = rows if embedding.bias is None else rows + np.asarray(embedding.bias, np.float64)
    if config.positions == "sinusoidal_2d":
        rows = rows + sinusoid_2d(height // tall, width // wide, rows.shape[1])
    if config.pooling == "class":
        rows = np.array([np.asarray(model.encoder.class_vector, np.float64), *rows])
    if config.positions == "learned":
        rows = rows + np.asarray(model.encoder.positions.table, np.float64)
    for layer in model.encoder.blocks:
        rows = block(rows, layer)
    if config.placement == "pre":
        rows = normalise(rows, model.encoder.final_norm)
    pooled = rows[0] if config.pooling == "class" else sum(rows) / len(rows)
    logits = pooled @ np.asarray(model.out_weight, np.float64)
    return logits if model.out_bias is None else logits + np.asarray(model.out_bias, np.float64)


def seq2seq(source, target, model):
    """`Seq2Seq` from its parameters, for a single pair without padding: its logits, and the weights with which each
    head of each block reads the source, `(num_layers, num_heads, target, source)`."""
    context = encoder(source, model.encoder)
    table = np.asarray((model.embedding or model.encoder.embedding).weight, np.float64)
    rows = placed(np.array([table[token] for token in target]), model)
    mask = np.array([[m <= n for m in range(len(rows))] for n in range(len(rows))])
    weights = []
    for layer in model.blocks:
        pre, reader = layer.placement == "pre", layer.cross_attention
        asking = normalise(rows, layer.attention_norm) if pre else rows
        between = rows + multi_head(asking, asking, layer.attention, mask, model.positions)
        asking = normalise(between, layer.cross_norm if pre else layer.attention_norm)
        weights.append([reading_weights(asking, context, reader, head) for head in range(reader.num_heads)])
        rows = block(rows, layer, mask, context, position=model.positions)
    if model.config.placement == "pre":
        rows = normalise(rows, model.final_norm)
    output = table.T if model.config.tied_embedding else np.asarray(model.output_weight, np.float64)
    return rows @ output, np.array(weights)


def reading_weights(rows, context, layer, head):
    """How much each row reads of each row of the context in one head, which has keys of its own."""
    width = layer.query_weight.shape[1] // layer.num_heads
    cut = slice(head * width, (head + 1) * width)

    def columns(rows, weight, bias):
        product = rows @ np.asarray(weight, np.float64)[:, cut]
        return product if bias is None else product + np.asarray(bias, np.float64)[cut]

    found = []
    for query in columns(rows, layer.query_weight, layer.query_bias):
        scores = [float(query @ key) / math.sqrt(width) for key in columns(context, layer.key_weight, layer.key_bias)]
        powers = [math.exp(score - max(scores)) for score in scores]
        found.append([power / sum(powers) for power in powers])
    return found
