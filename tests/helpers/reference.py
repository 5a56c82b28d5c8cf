"""Attention, blocks and models once more, in float64 NumPy, with loops: slow, obvious, no line from the package.

Everything here takes a single text without padding, so that there is no batch anywhere.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf
from plainformer.blocks.blocks import ParallelBlock
from plainformer.blocks.experts import Experts
from plainformer.positions.grid import GridPositions


def attention_weights(queries, keys, mask=None, scale=None, bias=None, sink=None):
    """One query and one key at a time, as one would do it on paper; a sink is one more power to divide by."""
    queries, keys = (np.asarray(a, np.float64) for a in (queries, keys))
    scale = queries.shape[1] ** -0.5 if scale is None else scale
    weights = np.zeros((len(queries), len(keys)))
    for n, query in enumerate(queries):
        visible = [m for m in range(len(keys)) if mask is None or mask[n, m]]
        scores = [scale * float(sum(query * keys[m])) + (0 if bias is None else float(bias[n, m])) for m in visible]
        powers = [np.exp(score - max(scores)) for score in scores]
        lost = 0 if sink is None else np.exp(float(sink) - max(scores))
        for m, power in zip(visible, powers, strict=True):
            weights[n, m] = power / (sum(powers) + lost)
    return weights


def attend(queries, keys, values, mask=None, scale=None, bias=None, sink=None):
    """The average of the values, of those alone that a query sees."""
    values = np.asarray(values, np.float64)
    output = np.zeros((len(queries), values.shape[1]))
    for n, row in enumerate(attention_weights(queries, keys, mask, scale, bias, sink)):
        for m in np.flatnonzero(row):
            output[n] += row[m] * values[m]
    return output


def slowed(speed, pair, pairs, base, scaling):
    """The speed of a pair after a scaling, for long texts, from the formulas of the papers."""
    turns = scaling.trained_len * speed / (2 * math.pi) if hasattr(scaling, "trained_len") else None
    if isinstance(scaling, pf.positions.LinearScaling):
        return speed / scaling.factor
    if isinstance(scaling, pf.positions.NtkScaling):
        return (base * scaling.factor ** (pairs / (pairs - 1))) ** (-pair / pairs)
    if isinstance(scaling, pf.positions.RotaryScaling):
        kept = (turns - scaling.slow_turns) / (scaling.fast_turns - scaling.slow_turns)
    else:
        # The pair, as a fraction, that turns so many times.
        first, last = (
            pairs * math.log(scaling.trained_len / (times * 2 * math.pi)) / math.log(base)
            for times in (scaling.fast_turns, scaling.slow_turns)
        )
        if scaling.truncate:
            first, last = math.floor(first), math.ceil(last)
        first, last = max(first, 0), min(last, 2 * pairs - 1)
        kept = 1 - (pair - first) / (last - first)
    kept = min(max(kept, 0), 1)
    return kept * speed + (1 - kept) * speed / scaling.factor


def turned(rows, base, scaling=None):
    """Rotary positions: columns i and i + d_k / 2 of each row as one complex number, turned by its angle."""
    half = rows.shape[1] // 2
    speeds = [base ** (-i / half) for i in range(half)]
    if scaling is not None:
        speeds = [slowed(speed, i, half, base, scaling) for i, speed in enumerate(speeds)]
    angles = np.array([[n * speed for speed in speeds] for n in range(len(rows))])
    pairs = (rows[:, :half] + 1j * rows[:, half:]) * np.exp(1j * angles)
    if isinstance(scaling, pf.positions.YarnScaling):
        pairs *= scaling.attention_factor or 0.1 * math.log(scaling.factor) + 1
    return np.concatenate([pairs.real, pairs.imag], axis=1)


def linear(rows, layer):
    """`Linear` from its parameters."""
    product = np.asarray(rows, np.float64) @ np.asarray(layer.weight, np.float64)
    return product if layer.bias is None else product + np.asarray(layer.bias, np.float64)


def normalised(rows, norm):
    """Queries or keys of one head through the norm of a layer, if it has one."""
    return normalise(rows, norm) if isinstance(norm, pf.RMSNorm) else rows


def all_heads(rows, norm):
    """Queries or keys of all heads, side by side, through a norm of all of them, if the layer has one."""
    return normalise(rows, norm.norm) if isinstance(norm, pf.attention.AcrossHeads) else rows


def heads(x, context, layer, scheme=None):
    """Queries, keys, values, bias and sink of one head after the other."""
    if isinstance(layer, pf.attention.LatentAttention):
        yield from latent_heads(x, layer, scheme)
        return
    sinks = getattr(layer.kernel, "sinks", None)
    biases = None if scheme is None else scheme.bias(jnp.arange(len(x)), jnp.arange(len(context)))
    all_queries = all_heads(linear(x, layer.query), layer.query_norm)
    all_keys = all_heads(linear(context, layer.key), layer.key_norm)
    for head in range(layer.num_heads):
        kv_head = head // (layer.num_heads // layer.num_kv_heads)
        queries = np.split(all_queries, layer.num_heads, axis=1)[head].copy()
        keys = np.split(all_keys, layer.num_kv_heads, axis=1)[kv_head].copy()
        values = np.split(linear(context, layer.value), layer.num_kv_heads, axis=1)[kv_head]
        queries, keys = normalised(queries, layer.query_norm), normalised(keys, layer.key_norm)
        if isinstance(scheme, pf.RotaryPositions):
            width = int(scheme.fraction * queries.shape[1])
            for rows in (queries, keys):
                rows[:, :width] = turned(rows[:, :width], scheme.base, scheme.scaling)
        sink = None if sinks is None else sinks[head]
        yield queries, keys, values, {"bias": None if biases is None else biases[head], "sink": sink}


def latent_heads(x, layer, scheme=None):
    """The same of a `LatentAttention`: own columns of a short vector, then those that all heads share."""
    biases = None if scheme is None else scheme.bias(jnp.arange(len(x)), jnp.arange(len(x)))
    short = normalised(linear(x, layer.down), layer.latent_norm)
    shared, asked = linear(x, layer.rotary_key), np.asarray(x, np.float64)
    if isinstance(layer.query_down, pf.Linear):
        asked = normalised(linear(x, layer.query_down), layer.query_norm)
    if turns := isinstance(scheme, pf.RotaryPositions):
        shared = turned(shared, scheme.base, scheme.scaling)
    for head in range(layer.num_heads):
        queries, own, values = (
            np.split(linear(rows, part), layer.num_heads, axis=1)[head]
            for rows, part in ((asked, layer.query), (short, layer.key), (short, layer.value))
        )
        if turns:
            queries[:, -shared.shape[1] :] = turned(queries[:, -shared.shape[1] :], scheme.base, scheme.scaling)
        bias = None if biases is None else biases[head]
        yield queries, np.concatenate([own, shared], axis=1), values, {"bias": bias}


def multi_head_weights(x, context, layer, mask=None, scheme=None):
    """The weights of each head of a `MultiHeadAttention`."""
    return np.array([attention_weights(q, k, mask, **more) for q, k, _, more in heads(x, context, layer, scheme)])


def multi_head(x, context, layer, mask=None, scheme=None):
    """The layer's output from its parameters, one head at a time, as the sum of the heads' contributions."""
    output = np.zeros((len(x), layer.output.weight.shape[1]))
    outputs = np.split(np.asarray(layer.output.weight, np.float64), layer.num_heads, axis=0)
    for (q, k, v, more), weight in zip(heads(x, context, layer, scheme), outputs, strict=True):
        output += attend(q, k, v, mask, **more) @ weight
    return output if layer.output.bias is None else output + np.asarray(layer.output.bias, np.float64)


def delta_weights_and_rows(x, layer):
    """The weights of each head of a `GatedDeltaNet`, and its output: a state for all values, and one for each alone."""
    mixed = np.concatenate([linear(x, part) for part in (layer.query, layer.key, layer.value)], axis=1)
    kernel, seq = np.asarray(layer.kernel, np.float64), len(x)
    for n in reversed(range(seq)):
        mixed[n] = sum(kernel[-1 - back] * mixed[n - back] for back in range(min(len(kernel), n + 1)))
    mixed = mixed / (1 + np.exp(-mixed))
    heads, width = layer.num_heads, layer.query.weight.shape[1]
    parts = [np.split(part, heads, axis=1) for part in np.split(mixed, [width, 2 * width], axis=1)]
    betas = 1 / (1 + np.exp(-linear(x, layer.beta)))
    factors = np.exp(-np.exp(np.asarray(layer.log_rate, np.float64)) * np.log1p(np.exp(linear(x, layer.factor))))
    all_weights, rows = [], []
    for head, (q, k, v) in enumerate(zip(*parts, strict=True)):
        weights, state = np.zeros((seq, seq)), np.zeros((k.shape[1], seq))  # one-hot values say whose they are
        for n in range(seq):
            key, query = (row[n] / math.sqrt(row[n] @ row[n] + 1e-6) for row in (k, q))
            state = factors[n, head] * state
            state += betas[n, head] * np.outer(key, np.eye(seq)[n] - key @ state)
            weights[n] = query / math.sqrt(len(key)) @ state
        all_weights.append(weights)
        rows.append(normalise(weights @ v, layer.norm))
    gate = linear(x, layer.gate)
    return np.array(all_weights), linear(gate / (1 + np.exp(-gate)) * np.concatenate(rows, axis=1), layer.output)


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
    "quick_gelu": lambda z: z / (1 + math.exp(-1.702 * z)),
    "squared_relu": lambda z: max(z, 0.0) ** 2,
}
GATES = {"swiglu": "silu", "geglu": "gelu", "geglu_tanh": "gelu_tanh"}


def feed_forward(x, network):
    """`FeedForward`, `SwiGLU` or `Experts` from its parameters, one number at a time between the maps."""
    if isinstance(network, Experts):
        return experts(x, network)
    hidden = linear(x, network.up)
    if hasattr(network, "gate"):
        hidden = hidden * np.vectorize(ACTIVATIONS[network.activation])(linear(x, network.gate))
    else:
        hidden = np.vectorize(ACTIVATIONS[network.activation])(hidden)
    return linear(hidden, network.down)


def experts(x, layer):
    """`Experts` from its parameters, one token and one expert at a time; an expert that is full takes no more."""
    config, taken = layer.config, dict.fromkeys(range(layer.config.num_experts), 0)
    output = np.zeros(np.shape(x)) if layer.shared is None else feed_forward(x, layer.shared)
    room = math.inf
    if config.capacity is not None:
        room = math.ceil(config.capacity * len(x) * config.per_token / config.num_experts)
    for n, row in enumerate(x):
        scores = linear(row[None], layer.router)[0]
        powers = np.exp(scores - max(scores))
        weights = powers / sum(powers) if config.scores == "softmax" else 1 / (1 + np.exp(-scores))
        liked = weights if layer.choice_bias is None else weights + np.asarray(layer.choice_bias, np.float64)
        size, groups = config.num_experts // config.groups, range(config.groups)
        counts = [sum(sorted(liked[size * group : size * (group + 1)])[-2:]) for group in groups]
        best = sorted(groups, key=lambda group: -counts[group])[: config.chosen_groups]
        able = [e for e in range(config.num_experts) if e // size in best]
        chosen = sorted(able, key=lambda e: -liked[e])[: config.per_token]
        total = sum(weights[e] for e in chosen) if config.renormalise else 1.0
        for e in chosen:
            taken[e] += 1
            if taken[e] <= room:
                network = jax.tree.map(lambda array, e=e: array[e], layer.networks)
                output[n] += config.scale * weights[e] / total * feed_forward(row[None], network)[0]
    return output


class Inside(NamedTuple):
    """What enters the first block and leaves each, and the weights, `(layers, heads, q_seq, kv_seq)`."""

    stream: list
    weights: np.ndarray
    cross_weights: np.ndarray | None = None


def inside_block(x, block, mask=None, context=None, context_mask=None, scheme=None):
    """`Block` from its parameters: each sublayer, its sum and its norm, in the order of the placement."""
    weights = []

    def attend_to_itself(rows):
        if isinstance(block.attention, pf.attention.GatedDeltaNet):
            of_heads, out = delta_weights_and_rows(rows, block.attention)
            weights.append(of_heads)
            return out
        weights.append(multi_head_weights(rows, rows, block.attention, mask, scheme))
        return multi_head(rows, rows, block.attention, mask, scheme)

    def read(rows):
        weights.append(multi_head_weights(rows, context, block.cross_attention, context_mask))
        return multi_head(rows, context, block.cross_attention, context_mask)

    rows = np.asarray(x, np.float64)
    if isinstance(block, ParallelBlock):
        attended = attend_to_itself(normalise(rows, block.attention_norm))
        return rows + attended + feed_forward(normalise(rows, block.feed_forward_norm), block.feed_forward), weights
    for norm, after, sublayer in [
        (block.attention_norm, "attention_output_norm", attend_to_itself),
        (getattr(block, "cross_norm", None), "cross_attention_output_norm", read),
        (block.feed_forward_norm, "feed_forward_output_norm", lambda rows: feed_forward(rows, block.feed_forward)),
    ]:
        if norm is None:
            continue
        if block.norm_placement == "pre":
            rows = rows + sublayer(normalise(rows, norm))
        elif block.norm_placement == "post":
            rows = normalise(rows + sublayer(rows), norm)
        elif block.norm_placement == "output":
            rows = rows + normalise(sublayer(rows), norm)
        else:
            rows = rows + normalise(sublayer(normalise(rows, norm)), getattr(block, after))
    return rows, weights


def block(x, block, mask=None, context=None, context_mask=None, scheme=None):
    """The rows that a `Block` returns."""
    return inside_block(x, block, mask, context, context_mask, scheme)[0]


def inside(rows, stack, mask=None, context=None):
    """`Stack` from its parameters."""
    stream, weights = [rows], []
    masks = {"full": mask, "delta": mask}
    if stack.window is not None:
        near = [[abs(m - n) < stack.window for m in range(len(rows))] for n in range(len(rows))]
        masks["window"] = np.array(near) & (True if mask is None else mask)
    for number, layer in enumerate(stack.blocks):
        kind = stack.kinds[number]
        rows, of_layer = inside_block(rows, layer, masks[kind], context, scheme=stack.scheme)
        stream.append(rows)
        weights.append(of_layer)
    return Inside(stream, *map(np.array, zip(*weights, strict=True)))


def leaving(stream, stack):
    """What leaves a stack: unless its blocks end in a norm, the last one's rows are normalised."""
    return stream[-1] if stack.blocks[0].norm_placement == "post" else normalise(stream[-1], stack.final_norm)


def placed(rows, scheme, scaled=True):
    """The rows of a text with what the scheme of positions adds to them, or multiplies them by, before all blocks."""
    if isinstance(scheme, pf.LearnedPositions):
        return rows + np.asarray(scheme.table, np.float64)[: len(rows)]
    if isinstance(scheme, pf.SinusoidalPositions):
        return rows * (math.sqrt(rows.shape[1]) if scaled else 1) + sinusoid(len(rows), rows.shape[1])
    if isinstance(scheme, GridPositions):
        codes = sinusoid_2d(scheme.grid_height, scheme.grid_width, rows.shape[1])
        return rows + (np.concatenate([0 * codes[:1], codes]) if scheme.class_token else codes)
    return rows


def sinusoid(seq, d_model):
    """The code of every position, one number at a time."""
    clocks = [[n / 10_000 ** (2 * (i // 2) / d_model) for i in range(d_model)] for n in range(seq)]
    return np.array([[math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(row)] for row in clocks])


def sinusoid_2d(grid_height, grid_width, d_model):
    """The code of every patch in reading order: half a row for its row, half for its column."""
    rows, columns = sinusoid(grid_height, d_model // 2), sinusoid(grid_width, d_model // 2)
    return np.array([[*rows[i], *columns[j]] for i in range(grid_height) for j in range(grid_width)])


def causal(seq):
    return np.array([[m <= n for m in range(seq)] for n in range(seq)])


def look_up(tokens, embedding):
    return np.array([np.asarray(embedding.weight, np.float64)[token] for token in tokens])


def inside_decoder(tokens, model):
    """`Decoder` from its parameters: rows of the table, with their positions, through the blocks."""
    rows = placed(look_up(tokens, model.embedding), model.stack.scheme)
    rows = rows if model.embedding_norm is None else normalise(rows, model.embedding_norm)
    return inside(rows, model.stack, causal(len(rows)))


def decoder(tokens, model):
    """The logits of a `Decoder`."""
    return logits(inside_decoder(tokens, model).stream, model, model.embedding)


def logits(stream, model, embedding):
    rows = leaving(stream, model.stack)
    return rows @ np.asarray(embedding.weight, np.float64).T if model.output is None else linear(rows, model.output)


def inside_encoder(inputs, model, segments=None):
    """`Encoder` from its parameters, of a text's ids or of rows of numbers: every token sees every other one."""
    is_text = model.config.d_in is None
    rows = look_up(inputs, model.embedding) if is_text else linear(inputs, model.embedding)
    if segments is not None:
        rows = rows + look_up(segments, model.segment_embedding)
    if model.class_token is not None:
        rows = np.array([np.asarray(model.class_token, np.float64), *rows])
    rows = placed(rows, model.stack.scheme, scaled=is_text)
    return inside(rows if model.embedding_norm is None else normalise(rows, model.embedding_norm), model.stack)


def encoder(inputs, model, segments=None):
    """The rows that an `Encoder` returns."""
    return leaving(inside_encoder(inputs, model, segments).stream, model.stack)


def masked_language_model(tokens, model, segments=None):
    """The logits of a `MaskedLanguageModel`, none for a class token."""
    name = model.config.stack.activation
    rows = linear(encoder(tokens, model.encoder, segments)[-len(tokens) :], model.head)
    rows = normalise(np.vectorize(ACTIVATIONS[GATES.get(name, name)])(rows), model.head_norm)
    rows = rows @ np.asarray(model.encoder.embedding.weight, np.float64).T
    return rows if model.output_bias is None else rows + np.asarray(model.output_bias, np.float64)


def classifier(inputs, model, segments=None):
    """The logits of an `EncoderClassifier`."""
    rows = encoder(inputs, model.encoder, segments)
    pooled = rows[0] if model.config.pooling == "class" else sum(rows[-len(inputs) :]) / len(inputs)
    pooled = pooled if model.pooler is None else np.tanh(linear(pooled[None], model.pooler)[0])
    return linear(pooled[None], model.output)[0]


def patches(image, patch_size):
    """An image as rows, pixel by pixel."""
    image, (patch_height, patch_width) = np.asarray(image, np.float64), patch_size
    height, width, channels = image.shape
    found = []
    for top in range(0, height, patch_height):
        for left in range(0, width, patch_width):
            pixels = [image[top + i, left + j] for i in range(patch_height) for j in range(patch_width)]
            found.append([float(pixel[c]) for pixel in pixels for c in range(channels)])
    return np.array(found)


def vision_transformer(image, model):
    """The logits of a `ViT`: pixel by pixel into patches, through the blocks, to one row."""
    rows = encoder(patches(image, model.config.patch_size), model.encoder)
    pooled = rows[0] if model.config.pooling == "class" else sum(rows) / len(rows)
    return linear(pooled[None], model.output)[0]


def inside_seq2seq(source, target, model):
    """The decoder of a `Seq2Seq` from its parameters, for a single pair without padding."""
    rows = placed(look_up(target, model.embedding or model.encoder.embedding), model.stack.scheme)
    return inside(rows, model.stack, causal(len(rows)), encoder(source, model.encoder))


def seq2seq(source, target, model):
    """The logits of a `Seq2Seq`."""
    return logits(inside_seq2seq(source, target, model).stream, model, model.embedding or model.encoder.embedding)
