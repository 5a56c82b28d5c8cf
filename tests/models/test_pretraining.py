"""Chapter 07, pre-training: which tokens are hidden, and what guesses them."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from redraw import redrawn

import plainformer as pf

VOCAB, SPECIAL, MASK, CONTEXT, SEQ, D_MODEL, HEADS, D_FF, TEXTS = 11, 3, 2, 9, 7, 24, 6, 10, 3
LENGTHS = [7, 4, 2]
ORDINARY = VOCAB - SPECIAL
OPTIONS = {"mask_token": MASK, "vocab_size": VOCAB, "first_ordinary": SPECIAL}
SIZES = {"context_len": CONTEXT, "vocab_size": VOCAB, "d_model": D_MODEL, "num_layers": 2, "num_heads": HEADS}
call = eqx.filter_jit(lambda model, *arguments, key=None: model(*arguments, key=key))


@pytest.fixture
def tokens(key):
    """Three texts of seven tokens."""
    return jax.random.randint(key, (TEXTS, SEQ), 0, VOCAB)


@pytest.fixture
def is_token():
    """Which tokens of three texts of unequal length are none."""
    return jnp.arange(SEQ)[None, :] < jnp.array(LENGTHS)[:, None]


@pytest.fixture
def many(key):
    """Some 100,000 ordinary tokens, in texts of 41, hidden by the rule: before, after, and which are selected."""
    before = jax.random.randint(key, (2503, 41), SPECIAL, VOCAB)
    after, is_selected = pf.mask_tokens(before, jnp.ones(before.shape, bool), **OPTIONS, key=jax.random.fold_in(key, 1))
    return tuple(np.asarray(array) for array in (before, after, is_selected))


def new_model(key, **options):
    """A masked language model whose parameters are all drawn."""
    return redrawn(pf.MaskedLanguageModel(pf.EncoderConfig(**SIZES | {"d_ff": D_FF} | options), key=key), key)


def assert_share(mask, expected):
    """The share of `True` is as expected, up to 4.5 times the deviation of a mean of so many independent draws."""
    assert abs(np.mean(mask) - expected) < 4.5 * math.sqrt(expected * (1 - expected) / np.size(mask))


@pytest.mark.equation("eq-encoder-masking")
def test_mask_tokens_selects_its_fraction_and_splits_it_eighty_ten_ten(many):
    before, after, is_selected = many
    assert before.size > 100_000
    assert_share(is_selected, 0.15)
    was, became = before[is_selected], after[is_selected]
    assert_share(became == MASK, 0.8)
    assert_share((became != MASK) & (became != was), 0.1 * (1 - 1 / ORDINARY))  # a draw may hit what was there
    assert_share(became == was, 0.1 + 0.1 / ORDINARY)
    np.testing.assert_array_equal(after[~is_selected], before[~is_selected])


@pytest.mark.equation("eq-encoder-masking")
def test_mask_tokens_selects_each_token_on_its_own(many):
    _, after, is_selected = many
    assert_share(is_selected[:, 1:] & is_selected[:, :-1], 0.15**2)  # neighbours
    assert_share(is_selected[1:] & is_selected[:-1], 0.15**2)  # the same place in two texts
    for column in range(is_selected.shape[1]):
        assert_share(is_selected[:, column], 0.15)
        assert_share(after[:, column] == MASK, 0.15 * 0.8)


@pytest.mark.equation("eq-encoder-masking")
def test_mask_tokens_draws_replacements_from_all_ordinary_tokens_alike(key):
    before = jnp.full((100_003,), 5)
    after, is_selected = pf.mask_tokens(before, jnp.ones(before.shape, bool), **OPTIONS, fraction=0.9, key=key)
    became = np.asarray(after)[np.asarray(is_selected)]
    assert set(became.tolist()) == {MASK, *range(SPECIAL, VOCAB)}  # no special token but the mask itself
    for token in range(SPECIAL, VOCAB):
        assert_share(became == token, 0.1 / ORDINARY + 0.1 * (token == 5))


@pytest.mark.equation("eq-encoder-masking")
@pytest.mark.parametrize("fraction", [0.0, 0.02, 0.4])
def test_mask_tokens_takes_the_fraction_that_is_asked_for(fraction, key):
    before = jnp.full((101, 503), SPECIAL)
    after, is_selected = pf.mask_tokens(before, jnp.ones(before.shape, bool), **OPTIONS, fraction=fraction, key=key)
    assert_share(is_selected, fraction) if fraction else np.testing.assert_array_equal(after, before)
    assert bool(is_selected.any()) == bool(fraction)


@pytest.mark.equation("eq-encoder-masking")
def test_mask_tokens_never_touches_special_tokens_or_padding(key):
    before = jax.random.randint(key, (307, 53), 0, VOCAB)
    is_maskable = jax.random.bernoulli(jax.random.fold_in(key, 1), 0.7, before.shape)
    after, is_selected = pf.mask_tokens(before, is_maskable, **OPTIONS, fraction=0.9, key=key)
    allowed = is_maskable & (before >= SPECIAL)
    assert not (is_selected & ~allowed).any()
    np.testing.assert_array_equal(after[~allowed], before[~allowed])
    assert_share(is_selected[allowed], 0.9)


def test_mask_tokens_without_special_tokens_selects_and_draws_them_all(key):
    before = jnp.zeros((20_011,), int)
    options = {"mask_token": 4, "vocab_size": 5, "fraction": 0.5}
    after, is_selected = pf.mask_tokens(before, jnp.ones(before.shape, bool), **options, key=key)
    assert_share(is_selected, 0.5)
    assert set(np.asarray(after).tolist()) == set(range(5))


def test_mask_tokens_gives_the_same_from_the_same_key_compiled_or_not(tokens, is_token, key):
    first, other = jax.random.split(key)

    def hide(key):
        return pf.mask_tokens(tokens, is_token, **OPTIONS | {"first_ordinary": 0}, fraction=0.5, key=key)

    for found, again, compiled in zip(hide(first), hide(first), jax.jit(hide)(first), strict=True):
        np.testing.assert_array_equal(found, again)
        np.testing.assert_array_equal(found, compiled)
    assert (hide(first)[1] != hide(other)[1]).any()
    corrupted, is_selected = hide(first)
    assert corrupted.dtype == jnp.int32
    assert is_selected.dtype == bool


def test_mask_tokens_takes_ids_of_few_bits_and_any_number_of_axes(key):
    for shape in [(13,), (3, 5, 7)]:
        tokens = jnp.full(shape, 250, jnp.uint8)
        options = {"mask_token": 299, "vocab_size": 300, "fraction": 0.9, "first_ordinary": 30}
        after, is_selected = pf.mask_tokens(tokens, jnp.ones(shape, bool), **options, key=key)
        assert after.shape == is_selected.shape == shape
        assert (after == 299).any()


@pytest.mark.equation("eq-encoder-mlm-head")
@pytest.mark.parametrize(
    ("options", "activation"),
    [
        ({}, "gelu"),
        ({"placement": "post", "activation": "relu", "class_token": True}, "relu"),
        ({"norm": "rms", "activation": "swiglu", "use_bias": False, "positions": "rotary"}, "silu"),
    ],
)
def test_masked_language_model_agrees_with_a_loop_in_float64(options, activation, tokens, key):
    model = new_model(key, **options)
    logits = call(model, tokens[0])
    assert logits.shape == (SEQ, VOCAB)
    rows = reference.encoder(tokens[0], model.encoder)[-SEQ:]  # a class token has no logits
    hidden = rows @ np.asarray(model.head_weight, np.float64)
    hidden = hidden if model.head_bias is None else hidden + np.asarray(model.head_bias, np.float64)
    hidden = np.vectorize(reference.ACTIVATIONS[activation])(hidden)
    expected = reference.normalise(hidden, model.head_norm) @ np.asarray(model.encoder.embedding.weight, np.float64).T
    assert_close(logits, expected if model.out_bias is None else expected + np.asarray(model.out_bias, np.float64))
    assert (model.head_bias is None) == (model.out_bias is None) == (not model.config.use_bias)


@pytest.mark.equation("eq-encoder-mlm-head")
@pytest.mark.parametrize("class_token", [False, True])
def test_masked_language_model_of_padded_texts_is_each_text_alone(class_token, tokens, is_token, key):
    model = new_model(key, class_token=class_token, num_segments=2)
    segments = tokens % 2
    together = call(model, tokens, is_token, segments)
    assert together.shape == (TEXTS, SEQ, VOCAB)
    for text, length in enumerate(LENGTHS):
        alone = call(model, tokens[text, :length], None, segments[text, :length])
        assert_close(together[text, :length], alone)


@pytest.mark.equation("eq-encoder-mlm-head")
def test_masked_language_model_ends_in_the_table_that_it_begins_with(key):
    model, text = new_model(key), jnp.array([3, 4, 5, 6])
    table = model.encoder.embedding.weight.at[9].add(1.0)  # of a token that is not in the text
    changed = eqx.tree_at(lambda m: m.encoder.embedding.weight, model, table)
    before, after = call(model, text), call(changed, text)
    others = np.arange(VOCAB) != 9
    np.testing.assert_allclose(after[:, others], before[:, others], atol=1e-5)
    assert (np.abs(after[:, 9] - before[:, 9]) > 1e-3).all()
    assert pf.count_parameters(model) == pf.count_parameters(model.encoder) + 24 * 24 + 24 + 48 + 11


def test_masked_language_model_drops_only_with_a_key(tokens, key):
    model = new_model(key, dropout_rate=0.5)
    np.testing.assert_array_equal(call(model, tokens), call(new_model(key), tokens))
    assert np.abs(call(model, tokens, key=key) - call(model, tokens)).max() > 0.1


class Fixed(eqx.Module):
    """A model that gives the same logits for every text, so that one can differentiate by them."""

    logits: jax.Array

    def __call__(self, *inputs, key=None):
        return self.logits


@pytest.mark.equation("eq-encoder-masked-loss")
def test_masked_token_loss_by_hand():
    logits = jnp.log(jnp.array([[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]], [[0.2, 0.6, 0.2], [0.7, 0.2, 0.1]]]))
    targets, is_selected = jnp.array([[1, 2], [0, 0]]), jnp.array([[True, False], [False, True]])
    batch = (jnp.zeros_like(targets), targets, is_selected)
    assert_close(pf.masked_token_loss(Fixed(logits), batch), -(math.log(0.25) + math.log(0.7)) / 2)


@pytest.mark.equation("eq-encoder-masked-loss")
def test_masked_token_loss_reaches_the_logits_of_selected_tokens_only(tokens, key):
    logits, is_selected = jax.random.normal(key, (TEXTS, SEQ, VOCAB)), jnp.zeros((TEXTS, SEQ), bool)
    is_selected = is_selected.at[0, 3].set(True).at[2, 0].set(True)
    gradient = jax.grad(lambda z: pf.masked_token_loss(Fixed(z), (tokens, tokens, is_selected)))(logits)
    assert (gradient[~is_selected] == 0.0).all()
    expected = (jax.nn.softmax(logits[is_selected]) - jax.nn.one_hot(tokens[is_selected], VOCAB)) / 2
    assert_close(gradient[is_selected], expected)


@pytest.mark.equation("eq-encoder-masked-loss")
def test_masked_token_loss_passes_padding_and_segments_on(tokens, is_token, key):
    model, is_selected = new_model(key, num_segments=2), is_token.at[:, 0].set(False)
    segments = tokens % 2
    loss = pf.masked_token_loss(model, (tokens, (tokens + 1) % VOCAB, is_selected, is_token, segments))
    log_probs = jax.nn.log_softmax(call(model, tokens, is_token, segments))
    surprises = [-log_probs[t, n, (tokens[t, n] + 1) % VOCAB] for t in range(TEXTS) for n in range(1, LENGTHS[t])]
    assert_close(loss, np.mean(surprises))


@pytest.mark.equation("eq-encoder-masked-loss")
def test_masked_token_loss_without_a_selected_token_is_zero_and_so_is_its_gradient(tokens, is_token, key):
    batch = (tokens, tokens, jnp.zeros((TEXTS, SEQ), bool), is_token)
    loss, gradient = eqx.filter_jit(eqx.filter_value_and_grad(pf.masked_token_loss))(new_model(key), batch)
    assert float(loss) == 0.0
    assert all((leaf == 0.0).all() for leaf in jax.tree.leaves(gradient))


@pytest.mark.equation("eq-encoder-masked-loss", "eq-encoder-masking")
def test_fit_teaches_a_masked_language_model_a_rule(key):
    config = pf.EncoderConfig(context_len=6, vocab_size=VOCAB, d_model=16, num_layers=1, num_heads=2)
    first = jax.random.randint(key, (64, 1), 0, ORDINARY)
    texts = SPECIAL + (first + jnp.arange(6)[None, :]) % ORDINARY  # each token is one more than the one before
    everywhere = jnp.ones(texts.shape, bool)

    def batch_at(step):
        corrupted, chosen = pf.mask_tokens(texts, everywhere, **OPTIONS, fraction=0.3, key=jax.random.key(step))
        return corrupted, texts, chosen, everywhere

    training = pf.TrainingConfig(num_steps=150, learning_rate=1e-2, warmup_steps=10)
    result = pf.fit(pf.MaskedLanguageModel(config, key=key), pf.masked_token_loss, batch_at, training, progress=False)
    losses = [row["loss"] for row in result.metrics]
    assert losses[0] > 1.5
    assert np.mean(losses[-10:]) < 0.8  # not 0: at times too much is hidden
