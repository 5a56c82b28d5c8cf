"""Every scheme and every form of attention in every precision: calls, gradients, a training step, writing."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from all_models import KINDS, new_model

from plainformer.models.config import KERNELS
from plainformer.positions.schemes import SCHEMES

TOKENS = jnp.asarray([[3, 1, 4, 1, 5, 9, 2], [6, 5, 3, 5, 8, 9, 7]])
DTYPES = {"float16": False, "bfloat16": False, "float32": False, "float64": True}  # which need jax_enable_x64
SETTINGS = [(dtype, wide) for dtype, needs_wide in DTYPES.items() for wide in (False, True) if wide or not needs_wide]


PAIRS = [  # every scheme with every form of attention, where the two go together
    (name, attention)
    for (name, scheme), (attention, kernel) in itertools.product(SCHEMES.items(), KERNELS.items())
    if kernel.has_scores or not scheme.acts_on_scores
]


@pytest.fixture
def precision(request):
    """A dtype, with 64 bits enabled or not, as in an ordinary program: mixed dtypes are promoted."""
    dtype, wide = request.param
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", wide)
    with jax.numpy_dtype_promotion("standard"):
        yield jnp.dtype(dtype)
    jax.config.update("jax_enable_x64", before)


def model_in(dtype, kind, name, attention, **fields):
    model = new_model(kind, position_scheme=name, attention=attention, **fields)
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, model)


def inputs_of(kind, dtype):
    return tuple(each.astype(dtype) if eqx.is_inexact_array(each) else each for each in KINDS[kind].inputs)


@pytest.mark.parametrize("precision", SETTINGS, indirect=True, ids=lambda each: f"{each[0]}-x64={each[1]}")
@pytest.mark.parametrize(("name", "attention"), PAIRS)
def test_every_scheme_in_every_form_and_precision_has_logits_and_slopes_of_its_own_kind(name, attention, precision):
    kind = "vit" if name == "sinusoidal_2d" else "decoder"
    model, inputs = model_in(precision, kind, name, attention, num_layers=1), inputs_of(kind, precision)

    def total(model):
        logits = model(*inputs)
        assert logits.dtype == precision
        return logits.astype(jnp.float32).sum()

    slopes = eqx.filter_eval_shape(eqx.filter_grad(total), model)
    assert {leaf.dtype for leaf in jax.tree.leaves(slopes)} == {precision}


@pytest.mark.parametrize("precision", SETTINGS, indirect=True, ids=lambda each: f"{each[0]}-x64={each[1]}")
@pytest.mark.parametrize(("name", "attention"), [pair for pair in PAIRS if pair[0] != "sinusoidal_2d"])
def test_every_scheme_in_every_form_and_precision_writes_with_a_cache(name, attention, precision):
    for window in (None, 3) if attention == "direct" else (None,):
        model = model_in(precision, "decoder", name, attention, window=window, num_layers=1)
        rows, cache = eqx.filter_eval_shape(model.extend, TOKENS, model.make_cache(batch=(2,)))
        assert rows.dtype == precision
        kinds = {leaf.dtype for leaf in jax.tree.leaves(cache)}
        assert {kind for kind in kinds if jnp.issubdtype(kind, jnp.floating)} == {precision}
        assert eqx.filter_eval_shape(model.logits, rows).dtype == precision
        assert eqx.filter_eval_shape(model.attention_weights, TOKENS).dtype == precision


@pytest.mark.parametrize("precision", SETTINGS, indirect=True, ids=lambda each: f"{each[0]}-x64={each[1]}")
@pytest.mark.parametrize("kind", KINDS)
def test_every_model_in_every_precision_reads_from_both_sides(kind, precision):
    for attention in KERNELS:
        model = model_in(precision, kind, "learned", attention)
        assert eqx.filter_eval_shape(model, *inputs_of(kind, precision)).dtype == precision
