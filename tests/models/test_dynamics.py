"""Bilinear scores, the Cayley transform, triangular layers, and what keeps a volume."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from closeness import assert_close
from jax.test_util import check_grads

import plainformer as pf
from plainformer.models import dynamics

SEQ, D, BATCH = 5, 4, 3
NUMBERS = np.random.default_rng(13)
X = jnp.asarray(NUMBERS.normal(size=(SEQ, D)), jnp.float32)
FORM = jnp.asarray(NUMBERS.normal(size=(D, D)), jnp.float32)
KEY = jax.random.key(20241)
CONFIG = dynamics.TrajectoryConfig(
    d_model=D, seq=SEQ, num_blocks=2, num_layers=3, num_layers_alone=5, turning_width=6, num_models=2
)


def in_double(model, seed=0, size=1.0):
    """The same model with all its numbers drawn anew, in double precision."""
    random = np.random.default_rng(seed)
    return jax.tree.map(lambda array: jnp.asarray(size * random.normal(size=array.shape)), model)


def new_model(kind):
    return dynamics.KINDS[kind](CONFIG, key=KEY)


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@pytest.mark.equation("eq-dynamics-bilinear")
def test_bilinear_scores_compare_each_query_with_each_key():
    scores = dynamics.bilinear_scores(X, FORM)
    x, form = np.asarray(X, np.float64), np.asarray(FORM, np.float64)
    for n, m in np.ndindex(SEQ, SEQ):
        assert_close(scores[n, m], x[n] @ form @ x[m])


@pytest.mark.equation("eq-dynamics-bilinear", "eq-dynamics-attention", "eq-notation-columns-definition")
def test_bilinear_attention_in_columns_is_that_in_rows_transposed(x64):
    """The literature's Z, C and Z Λ, with the softmax down the columns, and with the Cayley transform."""
    Z, B = NUMBERS.normal(size=(D, SEQ)), NUMBERS.normal(size=(D, D))
    C = Z.T @ B @ Z
    attention = eqx.tree_at(lambda a: a.form, dynamics.BilinearAttention(D, key=KEY), jnp.asarray(B.T))
    np.testing.assert_allclose(attention(jnp.asarray(Z.T)).T, Z @ softmax(C.T).T, rtol=1e-12)
    skew = B - B.T
    C = Z.T @ skew @ Z
    Lambda = (np.eye(SEQ) - C) @ np.linalg.inv(np.eye(SEQ) + C)
    preserving = eqx.tree_at(
        lambda a: a.entries, dynamics.VolumePreservingAttention(D, key=KEY), jnp.asarray(skew.T[np.triu_indices(D, 1)])
    )
    np.testing.assert_allclose(preserving(jnp.asarray(Z.T)).T, Z @ Lambda, rtol=1e-9)


@pytest.mark.equation("eq-dynamics-softmax")
def test_bilinear_attention_weighs_by_the_softmax_of_its_scores():
    attention = dynamics.BilinearAttention(D, key=KEY)
    x = np.asarray(X, np.float64)
    assert_close(attention(X), softmax(x @ np.asarray(attention.form, np.float64) @ x.T) @ x)


@pytest.mark.equation("eq-dynamics-cayley")
def test_cayley_is_that_of_the_hand(x64):
    quarter = dynamics.cayley(jnp.asarray([[0.0, -1], [1, 0]]))
    np.testing.assert_allclose(quarter, [[0, 1], [-1, 0]], atol=1e-15)
    S = NUMBERS.normal(size=(SEQ, SEQ))
    np.testing.assert_allclose(
        dynamics.cayley(jnp.asarray(S)), (np.eye(SEQ) - S) @ np.linalg.inv(np.eye(SEQ) + S), rtol=1e-9
    )


@pytest.mark.equation("eq-dynamics-cayley")
def test_cayley_of_skew_is_a_rotation_and_of_symmetric_is_none(x64):
    S = NUMBERS.normal(size=(20, SEQ, SEQ))
    skew = dynamics.cayley(jnp.asarray(S - S.swapaxes(1, 2)))
    products = np.asarray(skew.mT @ skew)
    assert np.abs(products - np.eye(SEQ)).max() < 1e-12
    np.testing.assert_allclose(np.linalg.det(skew), 1, rtol=1e-12)
    symmetric = np.asarray(dynamics.cayley(jnp.asarray(S[0] + S[0].T)))
    assert np.abs(symmetric.T @ symmetric - np.eye(SEQ)).max() > 0.1


@pytest.mark.equation("eq-dynamics-attention")
def test_volume_preserving_attention_multiplies_by_an_orthogonal_matrix_for_all_features(x64):
    attention = in_double(dynamics.VolumePreservingAttention(D, key=KEY))
    for _ in range(20):
        x = jnp.asarray(NUMBERS.normal(size=(SEQ, D)))
        weights = attention.weights(x)
        assert np.abs(weights.T @ weights - np.eye(SEQ)).max() < 1e-12
        np.testing.assert_allclose(attention(x), weights @ x, rtol=1e-12)


@pytest.mark.equation("eq-dynamics-residual")
def test_residual_layer_moves_each_number_by_less_than_one():
    layer = in_double(dynamics.ResidualLayer(D, key=KEY), size=3.0)
    layer = jax.tree.map(lambda array: array.astype(jnp.float32), layer)
    x = np.asarray(X, np.float64)
    expected = x + np.tanh(x @ np.asarray(layer.weight, np.float64) + np.asarray(layer.bias, np.float64))
    assert_close(layer(X), expected)
    assert np.abs(layer(10 * X) - 10 * X).max() <= 1
    assert np.abs(layer(10 * X) - 10 * X).max() > 0.9


@pytest.mark.equation("eq-dynamics-triangular")
def test_triangular_layer_reads_before_and_then_after():
    layer = jax.tree.map(lambda array: array.astype(jnp.float32), in_double(dynamics.TriangularLayer(D, key=KEY)))
    row, places = [float(number) for number in X[0]], [(i, j) for i in range(D) for j in range(D) if i < j]
    before, after = (dict(zip(places, map(float, entries), strict=True)) for entries in (layer.before, layer.after))
    first = [
        row[j] + np.tanh(sum(before[i, j] * row[i] for i in range(j)) + float(layer.bias_before[j])) for j in range(D)
    ]
    second = [
        first[i] + np.tanh(sum(after[i, j] * first[j] for j in range(i + 1, D)) + float(layer.bias_after[i]))
        for i in range(D)
    ]
    assert_close(layer(X)[0], np.array(second))
    assert_close(layer(X)[0], layer(X[0]))


@pytest.mark.equation("eq-dynamics-triangular")
def test_triangular_layer_keeps_volume_and_its_halves_have_triangular_jacobians(x64):
    layer = in_double(dynamics.TriangularLayer(D, key=KEY))
    x = jnp.asarray(NUMBERS.normal(size=D))
    assert abs(np.linalg.det(jax.jacfwd(layer)(x)) - 1) < 1e-12
    no_second = eqx.tree_at(lambda one: (one.after, one.bias_after), layer, replace_fn=jnp.zeros_like)
    first = np.asarray(jax.jacfwd(no_second)(x))  # output, input
    np.testing.assert_array_equal(first, np.tril(first))
    np.testing.assert_array_equal(np.diag(first), 1)
    no_first = eqx.tree_at(lambda one: (one.before, one.bias_before), layer, replace_fn=jnp.zeros_like)
    second = np.asarray(jax.jacfwd(no_first)(x))
    np.testing.assert_array_equal(second, np.triu(second))
    np.testing.assert_array_equal(np.diag(second), 1)


@pytest.mark.equation("eq-dynamics-composition")
def test_composition_applies_the_first_layer_first_each_with_its_own_weights():
    first, second = (dynamics.ResidualLayer(D, key=key) for key in jax.random.split(KEY))
    both = dynamics.Composition((first, second))
    assert_close(both(X), np.asarray(second(first(X))))
    assert np.abs(both(X) - first(second(X))).max() > 1e-3
    arrays = jax.tree.leaves(eqx.filter(new_model("volume_preserving"), eqx.is_array))
    drawn = [array for array in arrays if np.any(array)]
    assert all(one.shape != other.shape or np.any(one != other) for i, one in enumerate(drawn) for other in drawn[:i])


@pytest.mark.equation("eq-dynamics-volume")
@pytest.mark.parametrize("kind", ["volume_preserving", "network", "placed"])
def test_volume_preserving_models_keep_the_volume_of_the_window(kind, x64):
    """For 200 sets of weights and windows, at the sizes of the chapter."""
    make = dynamics.KINDS[kind](dynamics.TrajectoryConfig(), key=KEY)
    random = np.random.default_rng(7)
    models = jax.tree.map(lambda array: jnp.asarray(0.5 * random.normal(size=(200, *array.shape))), make)
    windows = jnp.asarray(random.normal(size=(200, 3, 3)))
    changes = jax.jit(jax.vmap(dynamics.log_volume_change))(models, windows)
    assert np.abs(np.expm1(changes)).max() < 1e-10


@pytest.mark.equation("eq-dynamics-volume")
@pytest.mark.parametrize("kind", ["standard", "residual", "turning"])
def test_the_other_models_do_not(kind, x64):
    model, random = in_double(new_model(kind), size=0.5), np.random.default_rng(2)
    windows = [jnp.asarray(random.normal(size=(SEQ, D))) for _ in range(3)]
    assert min(abs(float(dynamics.log_volume_change(model, window))) for window in windows) > 0.1


@pytest.mark.equation("eq-dynamics-volume")
def test_log_volume_change_is_that_of_the_determinant(x64):
    model, window = in_double(new_model("ordinary"), size=0.3), jnp.asarray(X, jnp.float64)
    step = 1e-6
    columns = []
    for place in np.ndindex(SEQ, D):
        moved = jnp.zeros((SEQ, D)).at[place].set(step)
        columns.append(np.ravel(model(window + moved) - model(window - moved)) / (2 * step))
    expected = np.log(abs(np.linalg.det(np.array(columns))))
    assert float(dynamics.log_volume_change(model, window)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", ["volume_preserving", "ordinary", "turning", "placed"])
def test_models_of_a_batch_are_each_window_alone(kind):
    model, windows = new_model(kind), jnp.asarray(NUMBERS.normal(size=(BATCH, SEQ, D)), jnp.float32)
    together = model(windows)
    for number in range(BATCH):
        assert_close(together[number], np.asarray(model(windows[number])))


@pytest.mark.parametrize("kind", ["volume_preserving", "placed"])
def test_only_models_with_places_know_the_order_of_the_rows(kind):
    order = np.array([3, 0, 4, 1, 2])
    model = new_model(kind)
    swapped_first, swapped_last = model(X[order]), np.asarray(model(X))[order]
    if kind == "placed":
        assert np.abs(swapped_first - swapped_last).max() > 1e-3
    else:
        assert_close(swapped_first, swapped_last)


@pytest.mark.parametrize("kind", ["standard", "volume_preserving", "turning"])
def test_models_gradients(kind, x64):
    model, static = eqx.partition(in_double(new_model(kind), size=0.3), eqx.is_array)
    x = jnp.asarray(NUMBERS.normal(size=(SEQ, D)))

    def total(model, x):
        return (eqx.combine(jax.tree.map(jnp.asarray, model), static)(jnp.asarray(x)) ** 2).sum()

    check_grads(total, (model, x), order=1, modes=["rev"], rtol=1e-4)


@pytest.mark.equation("eq-dynamics-turning")
def test_turning_layer_multiplies_each_row_by_a_rotation_of_its_own_and_keeps_its_length(x64):
    layer = in_double(dynamics.TurningLayer(D, 6, key=KEY))
    x = np.asarray(X, np.float64)
    numbers = np.tanh(x @ np.asarray(layer.weight) + np.asarray(layer.bias)) @ np.asarray(layer.readout)
    for row, turned, above in zip(x, np.asarray(layer(jnp.asarray(x))), numbers, strict=True):
        skew = np.zeros((D, D))
        skew[np.triu_indices(D, 1)] = above
        skew -= skew.T
        rotation = (np.eye(D) - skew) @ np.linalg.inv(np.eye(D) + skew)
        np.testing.assert_allclose(turned, row @ rotation, rtol=1e-9)
        assert np.linalg.norm(turned) == pytest.approx(np.linalg.norm(row), rel=1e-12)
        assert np.abs(turned - row).max() > 0.1


@pytest.mark.equation("eq-dynamics-places")
def test_ordinary_transformer_is_two_blocks_and_a_skip_from_window_to_answer():
    model = new_model("ordinary")
    placed = dynamics.Places(SEQ, D, key=KEY)
    assert_close(placed(X), np.asarray(X + placed.table))
    inside = model.first(X) + model.places.table[:SEQ]
    for block in model.blocks:
        inside = block(inside)
    assert_close(model(X), np.asarray(X + model.last(inside)))


def test_models_of_the_chapter_s_sizes_have_so_many_parameters():
    counts = {"volume_preserving": 189, "network": 192, "residual": 192, "standard": 207, "ordinary": 1395}
    for kind, count in (counts | {"turning": 189, "placed": 216}).items():
        model = eqx.filter_eval_shape(dynamics.KINDS[kind], dynamics.TrajectoryConfig(), key=KEY)
        assert pf.count_parameters(model) == count


def test_trajectory_models_hold_models_of_each_kind():
    models = dynamics.TrajectoryModels(CONFIG, key=KEY)
    for kind in dynamics.KINDS:
        one, other = (models.one(kind, number) for number in (0, 1))
        assert jax.tree.structure(one) == jax.tree.structure(new_model(kind))
        assert np.abs(one(X) - other(X)).max() > 1e-3


def test_rollout_feeds_each_window_to_the_next_and_the_loss_is_the_mean_of_squares():
    model = new_model("volume_preserving")
    points = dynamics.rollout(model, X, 3)
    assert points.shape == (3 * SEQ, D)
    window = X
    for number in range(3):
        window = model(window)
        assert_close(points[number * SEQ : (number + 1) * SEQ], np.asarray(window))
    batch = jnp.stack([2 * X, X])
    loss = dynamics.window_loss(lambda x: x, (batch, jnp.stack([2 * X + 1, X - 3])))
    assert float(loss) == pytest.approx((1 + 9) / 2, rel=1e-6)
    assert_close(dynamics.rollout(model, batch, 3)[1], np.asarray(points))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: dynamics.bilinear_scores(X, FORM[:3, :3]), "form has shape"),
        (lambda: dynamics.cayley(X), "scores has shape"),
        (lambda: dynamics.VolumePreservingAttention(1, key=KEY), "d_model is 1"),
        (lambda: dynamics.TriangularLayer(1, key=KEY), "d_model is 1"),
        (lambda: dynamics.rollout(new_model("network"), X[0], 2), "window has shape"),
        (lambda: new_model("turning")(X[:, :3]), "x has shape"),
        (lambda: new_model("placed")(X[:3]), "seq=5"),
        (lambda: new_model("volume_preserving")(X[:, :3]), "x has shape"),
    ],
)
def test_what_does_not_fit_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()
