"""Attention beside its relatives, each as a construction that can be run (chapter on relations)."""

import math
from collections.abc import Callable
from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from plainformer.attention.multi_head import MultiHeadAttention
from plainformer.attention.self_attention import attend, softmax, weighted_average
from plainformer.checks import Number, Positive, PositiveFloat, checked

Offset = Annotated[int, Number(lambda n: abs(n) < 2**30, "a number of pixels, such as -1", whole=True)]

# --- kernel smoothing -----------------------------------------------------------------------------------------------


@checked
def kernel_weights(
    queries: Float[Array, "*batch q_seq d_k"], keys: Float[Array, "*batch kv_seq d_k"], width: PositiveFloat
) -> Float[Array, "*batch q_seq kv_seq"]:
    r"""Weight each key by how near it is to the query, by a Gaussian kernel of a given width.

    Implements `eq-relations-kernel-weights`; Tsai et al. (2019), equation 2, with a Gaussian kernel.
    """
    squares = ((queries[..., :, None, :] - keys[..., None, :, :]) ** 2).sum(axis=-1)
    return softmax(-squares / (2 * width**2))


@checked
def kernel_smooth(
    queries: Float[Array, "*batch q_seq d_k"],
    keys: Float[Array, "*batch kv_seq d_k"],
    values: Float[Array, "*batch kv_seq d_v"],
    width: PositiveFloat,
) -> Float[Array, "*batch q_seq d_v"]:
    r"""Estimate a value at each query from values known at the keys.

    Implements `eq-relations-nadaraya-watson`; Nadaraya (1964), equation 1; Watson (1964), section 3.

    Args:
        queries: places to estimate at.
        keys: places where a value is known.
        values: these values.
        width: how far a key reaches.
    """
    return weighted_average(kernel_weights(queries, keys, width), values)


# --- convolution ----------------------------------------------------------------------------------------------------


@checked
def shift_weights(height: Positive, width: Positive, down: Offset, right: Offset) -> Float[Array, "pixels pixels"]:
    r"""Let every pixel of an image look at the one that lies so many rows down and columns to the right of it.

    Implements `eq-relations-shift`. Pixels are in reading order; one that would look beyond the edge sees nothing, so
    that its row is zero.
    """
    rows, columns = jnp.divmod(jnp.arange(height * width), width)
    same_row = rows[:, None] + down == rows[None, :]
    same_column = columns[:, None] + right == columns[None, :]
    return (same_row & same_column).astype(jnp.float32)


@checked
def convolve_by_weights(
    image: Float[Array, "height width channels"], kernel: Float[Array, "k_height k_width channels d_out"]
) -> Float[Array, "height width d_out"]:
    r"""Convolve an image by weighted averages, one for each place in the kernel, with zeros around the image.

    Implements `eq-relations-convolution`. As in the libraries for neural networks, the kernel is not turned over.

    Raises:
        ValueError: if the kernel has no middle, or is larger than the image.
    """
    height, width, channels = image.shape
    offsets = kernel_offsets(kernel)
    if kernel.shape[0] > height or kernel.shape[1] > width:
        sizes = f"{kernel.shape[0]} x {kernel.shape[1]}, the image {height} x {width}"
        raise ValueError(f"kernel is {sizes}; expected an image at least as large as the kernel. Are they swapped?")
    x = image.reshape(height * width, channels)
    heads = [weighted_average(shift_weights(height, width, *each).astype(x.dtype), x) for each in offsets]
    rows = jnp.concatenate(heads, axis=1) @ kernel.reshape(-1, kernel.shape[-1])
    return rows.reshape(height, width, -1)


@checked
def kernel_offsets(kernel: Float[Array, "k_height k_width channels d_out"]) -> list[tuple[int, int]]:
    """Return, for each place of a kernel in reading order, how far it lies down and to the right of the middle."""
    tall, wide, *_ = kernel.shape
    if tall % 2 == 0 or wide % 2 == 0:
        raise ValueError(f"kernel is {tall} x {wide}; expected odd sizes, such as 3 x 3, so that it has a middle.")
    return [(place // wide - tall // 2, place % wide - wide // 2) for place in range(tall * wide)]


@checked
def pixel_tokens(image: Float[Array, "height width channels"]) -> Float[Array, "pixels d_model"]:
    r"""Make a token of every pixel: its channels, and four numbers that say where it stands.

    Implements `eq-relations-pixel-tokens-definition`; Cordonnier et al. (2020), section 3.1.
    """
    height, width, channels = image.shape
    rows, columns = (places.reshape(-1) for places in jnp.mgrid[:height, :width].astype(image.dtype))
    where = jnp.stack([rows, columns, (rows**2 + columns**2) / 2, jnp.ones_like(rows)], axis=1)
    return jnp.concatenate([image.reshape(-1, channels), where], axis=1)


@checked
def convolution_layer(
    kernel: Float[Array, "k_height k_width channels d_out"], width: PositiveFloat = 0.15
) -> MultiHeadAttention:
    r"""Make a multi-head layer that convolves: each head looks at one place of the kernel.

    Implements `eq-relations-shift-scores`; Cordonnier et al. (2020), theorem 1 and lemma 2. It reads `pixel_tokens` and
    returns the convolution in the first `d_out` columns, and zeros in the others. All heads share keys and values. A
    head whose target lies beyond the edge reads the nearest pixel of the image.

    Args:
        kernel: that of the convolution.
        width: the width of the heads' Gaussian kernels, in pixels.

    Raises:
        ValueError: if the kernel has no middle, or more output features than a token is wide.
    """
    *_, channels, d_out = kernel.shape
    d_model, offsets = channels + 4, kernel_offsets(kernel)
    if d_out > d_model:
        raise ValueError(
            f"kernel makes {d_out} features; expected at most {d_model}, its {channels} channels and four."
        )
    nothing = jnp.zeros((channels, 3))
    queries = [
        jnp.concatenate([nothing, jnp.array([[1, 0, 0], [0, 1, 0], [0, 0, 0], [*each, -1.0]])]) for each in offsets
    ]
    matrices = [
        jnp.concatenate(queries, axis=1) * (math.sqrt(3) / width**2),  # attention divides by the root of d_k = 3
        jnp.concatenate([nothing, jnp.eye(4, 3)]),
        jnp.eye(d_model, channels),
        jnp.pad(kernel.reshape(-1, d_out), ((0, 0), (0, d_model - d_out))),
    ]
    layer = MultiHeadAttention(d_model, len(offsets), num_kv_heads=1, d_k=3, d_v=channels, key=jax.random.key(0))
    return eqx.tree_at(lambda own: [m.weight for m in (own.query, own.key, own.value, own.output)], layer, matrices)


# --- graphs ---------------------------------------------------------------------------------------------------------


@checked
def neighbour_mask(adjacency: Bool[Array, "seq seq"]) -> Bool[Array, "seq seq"]:
    r"""Turn a graph into a mask: a node reads the nodes from which an edge leads to it.

    Implements `eq-relations-graph-mask`. Row m of `adjacency` says to which nodes an edge leads from node m.
    """
    return adjacency.T


@checked
def pass_messages(
    queries: Float[Array, "seq d_k"],
    keys: Float[Array, "seq d_k"],
    values: Float[Array, "seq d_v"],
    adjacency: Bool[Array, "seq seq"],
) -> Float[Array, "seq d_v"]:
    r"""Let a message run along every edge of a graph, and every node add up what reaches it.

    Implements `eq-relations-messages`; Gilmer et al. (2017), equation 1; Veličković et al. (2018), equation 4, with
    scaled dot products as scores. It is `attend` with `neighbour_mask(adjacency)`, but forms no score without an edge,
    so that its cost grows with the number of edges. The graph is known before compiling.

    Returns:
        One vector per node; zeros for a node that no edge leads to.
    """
    receivers, senders = jnp.nonzero(neighbour_mask(adjacency))
    num_nodes = len(queries)
    scores = (queries[receivers] * keys[senders]).sum(axis=1) / math.sqrt(keys.shape[1])
    powers = jnp.exp(scores - jax.ops.segment_max(scores, receivers, num_nodes)[receivers])
    total = jax.ops.segment_sum(powers, receivers, num_nodes)
    messages = (powers / total[receivers])[:, None] * values[senders]
    return jax.ops.segment_sum(messages, receivers, num_nodes)


# --- memory ---------------------------------------------------------------------------------------------------------


@checked
def hopfield_step(
    states: Float[Array, "*batch q_seq d_k"], patterns: Float[Array, "*batch kv_seq d_k"], width: PositiveFloat
) -> Float[Array, "*batch q_seq d_k"]:
    r"""Bring every state nearer to the stored patterns that it resembles.

    Implements `eq-relations-hopfield`; Ramsauer et al. (2021), equation 3, with one over the square of `width` as beta.
    """
    return attend(states, patterns, patterns, scale=1 / width**2)


@checked
def hopfield_energy(
    states: Float[Array, "*batch q_seq d_k"], patterns: Float[Array, "*batch kv_seq d_k"], width: PositiveFloat
) -> Float[Array, "*batch q_seq"]:
    r"""Return the energy of every state, which a step never raises.

    Implements `eq-relations-energy`; Ramsauer et al. (2021), equation 2, without its constants.
    """
    scores = states @ patterns.mT / width**2
    return (states**2).sum(axis=-1) / 2 - width**2 * jax.nn.logsumexp(scores, axis=-1)


# --- depth as time --------------------------------------------------------------------------------------------------


@checked
def euler_path(
    velocity: Callable, x: Float[Array, "*batch d_model"], time: PositiveFloat, num_steps: Positive
) -> Float[Array, "points *batch d_model"]:
    r"""Follow a velocity in straight steps, as residual layers do that share their weights.

    Implements `eq-relations-euler`; Chen et al. (2018), equation 1.

    Args:
        velocity: from a point to its velocity there, an array of the same shape.
        x: where to start.
        time: how long to go on.
        num_steps: in how many equal steps.

    Returns:
        All points that are visited, the first one included.
    """

    def step(x, _):
        x = x + (time / num_steps) * velocity(x)
        return x, x

    _, path = jax.lax.scan(step, x, length=num_steps)
    return jnp.concatenate([x[None], path])


# --- without scores -------------------------------------------------------------------------------------------------


@checked
def deep_set(x: Float[Array, "*batch seq d_model"], inner: Callable, outer: Callable) -> Float[Array, "*batch d_out"]:
    r"""Map every token, add up, map the sum: a function of a set.

    Implements `eq-relations-deep-set`; Zaheer et al. (2017), theorem 2. `inner` takes rows, `outer` a vector.
    """
    return outer(inner(x).sum(axis=-2))


@checked
def mix_tokens(
    x: Float[Array, "*batch seq d_model"], first: Float[Array, "hidden seq"], second: Float[Array, "seq hidden"]
) -> Float[Array, "*batch seq d_model"]:
    r"""Mix tokens by learned matrices that are the same for every input.

    Implements `eq-relations-mixer`; Tolstikhin et al. (2021), equation 1, without its norm and its residual.
    """
    return second @ jax.nn.gelu(first @ x, approximate=False)
