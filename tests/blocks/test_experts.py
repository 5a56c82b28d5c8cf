"""Experts: a router, by hand and in loops; that only the chosen work, and nothing else of the result."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from flat import make_block
from jax.test_util import check_grads
from toy_models import drawn

import plainformer as pf
from plainformer.blocks.experts import _into_blocks, in_best_groups

D_MODEL, WIDTH, EXPERTS, SEQ = 12, 5, 7, 9
SIZES = {"num_experts": EXPERTS, "per_token": 3, "width": WIDTH}
KEY = jax.random.key(20170612)
NUMBERS = np.random.default_rng(8)
X = jnp.asarray(NUMBERS.normal(size=(2, SEQ, D_MODEL)), jnp.float32)
KINDS = {
    "softmax": {},
    "as-they-are": {"renormalise": False, "scale": 1.5},
    "sigmoid": {"scores": "sigmoid", "moved_bias": True, "scale": 2.5},
    "shared": {"shared": 2},
    "full": {"capacity": 1.0},
    "one": {"per_token": 1, "renormalise": False},
}


def new_experts(activation="swiglu", **fields):
    """A layer with all its parameters drawn: a router of small numbers would choose at random."""
    config = pf.blocks.ExpertsConfig(**SIZES | fields)

    def kind(config, *, key):
        return make_block(D_MODEL, 3, experts=config, activation=activation, key=key).feed_forward

    return drawn(kind, config)


@pytest.mark.equation("eq-modern-experts", "eq-modern-shared")
@pytest.mark.parametrize(
    ("kind", "activation"),
    [
        ("softmax", "gelu"),
        ("as-they-are", "swiglu"),
        ("sigmoid", "swiglu"),
        ("shared", "swiglu"),
        ("full", "gelu"),
        ("one", "swiglu"),
    ],
)
def test_experts_agree_with_a_loop_in_float64(kind, activation):
    layer = new_experts(activation, **KINDS[kind])
    found = eqx.filter_jit(lambda layer, x: layer(x))(layer, X)
    for rows, expected in zip(found, X, strict=True):
        np.testing.assert_allclose(rows, reference.experts(np.asarray(expected), layer), rtol=1e-4, atol=1e-5)


@pytest.mark.equation("eq-modern-experts")
@pytest.mark.parametrize(("seq", "share_kept"), [(1, 1.0), (2, 0.0), (40, 0.6)])
def test_mixture_is_the_sum_over_all_experts_with_gates_of_zero(seq, share_kept):
    """One expert has everything in a text, and others nothing, so that blocks are full, begun and empty."""
    layer, numbers = new_experts(), np.random.default_rng(seq)
    x, gates = (jnp.asarray(numbers.normal(size=(3, seq, width)), jnp.float32) for width in (D_MODEL, 3))
    chosen = numbers.permuted(np.tile(np.arange(EXPERTS), (3, seq, 1)), axis=2)[..., :3]
    chosen[0] = [0, 6, 2]
    kept = jnp.asarray(numbers.random((3, seq, 3)) < share_kept)
    every = np.array(jax.vmap(lambda network: network(x))(layer.networks))
    expected = np.zeros(x.shape)
    for text, n, slot in np.argwhere(np.asarray(kept)):
        expected[text, n] += gates[text, n, slot] * every[chosen[text, n, slot], text, n]
    mixture = jax.jit(pf.blocks.mixture)
    np.testing.assert_allclose(
        mixture(x, gates, jnp.asarray(chosen), layer.networks, kept), expected, rtol=1e-4, atol=1e-5
    )


def test_blocks_hold_each_row_once_with_its_expert_and_few_empty_rows():
    for rows, num_experts in [(1, 4), (3, 2), (40, 3), (256, 8)]:
        for draw in (NUMBERS.integers(num_experts + 1, size=rows), np.zeros(rows, int), np.full(rows, num_experts)):
            places, expert_of_block, length = _into_blocks(jnp.asarray(draw), num_experts)
            inside = np.flatnonzero(draw < num_experts)
            assert len(set(np.asarray(places)[inside])) == len(inside)
            np.testing.assert_array_equal(expert_of_block[np.asarray(places)[inside] // length], draw[inside])
            total = expert_of_block.size * length
            assert (np.asarray(places)[draw == num_experts] >= total).all()
            assert rows <= total <= 1.25 * rows


@pytest.mark.equation("eq-modern-gates")
def test_route_by_hand():
    weights = jnp.asarray([[0.1, 0.4, 0.2, 0.3]])
    gates, chosen = pf.blocks.route(weights, 2)
    np.testing.assert_array_equal(chosen, [[1, 3]])
    np.testing.assert_allclose(gates, [[4 / 7, 3 / 7]], rtol=1e-6)
    np.testing.assert_allclose(pf.blocks.route(weights, 2, renormalise=False)[0], [[0.4, 0.3]])
    gates, chosen = pf.blocks.route(weights, 2, choice_bias=jnp.asarray([0.5, 0.0, 0.0, 0.0]))
    np.testing.assert_array_equal(chosen, [[0, 1]])  # chosen for the bias, and weighed without it
    np.testing.assert_allclose(gates, [[0.2, 0.8]], rtol=1e-6)


def test_groups_count_by_their_two_best_experts():
    """The group of the likeliest expert may count less than another one."""
    weights = jnp.asarray([[0.5, 0.1, 0.0, 0.3, 0.35, 0.2], [0.5, 0.3, 0.0, 0.3, 0.35, 0.2]])
    np.testing.assert_array_equal(in_best_groups(weights, 2, 1), [3 * [False] + 3 * [True], 3 * [True] + 3 * [False]])
    np.testing.assert_array_equal(in_best_groups(weights, 2, 2), np.ones((2, 6), bool))
    np.testing.assert_array_equal(in_best_groups(weights, 6, 2)[0], [True, False, False, False, True, False])


@pytest.mark.equation("eq-modern-capacity")
def test_within_capacity_by_hand():
    chosen = jnp.asarray([[[0, 1], [0, 2], [0, 1]], [[2, 0], [1, 2], [0, 1]]])
    kept = pf.blocks.within_capacity(chosen, 3, 1.0)  # six choices of each text, three experts: room for two
    np.testing.assert_array_equal(kept[0], [[True, True], [True, True], [False, True]])
    np.testing.assert_array_equal(kept[1], True)
    assert pf.blocks.within_capacity(chosen, 3, 1.5).all()  # room for three


def test_a_later_token_changes_no_earlier_one_with_a_capacity():
    layer = new_experts(capacity=1.0)
    before, after = layer(X), layer(X.at[:, 6:].set(3.0))
    np.testing.assert_array_equal(before[:, :6], after[:, :6])
    assert np.abs(before[:, 6:] - after[:, 6:]).max() > 0.1


@pytest.mark.parametrize("kind", ["softmax", "sigmoid"])
def test_gradients_reach_the_router_and_the_chosen_experts_alone(kind, x64):
    layer, x = new_experts(**KINDS[kind]), jnp.asarray(np.asarray(X[0, :2]), float)
    learned, rest = eqx.partition(layer, eqx.is_inexact_array)

    def total(learned, x):
        return (eqx.combine(jax.tree.map(jnp.asarray, learned), rest)(jnp.asarray(x)) ** 2).sum()

    check_grads(total, (learned, x), order=1, modes=["rev"])
    slopes, chosen = jax.grad(total)(learned, x), set(np.ravel(layer.choose(x)[1]))
    for expert in range(EXPERTS):
        assert (np.abs(slopes.networks.down.weight[expert]).max() > 0) == (expert in chosen)
    assert np.abs(slopes.router.weight).max() > 0
    if kind == "sigmoid":
        np.testing.assert_array_equal(slopes.choice_bias, 0)


def test_a_look_shows_the_router_and_the_shared_network():
    layer = new_experts(shared=1, capacity=1.0, moved_bias=True, scores="sigmoid")
    output, seen = pf.look(layer, X)
    np.testing.assert_allclose(output, layer(X), rtol=1e-6)
    assert {"router.output", "choice_bias", "kept", "shared.hidden", "shared.output"} <= seen.keys()
    assert seen["chosen"].shape == (2, SEQ, 3)
    assert seen["expert_weights"].shape == (2, SEQ, EXPERTS)


def test_a_model_may_start_small_with_experts():
    experts = pf.blocks.ExpertsConfig(**SIZES, shared=1)
    stack = pf.StackConfig(d_model=D_MODEL, num_heads=3, num_layers=2, experts=experts)
    keys = list(jax.random.split(KEY, 2))
    plain, small = (
        pf.models.depth.Stack(stack, pf.NoPositions(), keys=keys, small_start=start) for start in (False, True)
    )
    for one, other in zip(plain.blocks, small.blocks, strict=True):
        for part in ("networks", "shared"):
            weights = [getattr(block.feed_forward, part).down.weight for block in (one, other)]
            np.testing.assert_allclose(weights[1], weights[0] / 2, rtol=1e-6)


def test_no_two_experts_start_equal():
    weights = make_block(D_MODEL, 3, experts=pf.blocks.ExpertsConfig(**SIZES), key=KEY).feed_forward.networks.up.weight
    assert len(np.unique(np.asarray(weights).reshape(EXPERTS, -1), axis=0)) == EXPERTS


@pytest.mark.parametrize(
    "bad",
    [
        {"per_token": 8},
        {"num_experts": 0},
        {"groups": 2},
        {"chosen_groups": 1, "groups": 7},
        {"chosen_groups": 8, "groups": 7},
        {"capacity": 0.5},
        {"scores": "relu"},
        {"per_token": 1},  # with renormalise=True every gate is 1
        {"scale": 0.0},
    ],
    ids=str,
)
def test_experts_config_names_what_is_wrong(bad, unchecked):
    with pytest.raises(ValueError, match=next(iter(bad))):
        pf.blocks.ExpertsConfig(**SIZES | bad)


@pytest.mark.parametrize(("per_token", "least"), [(2, 1), (3, 2), (4, 2), (6, 3)])
def test_chosen_groups_hold_as_many_experts_as_work_on_a_token(per_token, least):
    sizes = SIZES | {"num_experts": 6, "per_token": per_token, "groups": 3}
    for enough in range(least, 4):
        assert pf.blocks.ExpertsConfig(**sizes, chosen_groups=enough).chosen_groups == enough
    for number in {least - 1, 4} - {0}:
        with pytest.raises(ValueError, match=f"expected {least} to"):
            pf.blocks.ExpertsConfig(**sizes, chosen_groups=number)


def test_route_refuses_more_experts_than_there_are():
    with pytest.raises(ValueError, match="per_token"):
        pf.blocks.route(jnp.ones((2, 5, 2)), 3)
