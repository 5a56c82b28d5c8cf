"""A position scheme of one's own: every method acts in every form of attention, and what it returns is looked at."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from all_models import HEADS, KINDS, new_model

import plainformer as pf
from plainformer.models.config import KERNELS
from plainformer.seeing import is_looking

(TOKENS,) = KINDS["decoder"].inputs
WITH_SCORES = [name for name, kernel in KERNELS.items() if kernel.has_scores]


class Everything(pf.PositionScheme):
    """Adds, turns, biases, and hides what is three away."""

    def embed(self, x, positions=None):
        places = jnp.arange(x.shape[-2]) if positions is None else positions
        return x + 0.1 * places[..., None].astype(x.dtype)

    def rotate(self, rows, positions=None):
        return pf.RotaryPositions().rotate(rows, positions)

    def bias(self, q_positions, kv_positions):
        far = jnp.abs(q_positions[..., :, None] - kv_positions[..., None, :]).astype(float)
        return jnp.repeat(-0.3 * far[..., None, :, :], HEADS, axis=-3)

    def sees(self, q_positions, kv_positions):
        return jnp.abs(q_positions[..., :, None] - kv_positions[..., None, :]) != 3


def model_with(scheme, attention="direct"):
    model = new_model("decoder", attention=attention, position_scheme="none")
    return eqx.tree_at(lambda m: m.stack.scheme, model, scheme)


@pytest.mark.parametrize("attention", WITH_SCORES)
def test_every_form_gives_the_same_numbers_for_a_scheme_of_ones_own(attention):
    expected, model = model_with(Everything())(TOKENS), model_with(Everything(), attention)
    np.testing.assert_allclose(model(TOKENS), expected, atol=1e-5)
    rows, _ = model.extend(TOKENS, model.make_cache())
    np.testing.assert_allclose(model.logits(rows), expected, atol=1e-5)
    pieces, cache = [], model.make_cache()
    for start, end in [(0, 4), (4, 5), (5, 7)]:
        rows, cache = model.extend(TOKENS[start:end], cache)
        pieces.append(model.logits(rows))
    np.testing.assert_allclose(np.concatenate(pieces), expected, atol=1e-5)
    weights = model.attention_weights(TOKENS)
    hidden = np.abs(np.arange(7) - np.arange(7)[:, None]) == 3
    assert (np.asarray(weights)[..., hidden] == 0).all()
    assert not is_looking()


def wrong(name, made):
    """The scheme with one method that returns something else."""
    right = getattr(Everything, name)
    return type("Own", (Everything,), {name: lambda self, *given: made(right(self, *given))})()


MISTAKES = [
    ("embed", lambda x: x[..., :1, :], ValueError, r"Own\.embed returned shape"),
    ("embed", lambda x: None, ValueError, r"Own\.embed returned shape None"),
    ("rotate", lambda x: x.astype(bool), ValueError, r"Own\.rotate returned .* dtype bool"),
    ("bias", lambda x: x > -1, TypeError, r"The bias of Own holds bool"),
    ("bias", lambda x: jnp.repeat(x, 2, -3), ValueError, r"The bias of Own has shape \(12, "),
    ("sees", lambda x: x.astype(float), TypeError, r"What Own sees holds float32"),
    ("sees", lambda x: x[..., :1], ValueError, r"What Own sees has shape"),
]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(("name", "made", "error", "message"), MISTAKES)
def test_what_a_scheme_of_ones_own_returns_is_looked_at(name, made, error, message):
    for attention in WITH_SCORES:
        model = model_with(wrong(name, made), attention)
        for call in (model, lambda tokens, m=model: m.extend(tokens, m.make_cache()), model.attention_weights):
            with pytest.raises(error, match=message), jax.numpy_dtype_promotion("standard"):
                call(TOKENS)


def test_linear_attention_refuses_what_acts_on_scores():
    for scheme in (Everything(), pf.RotaryPositions(), pf.AlibiPositions(HEADS)):
        with pytest.raises(ValueError, match=rf"{type(scheme).__name__} acts on scores, and"):
            model_with(scheme, "linear")(TOKENS)
