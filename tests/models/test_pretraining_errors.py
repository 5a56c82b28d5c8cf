"""Chapter 07, pre-training and classifiers: what a reader is told when sizes, labels or masks are wrong."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

import plainformer as pf

KEY = jax.random.key(0)
SIZES = {"vocab_size": 11, "context_len": 5, "d_model": 12, "num_layers": 1, "num_heads": 3, "d_ff": 7}
ONES = jnp.ones((2, 3), bool)


def hide(tokens=None, is_maskable=ONES, **options):
    tokens = jnp.full((2, 3), 5) if tokens is None else tokens
    return pf.mask_tokens(tokens, is_maskable, **{"mask_token": 2, "vocab_size": 11, "key": KEY} | options)


def new_classifier(**options):
    return pf.EncoderClassifier(pf.ClassifierConfig(**SIZES | {"num_classes": 4} | options), key=KEY)


def loss_at(label):
    return pf.classification_loss(new_classifier(), (jnp.zeros((2, 3), int), jnp.array([0, label])))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: hide(mask_token=11), ValueError, r"mask_token is 11; expected 0 to 10, as there are 11 tokens"),
        (lambda: hide(mask_token=-1), ValueError, r"mask_token is -1; expected 0 to 10"),
        (lambda: hide(mask_token="[MASK]"), TypeError, r"mask_token is '\[MASK\]'; expected a token id, such as 2"),
        (lambda: hide(first_ordinary=11), ValueError, r"first_ordinary is 11; expected 0 to 10"),
        (lambda: hide(first_ordinary=True), TypeError, r"first_ordinary is True; expected a token id"),
        (lambda: hide(vocab_size=0), ValueError, r"vocab_size is 0; expected at least 1"),
        (
            lambda: hide(fraction=15),
            ValueError,
            r"fraction is 15; expected a probability .* For 15 per cent, pass 0\.15",
        ),
        (lambda: hide(fraction=-0.1), ValueError, r"fraction is -0\.1; expected a probability"),
        (lambda: hide(fraction=None), TypeError, r"fraction is None; expected a number"),
        (lambda: hide(jnp.ones((2, 3))), TypeError, r"tokens are float32; expected whole numbers, such as encode\(\)"),
        (lambda: hide([1, 2]), TypeError, r"tokens is a list; expected an array"),
        (lambda: hide(is_maskable=ONES.astype(int)), TypeError, r"is_maskable holds int.*; expected bool, True where"),
        (
            lambda: hide(is_maskable=ONES.T),
            ValueError,
            r"is_maskable has shape \(3, 2\); expected \(axis_0=2, axis_1=3\)\. One for each token",
        ),
        (
            lambda: pf.MaskedLanguageModel(pf.EncoderConfig(**SIZES | {"vocab_size": None, "d_in": 4}), key=KEY),
            ValueError,
            r"has d_in and no vocab_size; expected a vocabulary to guess tokens from",
        ),
        (
            lambda: pf.MaskedLanguageModel(pf.EncoderConfig(**SIZES), key=KEY)(jnp.zeros((2, 3), int), ~ONES),
            ValueError,
            r"Text 0 is all padding",
        ),
        (lambda: pf.mean_pool(jnp.ones(3)), ValueError, r"rows has shape \(3,\); expected \(seq, d_model\)"),
        (lambda: pf.mean_pool(jnp.ones((0, 3))), ValueError, r"seq is 0; expected at least 1"),
        (lambda: pf.mean_pool(jnp.ones((2, 3, 4), int)), TypeError, r"rows holds int.*; expected floats"),
        (
            lambda: pf.mean_pool(jnp.ones((2, 3, 4)), ONES.T),
            ValueError,
            r"is_token has shape \(3, 2\); expected .*2.*3.*One for each row",
        ),
        (
            lambda: pf.mean_pool(jnp.ones((2, 3, 4)), ONES.astype(float)),
            TypeError,
            r"is_token holds float32; expected bool",
        ),
        (
            lambda: pf.mean_pool(jnp.ones((2, 3, 4)), ONES.at[1].set(False)),
            ValueError,
            r"A text is all padding; expected at least one token in each\. Leave it out",
        ),
        (lambda: new_classifier()(jnp.zeros((2, 3), int), ~ONES), ValueError, r"Text 0 is all padding"),
        (lambda: new_classifier(num_classes=0), ValueError, r"num_classes is 0; expected at least 1"),
        (lambda: new_classifier(num_classes="4"), TypeError, r"num_classes is '4'; expected a whole number"),
        (lambda: new_classifier(pooling="max"), ValueError, r"pooling is 'max'; expected one of 'class', 'mean'"),
        (lambda: new_classifier(d_model=13), ValueError, r"d_model=13 is not a multiple of num_heads=3"),
        (lambda: loss_at(4), ValueError, r"A target is 4; expected 0 to 3"),
        (lambda: loss_at(-1), ValueError, r"A target is -1; expected 0 to 3"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_compiled_mean_pool_names_a_text_that_is_all_padding():
    pool = eqx.filter_jit(pf.mean_pool)
    with pytest.raises(RuntimeError, match=r"A text is all padding; expected at least one token in each"):
        jax.block_until_ready(pool(jnp.ones((2, 3, 4)), ONES.at[1].set(False)))
