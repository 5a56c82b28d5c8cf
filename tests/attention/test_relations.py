"""Each relation is a construction, compared with an independent computation in float64 NumPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import plainformer as pf
from plainformer.attention import relations

RNG = np.random.default_rng(12)
HEIGHT, WIDTH, CHANNELS, D_OUT = 5, 7, 2, 4
PIXELS = HEIGHT * WIDTH
NODES, D_K, D_V = 6, 4, 3


def drawn(*shape):
    return jnp.asarray(RNG.normal(size=shape), jnp.float32)


# --- kernel smoothing


@pytest.mark.equation("eq-relations-kernel-weights")
def test_kernel_weights_agree_with_a_loop_in_float64():
    queries, keys, width = drawn(5, D_K), drawn(7, D_K), 0.8
    expected = np.zeros((5, 7))
    for n, m in itertools.product(range(5), range(7)):
        distance = np.linalg.norm(np.asarray(queries[n], np.float64) - np.asarray(keys[m], np.float64))
        expected[n, m] = np.exp(-(distance**2) / (2 * width**2))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(relations.kernel_weights(queries, keys, width), expected, atol=1e-6)


@pytest.mark.equation("eq-relations-nadaraya-watson")
def test_kernel_smooth_is_attend_for_keys_of_equal_length():
    queries, keys, values, width = drawn(5, D_K), drawn(7, D_K), drawn(7, D_V), 0.6
    keys = keys / jnp.linalg.norm(keys, axis=1, keepdims=True)
    attended = pf.attend(queries, keys, values, scale=1 / width**2)
    np.testing.assert_allclose(relations.kernel_smooth(queries, keys, values, width), attended, atol=1e-5)
    longer = keys * jnp.arange(1.0, 8)[:, None]  # and not for others
    apart = relations.kernel_smooth(queries, longer, values, width) - pf.attend(
        queries, longer, values, scale=width**-2
    )
    assert jnp.abs(apart).max() > 0.1


def test_kernel_smooth_has_gradients(x64):
    numbers = [jnp.asarray(RNG.normal(size=shape)) for shape in [(2, D_K), (5, D_K), (5, D_V)]]
    check_grads(lambda *three: relations.kernel_smooth(*three, 0.7), numbers, order=1)


# --- convolution


def convolved(image, kernel, mode):
    """A convolution by four loops, in float64, with zeros around the image or with its edge repeated."""
    image, kernel = np.asarray(image, np.float64), np.asarray(kernel, np.float64)
    tall, wide = kernel.shape[:2]
    around = np.pad(image, ((tall // 2,) * 2, (wide // 2,) * 2, (0, 0)), mode=mode)
    found = np.zeros((*image.shape[:2], kernel.shape[3]))
    for row, column, down, right in itertools.product(*map(range, (*image.shape[:2], tall, wide))):
        found[row, column] += around[row + down, column + right] @ kernel[down, right]
    return found


@pytest.mark.equation("eq-relations-shift")
def test_shift_weights_move_an_image(key):
    image = jax.random.normal(key, (HEIGHT, WIDTH, CHANNELS))
    moved = (relations.shift_weights(HEIGHT, WIDTH, 2, -1) @ image.reshape(PIXELS, CHANNELS)).reshape(image.shape)
    np.testing.assert_array_equal(moved[: HEIGHT - 2, 1:], image[2:, : WIDTH - 1])
    assert not moved[HEIGHT - 2 :].any()
    assert not moved[:, 0].any()


@pytest.mark.equation("eq-relations-convolution")
@pytest.mark.parametrize("sides", [(3, 5), (5, 1)])
def test_convolve_by_weights_is_a_convolution_with_zeros_around(sides):
    image, kernel = drawn(HEIGHT, WIDTH, CHANNELS), drawn(*sides, CHANNELS, D_OUT)
    found = relations.convolve_by_weights(image, kernel)
    np.testing.assert_allclose(found, convolved(image, kernel, "constant"), atol=1e-5)


@pytest.mark.equation("eq-relations-shift-scores")
@pytest.mark.parametrize(("sides", "d_out"), [((3, 5), 6), ((1, 1), 1)])
def test_convolution_layer_is_a_convolution_with_the_edge_repeated(sides, d_out):
    image, kernel = drawn(HEIGHT, WIDTH, CHANNELS), drawn(*sides, CHANNELS, d_out)
    layer = relations.convolution_layer(kernel)
    assert layer.num_heads == sides[0] * sides[1]
    found = layer(relations.pixel_tokens(image)).reshape(HEIGHT, WIDTH, -1)
    np.testing.assert_allclose(found[..., :d_out], convolved(image, kernel, "edge"), atol=1e-5)
    assert not found[..., d_out:].any()
    inside = slice(sides[0] // 2, HEIGHT - sides[0] // 2), slice(sides[1] // 2, WIDTH - sides[1] // 2)
    zeros = convolved(image, kernel, "constant")
    np.testing.assert_allclose(found[inside][..., :d_out], zeros[inside], atol=1e-5)


@pytest.mark.equation("eq-relations-shift-scores", "eq-relations-pixel-tokens-definition")
def test_convolution_layer_weighs_pixels_by_their_distance_from_the_shifted_place():
    image, kernel, width = drawn(HEIGHT, WIDTH, CHANNELS), drawn(3, 3, CHANNELS, D_OUT), 0.7
    tokens = relations.pixel_tokens(image)
    np.testing.assert_array_equal(tokens[:, :CHANNELS], image.reshape(PIXELS, CHANNELS))
    weights = relations.convolution_layer(kernel, width).attention_weights(tokens)
    places = np.array(list(itertools.product(range(HEIGHT), range(WIDTH))))
    np.testing.assert_array_equal(tokens[:, CHANNELS : CHANNELS + 2], places)
    np.testing.assert_array_equal(tokens[:, CHANNELS + 2 :], np.c_[(places**2).sum(axis=1) / 2, np.ones(PIXELS)])
    for h, offset in enumerate(itertools.product((-1, 0, 1), repeat=2)):
        squares = ((places[None] - places[:, None] - np.array(offset)) ** 2).sum(axis=2)
        powers = np.exp(-squares / (2 * width**2))
        np.testing.assert_allclose(weights[h], powers / powers.sum(axis=1, keepdims=True), atol=1e-5)


# --- graphs


def directed_graph():
    """A graph that is not its own reverse, with a node that no edge leads to."""
    adjacency = np.zeros((NODES, NODES), bool)
    for sender, receiver in [(0, 1), (0, 2), (2, 1), (3, 2), (4, 4), (5, 4), (1, 5), (0, 5), (4, 3)]:
        adjacency[sender, receiver] = True
    return jnp.asarray(adjacency)


@pytest.mark.equation("eq-relations-graph-mask")
def test_neighbour_mask_lets_a_node_read_those_that_point_at_it():
    adjacency = directed_graph()
    mask = relations.neighbour_mask(adjacency)
    assert bool(mask[1, 0])  # node 1 reads node 0, since an edge leads from 0 to 1
    assert not bool(mask[0, 1])
    np.testing.assert_array_equal(mask.sum(axis=1), adjacency.sum(axis=0))


@pytest.mark.equation("eq-relations-messages", "eq-relations-graph-mask")
def test_pass_messages_is_attend_with_the_graph_as_its_mask():
    queries, keys, values = 100 * drawn(NODES, D_K), drawn(NODES, D_K), drawn(NODES, D_V)
    everything = jnp.ones((NODES, NODES), bool)
    for adjacency in (directed_graph(), everything, jnp.zeros((NODES, NODES), bool)):
        attended = pf.attend(queries, keys, values, relations.neighbour_mask(adjacency))
        np.testing.assert_allclose(relations.pass_messages(queries, keys, values, adjacency), attended, atol=1e-5)
    causal = relations.pass_messages(queries, keys, values, pf.causal_mask(NODES).T)
    np.testing.assert_allclose(causal, pf.attend(queries, keys, values, pf.causal_mask(NODES)), atol=1e-5)


def test_pass_messages_has_gradients(x64):
    numbers = [jnp.asarray(RNG.normal(size=(NODES, d))) for d in (D_K, D_K, D_V)]
    check_grads(lambda *three: relations.pass_messages(*three, directed_graph()), numbers, order=1)


# --- memory


@pytest.mark.equation("eq-relations-hopfield", "eq-relations-energy")
def test_hopfield_step_is_a_step_down_the_energy(x64):
    states, patterns, width = jnp.asarray(RNG.normal(size=(2, D_K))), jnp.asarray(RNG.normal(size=(5, D_K))), 0.7
    slopes = jax.grad(lambda states: relations.hopfield_energy(states, patterns, width).sum())(states)
    np.testing.assert_allclose(relations.hopfield_step(states, patterns, width), states - slopes, atol=1e-12)
    expected = 0.5 * (states**2).sum(axis=1)
    expected -= width**2 * np.log(np.exp(states @ patterns.T / width**2).sum(axis=1))
    np.testing.assert_allclose(relations.hopfield_energy(states, patterns, width), expected, atol=1e-12)
    for _ in range(6):
        after = relations.hopfield_step(states, patterns, width)
        lower = relations.hopfield_energy(after, patterns, width)
        assert (lower <= relations.hopfield_energy(states, patterns, width) + 1e-12).all()
        states = after


# --- depth as time


def turn(x):
    return jnp.stack([-x[..., 1], x[..., 0]], axis=-1)


@pytest.mark.equation("eq-relations-euler")
def test_euler_path_by_hand():
    found = relations.euler_path(turn, jnp.array([1.0, 0.0]), time=1.0, num_steps=2)
    np.testing.assert_allclose(found, [[1, 0], [1, 0.5], [0.75, 1]], rtol=1e-6)


@pytest.mark.equation("eq-relations-euler")
def test_euler_path_is_a_stack_of_blocks_that_share_their_weights(key):
    block = pf.make_block(pf.StackConfig(d_model=12, num_heads=3), key=key)
    x = drawn(5, 12)
    path = relations.euler_path(lambda x: block(x) - x, x, time=3.0, num_steps=3)
    expected = [x, block(x), block(block(x)), block(block(block(x)))]
    np.testing.assert_allclose(path, jnp.stack(expected), atol=1e-5)


# --- without scores


@pytest.mark.equation("eq-relations-deep-set")
def test_deep_set_adds_up_and_knows_no_order(key):
    inner = pf.FeedForward(D_K, 10, key=key)
    x = drawn(3, 5, D_K)
    expected = jnp.tanh(sum(inner(x[:, n]) for n in range(5)))
    np.testing.assert_allclose(relations.deep_set(x, inner, jnp.tanh), expected, atol=1e-6)
    np.testing.assert_allclose(relations.deep_set(x[:, ::-1], inner, jnp.tanh), expected, atol=1e-6)
    # Attention whose query finds all tokens alike takes their mean.
    mean = pf.attend(jnp.zeros((1, D_K)), x[0], inner(x[0]))[0]
    np.testing.assert_allclose(relations.deep_set(x[0], inner, jnp.tanh), jnp.tanh(5 * mean), atol=1e-6)


@pytest.mark.equation("eq-relations-mixer")
def test_mix_tokens_agrees_with_float64_and_mixes_each_feature_by_itself():
    x, first, second = drawn(2, 5, D_K), drawn(7, 5), drawn(5, 7)
    hidden = np.asarray(first, np.float64) @ np.asarray(x, np.float64)
    bent = hidden * np.vectorize(lambda z: 0.5 * (1 + float(jax.scipy.special.erf(z / np.sqrt(2)))))(hidden)
    np.testing.assert_allclose(relations.mix_tokens(x, first, second), np.asarray(second) @ bent, atol=1e-4)
    changed = relations.mix_tokens(x.at[..., 1].add(1.0), first, second) != relations.mix_tokens(x, first, second)
    np.testing.assert_array_equal(changed.any(axis=(0, 1)), np.arange(D_K) == 1)


# --- bad input


IMAGE, KERNEL = drawn(HEIGHT, WIDTH, CHANNELS), drawn(3, 3, CHANNELS, D_OUT)
THREE = drawn(NODES, D_K), drawn(NODES, D_K), drawn(NODES, D_V)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: relations.convolve_by_weights(IMAGE, drawn(2, 3, CHANNELS, D_OUT)), ValueError, "odd"),
        (lambda: relations.convolution_layer(drawn(3, 4, CHANNELS, D_OUT)), ValueError, "odd"),
        (lambda: relations.convolve_by_weights(IMAGE[:2], KERNEL), ValueError, "image"),
        (lambda: relations.convolve_by_weights(IMAGE[:, :2], KERNEL), ValueError, "image"),
        (lambda: relations.convolve_by_weights(IMAGE, drawn(3, 3, D_OUT, CHANNELS)), ValueError, "channels"),
        (lambda: relations.convolution_layer(drawn(3, 3, CHANNELS, 7)), ValueError, "7 features"),
        (lambda: relations.convolution_layer(KERNEL, 0.0), ValueError, "width"),
        (lambda: relations.hopfield_step(*THREE[:2], 0.0), ValueError, "width"),
        (lambda: relations.pass_messages(*THREE, jnp.ones((NODES, 5), bool)), ValueError, "adjacency"),
        (lambda: relations.neighbour_mask(jnp.ones((NODES, NODES), jnp.int32)), TypeError, "adjacency"),
        (lambda: relations.euler_path(turn, jnp.ones(2), -1.0, 3), ValueError, "time"),
        (lambda: relations.euler_path(turn, jnp.ones(2), 1.0, 0), ValueError, "num_steps"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
