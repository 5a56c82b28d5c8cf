"""Pre-training: which tokens are hidden, and what guesses them."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from closeness import assert_close
from flat import encoder_config
from toy_models import drawn

import plainformer as pf

VOCAB, SPECIAL, MASK, CONTEXT, SEQ, D_MODEL, HEADS, TEXTS = 11, 3, 2, 9, 7, 24, 6, 3
LENGTHS = [7, 4, 2]
ORDINARY = VOCAB - SPECIAL
OPTIONS = {"mask_token": MASK, "vocab_size": VOCAB, "first_ordinary": SPECIAL}
SIZES = {"context_len": CONTEXT, "vocab_size": VOCAB, "d_model": D_MODEL, "num_layers": 2, "num_heads": HEADS}
KEY = jax.random.key(20170612)
NUMBERS = np.random.default_rng(8)
TOKENS = jnp.asarray(NUMBERS.integers(VOCAB, size=(TEXTS, SEQ)))
IS_TOKEN = jnp.asarray(np.arange(SEQ) < np.array(LENGTHS)[:, None])  # which tokens of three texts of unequal length are
hide = jax.jit(pf.mask_tokens, static_argnames=("mask_token", "vocab_size", "first_ordinary", "fraction"))


@pytest.fixture(scope="module")
def many():
    """Some 100,000 ordinary tokens, in texts of 41, hidden by the rule: before, after, and which are selected."""
    before = NUMBERS.integers(SPECIAL, VOCAB, size=(2503, 41))
    after, is_selected = hide(jnp.asarray(before), jnp.ones(before.shape, bool), **OPTIONS, key=KEY)
    return before, np.asarray(after), np.asarray(is_selected)


def new_model(**fields):
    """A masked language model with all its parameters drawn."""
    return drawn(pf.MaskedLanguageModel, encoder_config(**SIZES | {"d_ff": 10} | fields))


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
def test_mask_tokens_draws_replacements_from_all_ordinary_tokens_alike():
    before = jnp.full((100_003,), 5)
    after, is_selected = hide(before, jnp.ones(before.shape, bool), **OPTIONS, fraction=0.9, key=KEY)
    became = np.asarray(after)[np.asarray(is_selected)]
    assert set(became.tolist()) == {MASK, *range(SPECIAL, VOCAB)}  # no special token but the mask itself
    for token in range(SPECIAL, VOCAB):
        assert_share(became == token, 0.1 / ORDINARY + 0.1 * (token == 5))


@pytest.mark.equation("eq-encoder-masking")
def test_mask_tokens_never_touches_special_tokens_or_padding():
    before, is_maskable = NUMBERS.integers(VOCAB, size=(307, 53)), NUMBERS.random((307, 53)) < 0.7
    found = hide(jnp.asarray(before), jnp.asarray(is_maskable), **OPTIONS, fraction=0.9, key=KEY)
    after, is_selected = map(np.asarray, found)
    allowed = is_maskable & (before >= SPECIAL)
    assert not (is_selected & ~allowed).any()
    np.testing.assert_array_equal(after[~allowed], before[~allowed])
    assert_share(is_selected[allowed], 0.9)


def test_mask_tokens_takes_ids_of_few_bits_and_any_number_of_axes():
    for shape in [(13,), (3, 5, 7)]:
        tokens = jnp.full(shape, 250, jnp.uint8)
        options = {"mask_token": 299, "vocab_size": 300, "fraction": 0.9, "first_ordinary": 30}
        after, is_selected = hide(tokens, jnp.ones(shape, bool), **options, key=KEY)
        assert after.shape == is_selected.shape == shape
        assert (after == 299).any()


@pytest.mark.equation("eq-encoder-mlm-head")
@pytest.mark.parametrize(
    "fields",
    [
        {"norm_placement": "post", "activation": "relu", "use_class_token": True},
        {"norm": "rms", "activation": "swiglu", "use_bias": False, "position_scheme": "rotary"},
    ],
)
def test_masked_language_model_agrees_with_a_loop_in_float64(fields):
    model = new_model(**fields)
    logits = model(TOKENS[0])
    assert logits.shape == (SEQ, VOCAB)  # a class token has no logits
    assert_close(logits, reference.masked_language_model(TOKENS[0], model))
    assert (model.head.bias is None) == (model.output_bias is None) == (not model.config.stack.use_bias)


@pytest.mark.equation("eq-encoder-mlm-head")
def test_masked_language_model_of_padded_texts_is_each_text_alone():
    model = new_model(use_class_token=True, num_segments=2)
    together = model(TOKENS, IS_TOKEN, TOKENS % 2)
    assert together.shape == (TEXTS, SEQ, VOCAB)
    for text, length in enumerate(LENGTHS):
        alone = TOKENS[text, :length]
        assert_close(together[text, :length], reference.masked_language_model(alone, model, alone % 2))


class Fixed(eqx.Module):
    """A model that gives the same logits for every text, so that one can differentiate by them."""

    logits: jax.Array

    def __call__(self, *inputs, key=None):
        return self.logits


@pytest.mark.equation("eq-encoder-masked-loss")
def test_masked_token_loss_reaches_the_logits_of_selected_tokens_only():
    logits, is_selected = NUMBERS.normal(size=(TEXTS, SEQ, VOCAB)), np.zeros((TEXTS, SEQ), bool)
    is_selected[0, 3] = is_selected[2, 0] = True
    batch = pf.data.MaskedBatch(TOKENS, TOKENS, jnp.asarray(is_selected))
    gradient = np.asarray(jax.grad(lambda z: pf.masked_token_loss(Fixed(z), batch))(jnp.asarray(logits, float)))
    assert (gradient[~is_selected] == 0.0).all()
    powers, targets = np.exp(logits[is_selected]), np.asarray(TOKENS)[is_selected]
    expected = (powers / powers.sum(axis=1, keepdims=True) - np.eye(VOCAB)[targets]) / 2
    assert_close(gradient[is_selected], expected)


@pytest.mark.equation("eq-encoder-masked-loss")
def test_masked_token_loss_passes_padding_and_segments_on():
    model, is_selected = new_model(num_segments=2), IS_TOKEN.at[:, 0].set(False)
    targets, segments = (TOKENS + 1) % VOCAB, TOKENS % 2
    loss = pf.masked_token_loss(model, pf.data.MaskedBatch(TOKENS, targets, is_selected, IS_TOKEN, segments))
    log_probs = np.asarray(jax.nn.log_softmax(model(TOKENS, IS_TOKEN, segments)))
    surprises = [-log_probs[t, n, targets[t, n]] for t in range(TEXTS) for n in range(1, LENGTHS[t])]
    assert_close(loss, np.mean(surprises))


@pytest.mark.equation("eq-encoder-masked-loss")
def test_masked_token_loss_without_a_selected_token_is_zero_and_so_is_its_gradient():
    batch = pf.data.MaskedBatch(TOKENS, TOKENS, jnp.zeros((TEXTS, SEQ), bool), IS_TOKEN)
    loss, gradient = eqx.filter_jit(eqx.filter_value_and_grad(pf.masked_token_loss))(new_model(), batch)
    assert float(loss) == 0.0
    assert all((leaf == 0.0).all() for leaf in jax.tree.leaves(gradient))


@pytest.mark.slow
@pytest.mark.equation("eq-encoder-masked-loss", "eq-encoder-masking")
def test_fit_teaches_a_masked_language_model_a_rule():
    config = encoder_config(context_len=6, vocab_size=VOCAB, d_model=16, num_layers=1, num_heads=2)
    first = NUMBERS.integers(ORDINARY, size=(64, 1))
    texts = jnp.asarray(SPECIAL + (first + np.arange(6)) % ORDINARY)  # each token is one more than the one before
    everywhere = jnp.ones(texts.shape, bool)

    def batch_at(step):
        corrupted, chosen = hide(texts, everywhere, **OPTIONS, fraction=0.3, key=jax.random.key(step))
        return pf.data.MaskedBatch(corrupted, texts, chosen, everywhere)

    training = pf.TrainingConfig(num_steps=150, learning_rate=1e-2, warmup_steps=10)
    model = eqx.filter_jit(pf.MaskedLanguageModel)(config, key=KEY)
    result = pf.fit(model, pf.masked_token_loss, batch_at, training, progress=False)
    losses = [row["loss"] for row in result.metrics]
    assert losses[0] > 1.5
    assert np.mean(losses[-10:]) < 0.8  # not 0: at times too much is hidden


# --- what a reader is told ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("tokens", "is_maskable", "options", "error", "message"),
    [
        (TOKENS, IS_TOKEN, {"mask_token": 11}, ValueError, "mask_token is 11"),
        (TOKENS, IS_TOKEN, {"first_ordinary": 11}, ValueError, "first_ordinary is 11"),
        (TOKENS, IS_TOKEN, {"fraction": 15}, ValueError, "fraction is 15"),
        (TOKENS - 7, IS_TOKEN, {}, ValueError, "tokens.* is -"),
        (TOKENS, IS_TOKEN.astype(int), {}, TypeError, "is_maskable"),
        (TOKENS, IS_TOKEN.T, {}, ValueError, "is_maskable has shape"),
    ],
)
def test_what_cannot_be_hidden_is_named(tokens, is_maskable, options, error, message):
    with pytest.raises(error, match=message):
        pf.mask_tokens(tokens, is_maskable, **OPTIONS | options, key=KEY)


def test_masked_language_model_wants_a_vocabulary():
    with pytest.raises(ValueError, match="d_in and no vocab_size"):
        pf.MaskedLanguageModel(encoder_config(**SIZES | {"vocab_size": None, "d_in": 4}), key=KEY)
