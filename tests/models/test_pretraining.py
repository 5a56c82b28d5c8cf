"""Chapter 09, pre-training: which tokens are hidden, and what guesses them."""

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
@pytest.mark.parametrize("fraction", [0.0, 0.02, 0.4])
def test_mask_tokens_takes_the_fraction_that_is_asked_for(fraction):
    before = jnp.full((101, 503), SPECIAL)
    after, is_selected = hide(before, jnp.ones(before.shape, bool), **OPTIONS, fraction=fraction, key=KEY)
    assert_share(is_selected, fraction) if fraction else np.testing.assert_array_equal(after, before)
    assert bool(is_selected.any()) == bool(fraction)


@pytest.mark.equation("eq-encoder-masking")
def test_mask_tokens_never_touches_special_tokens_or_padding():
    before, is_maskable = NUMBERS.integers(VOCAB, size=(307, 53)), NUMBERS.random((307, 53)) < 0.7
    found = hide(jnp.asarray(before), jnp.asarray(is_maskable), **OPTIONS, fraction=0.9, key=KEY)
    after, is_selected = map(np.asarray, found)
    allowed = is_maskable & (before >= SPECIAL)
    assert not (is_selected & ~allowed).any()
    np.testing.assert_array_equal(after[~allowed], before[~allowed])
    assert_share(is_selected[allowed], 0.9)


def test_mask_tokens_without_special_tokens_selects_and_draws_them_all():
    before = jnp.zeros((20_011,), int)
    options = {"mask_token": 4, "vocab_size": 5, "fraction": 0.5}
    after, is_selected = hide(before, jnp.ones(before.shape, bool), **options, key=KEY)
    assert_share(is_selected, 0.5)
    assert set(np.asarray(after).tolist()) == set(range(5))


def test_mask_tokens_gives_the_same_from_the_same_key_compiled_or_not():
    options = {"mask_token": MASK, "vocab_size": VOCAB, "fraction": 0.5}
    first, again, compiled = (call(TOKENS, IS_TOKEN, **options, key=KEY) for call in (pf.mask_tokens, hide, hide))
    for found, others in zip(first, zip(again, compiled, strict=True), strict=True):
        for other in others:
            np.testing.assert_array_equal(found, other)
    assert (first[1] != hide(TOKENS, IS_TOKEN, **options, key=jax.random.key(1))[1]).any()
    assert first[0].dtype == jnp.int32
    assert first[1].dtype == bool


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
        {},
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
@pytest.mark.parametrize("use_class_token", [False, True])
def test_masked_language_model_of_padded_texts_is_each_text_alone(use_class_token):
    model = new_model(use_class_token=use_class_token, num_segments=2)
    together = model(TOKENS, IS_TOKEN, TOKENS % 2)
    assert together.shape == (TEXTS, SEQ, VOCAB)
    for text, length in enumerate(LENGTHS):
        alone = TOKENS[text, :length]
        assert_close(together[text, :length], reference.masked_language_model(alone, model, alone % 2))
    weights = model.attention_weights(TOKENS, IS_TOKEN, TOKENS % 2)
    np.testing.assert_array_equal(weights, model.encoder.attention_weights(TOKENS, IS_TOKEN, TOKENS % 2))


@pytest.mark.equation("eq-encoder-mlm-head")
def test_masked_language_model_ends_in_the_table_that_it_begins_with():
    model, text = new_model(), jnp.array([3, 4, 5, 6])
    table = model.encoder.embedding.weight.at[9].add(1.0)  # of a token that is not in the text
    changed = eqx.tree_at(lambda m: m.encoder.embedding.weight, model, table)
    before, after = (np.asarray(each(text)) for each in (model, changed))
    others = np.arange(VOCAB) != 9
    np.testing.assert_allclose(after[:, others], before[:, others], atol=1e-5)
    assert (np.abs(after[:, 9] - before[:, 9]) > 1e-3).all()
    assert pf.count_parameters(model) == pf.count_parameters(model.encoder) + 24 * 24 + 24 + 48 + 11


class Fixed(eqx.Module):
    """A model that gives the same logits for every text, so that one can differentiate by them."""

    logits: jax.Array

    def __call__(self, *inputs, key=None):
        return self.logits


@pytest.mark.equation("eq-encoder-masked-loss")
def test_masked_token_loss_by_hand():
    logits = jnp.log(jnp.array([[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]], [[0.2, 0.6, 0.2], [0.7, 0.2, 0.1]]]))
    targets, is_selected = jnp.array([[1, 2], [0, 0]]), jnp.array([[True, False], [False, True]])
    batch = pf.data.MaskedBatch(jnp.zeros_like(targets), targets, is_selected)
    assert_close(pf.masked_token_loss(Fixed(logits), batch), -(math.log(0.25) + math.log(0.7)) / 2)


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

ONES = jnp.ones((2, 3), bool)


def hiding(tokens=None, is_maskable=ONES, **options):
    tokens = jnp.full((2, 3), 5) if tokens is None else tokens
    return pf.mask_tokens(tokens, is_maskable, **{"mask_token": 2, "vocab_size": 11, "key": KEY} | options)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: hiding(mask_token=11), ValueError, r"mask_token is 11; expected 0 to 10, as there are 11 tokens"),
        (lambda: hiding(mask_token=-1), ValueError, r"mask_token is -1; expected at least 0 and below"),
        (lambda: hiding(mask_token="[MASK]"), TypeError, r"mask_token is '\[MASK\]'; expected a whole number"),
        (lambda: hiding(first_ordinary=11), ValueError, r"first_ordinary is 11; expected 0 to 10"),
        (lambda: hiding(first_ordinary=True), TypeError, r"first_ordinary is True; expected a whole number"),
        (lambda: hiding(vocab_size=0), ValueError, r"vocab_size is 0; expected at least 1"),
        (lambda: hiding(fraction=15), ValueError, r"fraction is 15; expected at least 0 and .* 0\.1 for 10 per cent"),
        (lambda: hiding(fraction=-0.1), ValueError, r"fraction is -0\.1; expected at least 0"),
        (lambda: hiding(fraction=None), TypeError, r"fraction is None; expected a number"),
        (
            lambda: hiding(jnp.ones((2, 3))),
            TypeError,
            r"tokens holds float32; expected whole numbers, such as enc",
        ),
        (
            lambda: hiding(jnp.full((2, 3), -7)),
            ValueError,
            r"tokens\[0, 0\] is -7; expected 0 to 10, as there are 11 tok",
        ),
        (lambda: hiding(jnp.full((2, 3), 999)), ValueError, r"tokens\[0, 0\] is 999; expected 0 to 10"),
        (lambda: hiding(key=0), TypeError, r"key is of type int; expected a single random key"),
        (lambda: pf.masked_token_loss(3, (1, 2, 3)), TypeError, r"model is of type int; expected a function"),
        (
            lambda: pf.masked_token_loss(len, (1, 2)),
            TypeError,
            r"batch is a tuple of 2; expected one that .*: pf\.data\.MaskedBatch\(tokens, targets, is_selected\)",
        ),
        (
            lambda: pf.classification_loss(len, None),
            TypeError,
            r"batch is a NoneType; expected one that names its arrays: pf\.data\.LabelledBatch\(inputs, labels\)",
        ),
        (lambda: hiding([1, 2]), TypeError, r"tokens is a list; expected an array"),
        (
            lambda: hiding(is_maskable=ONES.astype(int)),
            TypeError,
            r"is_maskable .*int32; expected (bool|a Boolean)",
        ),
        (
            lambda: hiding(is_maskable=ONES.T),
            ValueError,
            r"is_maskable has shape \(3, 2\); expected \(2, 3\)\. .*One for each token",
        ),
        (
            lambda: pf.MaskedLanguageModel(encoder_config(**SIZES | {"vocab_size": None, "d_in": 4}), key=KEY),
            ValueError,
            r"has d_in and no vocab_size; expected a vocabulary to guess from",
        ),
        (
            lambda: new_model()(jnp.zeros((2, 3), int), ~ONES),
            ValueError,
            r"is_token\[0\] is not allowed; expected a token in each text",
        ),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
