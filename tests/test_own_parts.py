"""What a reader's own part does wrong inside a model is answered as it is outside: eager, under jit and under vmap."""

import functools
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from all_models import KINDS, new_model
from own_parts import MISUSES, answer, with_own_parts
from right_calls import UNANNOTATED, of_attention, of_blocks, of_positions
from wrong_calls import call, wrong_calls

import plainformer as pf

X, MASK = jnp.linspace(-1, 1, 5 * 12).reshape(5, 12), pf.causal_mask(5)
RUNS = {
    "jit": jax.jit,
    "vmap": lambda block: lambda x: jax.vmap(block)(x[None]),
    "grad": lambda block: jax.grad(lambda x: block(x).sum()),
    "scan": lambda block: lambda x: jax.lax.scan(lambda x, _: (block(x), None), x, jnp.arange(2)),
    "checkpoint": eqx.filter_checkpoint,
}
KNOWN_WHEN_RUN = "an id below 0"  # in a compiled function


@pytest.fixture(autouse=True)
def ordinary(unchecked):
    """As for a user: no annotation is checked at run time but by the package itself."""
    jax.config.update("jax_disable_most_optimizations", True)
    with jax.numpy_dtype_promotion("standard"):
        yield
    jax.config.update("jax_disable_most_optimizations", False)


def small_block(**options):
    return pf.make_block(pf.StackConfig(d_model=12, num_heads=3, d_ff=10, **options), key=jax.random.key(0))


def misuse_everything(found: dict):
    """What a part of one's own does wrong: all misuses, each noted with what was said of it."""

    def before(name, rows):
        for misuse, function in MISUSES.items():
            found[name, misuse, rows.shape] = answer(function, rows)

    return before


@functools.cache
def wrong_calls_of_arrays() -> list:
    """The wrong calls of the tables that the package answers by their shapes, each with its answer."""
    right = of_attention(None) | of_blocks(None) | of_positions(None)
    made = [(wrong, given) for name, given in right.items() for wrong in wrong_calls(name, given, UNANNOTATED)]
    made = [(*each, call(*each)) for each in made if each[0].what != KNOWN_WHEN_RUN]
    return [each for each in made if each[2].by == "own"]


def assert_said_as_outside(found: dict):
    for (name, misuse, shape), said in found.items():
        assert said == answer(MISUSES[misuse], jnp.ones(shape)) != "nothing", (name, misuse)


@pytest.mark.parametrize("kind", ["decoder", "vit", "seq2seq"])
def test_own_parts_of_every_model_are_answered_as_outside(kind):
    found: dict = {}
    model = with_own_parts(new_model(kind, num_layers=1, position_scheme="rotary"), misuse_everything(found))
    eqx.filter_eval_shape(model, *KINDS[kind].inputs)
    parts = {name for name, _, _ in found}
    assert {"attention", "attention_norm", "feed_forward", "feed_forward_norm", "blocks"} <= parts
    assert {"scheme.embed", "scheme.rotate", "scheme.bias", "query", "final_norm"} <= parts
    assert_said_as_outside(found)


@pytest.mark.parametrize("run", RUNS)
def test_own_parts_of_a_block_are_answered_as_outside_however_it_runs(run):
    found: dict = {}
    block = with_own_parts(small_block(), misuse_everything(found))
    eqx.filter_eval_shape(RUNS[run](lambda x: block(x, MASK)), X)
    assert len({name for name, _, _ in found}) >= 9
    assert_said_as_outside(found)


def test_own_parts_of_a_block_that_is_not_compiled_are_answered_as_outside():
    found: dict = {}
    with_own_parts(small_block(), misuse_everything(found))(X, MASK)
    assert len({name for name, _, _ in found}) >= 9
    assert_said_as_outside(found)


@pytest.mark.parametrize("options", [{"parallel": True}, {"attention": "blockwise"}, {"attention": "linear"}])
def test_own_parts_of_blocks_of_other_kinds_are_answered_as_outside(options):
    found: dict = {}
    block = with_own_parts(small_block(**options), misuse_everything(found))
    eqx.filter_eval_shape(block, X, pf.attention.Mask(causal=True))
    assert len({name for name, _, _ in found}) >= 9
    assert_said_as_outside(found)


def test_every_wrong_call_is_answered_in_a_part_of_ones_own_as_outside():
    """Each misuse of the tables in one of the parts of a block, by its place in the table."""
    made, parts, inside = wrong_calls_of_arrays(), [], []
    eqx.filter_eval_shape(with_own_parts(small_block(), lambda name, rows: parts.append(name)), X)
    places = itertools.count()

    def before(name, rows):
        for wrong, arguments, said in made[next(places) :: len(parts)]:
            inside.append((name, wrong, call(wrong, arguments), said))

    eqx.filter_eval_shape(with_own_parts(small_block(), before), X)
    assert len(inside) == len(made) > 2000
    assert not [each for each in inside if each[2] != each[3]]


def test_a_class_of_ones_own_that_calls_its_base_is_answered_as_outside():
    class Mine(pf.MultiHeadAttention):
        def __call__(self, x, mask=None, **options):
            return super().__call__(x, jnp.where(mask, 0, -jnp.inf), **options)

    mine = eqx.tree_at(lambda block: block.attention, small_block(), Mine(12, 3, key=jax.random.key(0)))
    for run in RUNS.values():
        with pytest.raises(TypeError, match=r"mask is an array of float32; .* pass mask == 0"):
            eqx.filter_eval_shape(run(lambda x: mine(x, MASK)), X)
    with pytest.raises(TypeError, match=r"mask is an array of float32; .* pass mask == 0"):
        mine(X, MASK)
