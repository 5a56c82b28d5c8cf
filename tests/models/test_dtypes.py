"""Every scheme and every form of attention in every precision: calls, gradients, a training step, writing.

Each scheme meets each precision, each form meets each scheme and each precision, but not all three meet all others:
the forms take turns.
"""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from all_models import KINDS, STACK

from plainformer.models.config import KERNELS
from plainformer.positions.schemes import SCHEMES

TOKENS = jnp.asarray([[3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8, 9, 7]])

# A dtype, and whether jax_enable_x64 is on: what is promoted by slip becomes 32 bits without it, and 64 with it.
SETTINGS = [("float16", False), ("bfloat16", True), ("float32", True), ("float64", True)]


def forms_of(name: str) -> list[str]:
    """The forms of attention that a scheme goes together with."""
    return [form for form, kernel in KERNELS.items() if kernel.has_scores or not SCHEMES[name].acts_on_scores]


def in_turn(forms: dict[str, list[str]]):
    """Everything that has forms of attention in every precision, the forms by turns."""
    cases = [
        pytest.param(of_each[(row + column) % len(of_each)], name, setting, id=f"{name}-{setting[0]}-x64={setting[1]}")
        for row, (name, of_each) in enumerate(forms.items())
        for column, setting in enumerate(SETTINGS)
    ]
    return pytest.mark.parametrize(("attention", "name", "precision"), cases, indirect=["precision"])


FORMS = {name: forms_of(name) for name in SCHEMES}
OF_MODELS = {kind: list(KERNELS) for kind in KINDS}


@pytest.fixture
def precision(request):
    """A dtype, with 64 bits enabled or not, as in an ordinary program: mixed dtypes are promoted."""
    dtype, wide = request.param
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", wide)
    with jax.numpy_dtype_promotion("standard"):
        yield jnp.dtype(dtype)
    jax.config.update("jax_enable_x64", before)


@functools.cache
def shapes_of(kind, **fields):
    """A model of one layer without numbers: dtypes are known without."""
    config = KINDS[kind].config(**STACK | KINDS[kind].fields | {"num_layers": 1} | fields)
    return eqx.filter_eval_shape(lambda key: KINDS[kind].model(config, key=key), jax.random.key(0))


def model_in(dtype, kind, name, attention, **fields):
    def cast(leaf):
        return jax.ShapeDtypeStruct(leaf.shape, dtype) if jnp.issubdtype(leaf.dtype, jnp.inexact) else leaf

    return jax.tree.map(cast, shapes_of(kind, position_scheme=name, attention=attention, **fields))


def inputs_of(kind, dtype):
    return tuple(each.astype(dtype) if eqx.is_inexact_array(each) else each for each in KINDS[kind].inputs)


@in_turn(FORMS)
def test_every_scheme_in_every_form_and_precision_stays_in_its_own_kind(name, attention, precision):
    kind = "vit" if name == "sinusoidal_2d" else "decoder"
    model, inputs = model_in(precision, kind, name, attention), inputs_of(kind, precision)

    def total(model):
        logits = model(*inputs)
        assert logits.dtype == precision
        return logits.astype(jnp.float32).sum()

    slopes = eqx.filter_eval_shape(eqx.filter_grad(total), model)
    assert {leaf.dtype for leaf in jax.tree.leaves(slopes)} == {precision}
    if kind == "decoder":
        for window in (None, 3) if attention == "direct" else (None,):
            check_writing(model_in(precision, kind, name, attention, window=window), precision)


def check_writing(model, precision):
    """What is read with a cache, and the cache, have the precision of the model."""
    rows, cache = eqx.filter_eval_shape(lambda model: model.extend(TOKENS, model.make_cache(batch=(2,))), model)
    assert rows.dtype == precision
    kinds = {leaf.dtype for leaf in jax.tree.leaves(cache)}
    assert {kind for kind in kinds if jnp.issubdtype(kind, jnp.floating)} == {precision}
    assert eqx.filter_eval_shape(model.logits, rows).dtype == precision
    assert eqx.filter_eval_shape(model.attention_weights, TOKENS).dtype == precision


@in_turn(OF_MODELS)
def test_every_model_in_every_precision_reads_from_both_sides(name, attention, precision):
    model = model_in(precision, name, "learned", attention)
    assert eqx.filter_eval_shape(model, *inputs_of(name, precision)).dtype == precision
