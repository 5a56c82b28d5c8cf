"""Adapters on weights of one byte, batches of answers, and preferences with their gradient by hand."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
from toy_models import Bigram, drawn

import plainformer as pf
from plainformer.models import (
    AdaptedLinear,
    add_adapters,
    add_tokens,
    answer_windows,
    continuation_windows,
    is_adapter,
    leash,
    log_probability,
    merge_adapters,
    preference_loss,
    preference_surprise,
    preferences,
)
from plainformer.models.low_precision import SmallLinear, in_few_bytes

KEY = jax.random.key(0)
STACK = pf.StackConfig(d_model=12, num_layers=2, num_heads=3, d_ff=10, use_bias=False)
IDS = jnp.asarray([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
TABLE = np.log([[0.5, 0.25, 0.25], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6]])
PROMPTS, CHOSEN, REJECTED = [[0], [2, 1]], [[1, 2], [1]], [[2], [0, 0, 2]]


class Holder(eqx.Module):
    layer: eqx.Module


def decoder(**fields):
    return drawn(pf.Decoder, pf.DecoderConfig(11, 16, STACK, **fields))


@pytest.mark.equation("eq-finetuning-adapter")
@pytest.mark.equation("eq-finetuning-merge")
def test_merging_an_adapter_is_adding_the_product_of_two_thin_matrices():
    layer = drawn(lambda config, key: pf.Linear(5, 4, key=key), None)
    adapted = eqx.tree_at(lambda each: each.adapter_out, AdaptedLinear(layer, 2, 0.5, key=KEY), jnp.ones((2, 4)))
    arrays = jnp.arange(5.0), layer.weight, adapted.adapter_in, adapted.adapter_out
    x, w, u, v = (np.asarray(each, np.float64) for each in arrays)
    expected = x @ (w + 0.5 * u @ v) + np.asarray(layer.bias)
    merged = merge_adapters(Holder(adapted)).layer
    check_close(merged.weight, w + 0.5 * u @ v)
    check_close(adapted(jnp.arange(5.0)), expected)
    check_close(merged(jnp.arange(5.0)), expected)


def check_close(found, wanted, share=1e-6):
    """No number is off by more than this share of the largest."""
    assert np.abs(np.asarray(found, np.float64) - wanted).max() <= share * np.abs(wanted).max()


def test_adapters_learn_on_weights_of_one_byte():
    small = in_few_bytes(decoder(), "int8")
    adapted = add_adapters(small, 2, where=lambda place: place.startswith("stack."), key=KEY)
    assert isinstance(adapted.stack.blocks[0].attention.query.layer, SmallLinear)
    np.testing.assert_allclose(adapted(IDS), small(IDS), rtol=1e-6)
    batch = pf.data.Windows(IDS[:, :-1], IDS[:, 1:])
    config = pf.TrainingConfig(num_steps=20, learning_rate=0.03, warmup_steps=1)
    loss = pf.training.next_token_loss
    found, metrics = pf.fit(adapted, loss, lambda step: batch, config, trainable=is_adapter, progress=False)
    assert metrics[-1]["loss"] < metrics[0]["loss"] - 0.1
    before, after = pf.training.named_arrays(adapted), pf.training.named_arrays(found)
    assert {name for name in before if not np.array_equal(before[name], after[name])} == set(filter(is_adapter, before))
    merged = merge_adapters(found)
    assert isinstance(merged.stack.blocks[0].attention.query, pf.Linear)
    check_close(merged(IDS), found(IDS))


def tuned(base, batches=lambda step: (IDS[:, :-1], IDS[:, 1:]), *, directory=None, parts=1):
    """Adapters on a base of one byte a weight, after a few steps: their numbers and the losses."""
    adapted = add_adapters(in_few_bytes(base, "int8"), 2, where="stack", key=KEY)
    config = pf.TrainingConfig(
        num_steps=6, learning_rate=0.03, warmup_steps=1, checkpoint_every=2, accumulation_steps=parts
    )
    how = {"trainable": is_adapter, "directory": directory, "progress": False}
    found, metrics = pf.fit(
        adapted, pf.training.next_token_loss, lambda step: pf.data.Windows(*batches(step)), config, **how
    )
    arrays = pf.training.named_arrays(found)
    return {name: arrays[name] for name in filter(is_adapter, arrays)}, [row["loss"] for row in metrics]


def test_adapters_on_weights_of_one_byte_resume_bit_for_bit_and_in_parts_learn_the_same(tmp_path):
    def stopping(step):
        if step == 3:
            raise ConnectionError
        return IDS[:, :-1], IDS[:, 1:]

    whole, losses = tuned(decoder())
    assert losses[-1] < losses[0]
    with pytest.raises(ConnectionError):
        tuned(decoder(), stopping, directory=tmp_path)
    with pytest.raises(ValueError, match="what is not trained has other numbers"):
        tuned(drawn(pf.Decoder, decoder().config, seed=1), directory=tmp_path)
    resumed, again = tuned(decoder(), directory=tmp_path)
    in_parts, of_parts = tuned(decoder(), parts=2)
    assert again == losses
    np.testing.assert_allclose(of_parts, losses, rtol=1e-5)
    for name, array in whole.items():
        np.testing.assert_array_equal(resumed[name], array)
        np.testing.assert_allclose(in_parts[name], array, rtol=1e-3, atol=1e-5)


@pytest.mark.equation("eq-finetuning-answer-loss")
def test_answer_windows_count_the_answer_alone():
    windows = answer_windows([[7, 8, 9, 1, 6, 2], [7, 1, 5, 2]], answer_token=1, length=6)
    np.testing.assert_array_equal(windows.inputs, [[7, 8, 9, 1, 6, 2], [7, 1, 5, 2, 0, 0]])
    np.testing.assert_array_equal(np.where(windows.is_token, windows.targets, -1)[0], [-1, -1, -1, 6, 2, -1])
    np.testing.assert_array_equal(np.where(windows.is_token, windows.targets, -1)[1], [-1, 5, 2, -1, -1, -1])
    again = answer_windows([[1, 5, 7, 1, 6]], 1)  # after the last of the answer's tokens
    np.testing.assert_array_equal(again.is_token, [[False, False, False, True]])
    model = decoder()
    log_probs = np.asarray(jax.nn.log_softmax(model(windows.inputs)), np.float64)
    by_hand = [log_probs[0, 3, 6], log_probs[0, 4, 2], log_probs[1, 1, 5], log_probs[1, 2, 2]]
    np.testing.assert_allclose(pf.training.next_token_loss(model, windows), -np.mean(by_hand), rtol=1e-5)


@pytest.mark.equation("eq-finetuning-log-probability")
def test_continuation_windows_count_what_goes_on_from_each_prompt():
    windows = continuation_windows(PROMPTS, [[1, 2], [1]], length=4)
    np.testing.assert_array_equal(windows.inputs, [[0, 1, 2, 0], [2, 1, 1, 0]])
    np.testing.assert_array_equal(np.where(windows.is_token, windows.targets, -1), [[1, 2, -1, -1], [-1, 1, -1, -1]])
    batch = preferences(Bigram(TABLE), PROMPTS, CHOSEN, REJECTED)
    for name, texts in (("chosen", CHOSEN), ("rejected", REJECTED)):
        for one, other in zip(continuation_windows(PROMPTS, texts, length=4), getattr(batch, name), strict=True):
            np.testing.assert_array_equal(one, other)
    assert continuation_windows(PROMPTS, CHOSEN).inputs.shape == (2, 2)


@pytest.mark.equation("eq-finetuning-log-probability")
def test_log_probability_is_that_of_what_counts():
    windows = preferences(Bigram(TABLE), PROMPTS, CHOSEN, REJECTED).rejected
    expected = np.log([0.25, 0.1 * 0.5 * 0.25])
    np.testing.assert_allclose(log_probability(Bigram(TABLE), windows), expected, rtol=1e-5)


WINDOWS = pf.data.PaddedWindows(IDS[:, :-1] % 3, IDS[:, 1:] % 3, jnp.asarray([[True] * 4, [False] * 4]))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("field", "other", "says"),
    [
        ("targets", lambda ids: ids.at[0, 3].set(999), r"targets\[0, 3\] is 999; expected 0 to 2, .*use is_token"),
        ("targets", lambda ids: ids.at[0, 3].set(-1), r"targets\[0, 3\] is -1; expected 0 to 2"),
        ("targets", lambda ids: ids.astype(float), r"targets holds float32; expected whole numbers"),
        ("targets", lambda ids: ids[:, :3], r"targets has shape \(2, 3\); expected \(2, 4\)"),
        ("is_token", lambda counts: counts[:, :3], r"is_token has shape \(2, 3\); expected \(2, 4\)"),
        ("is_token", lambda counts: counts[:1], r"is_token has shape \(1, 4\); expected \(2, 4\)"),
        ("is_token", lambda counts: counts.astype(float), r"is_token holds float32; expected bool"),
        ("is_token", lambda counts: counts.astype(int), r"is_token holds int32; expected bool"),
    ],
)
def test_windows_that_are_none_are_refused(field, other, says):
    wrong = WINDOWS._replace(**{field: other(getattr(WINDOWS, field))})
    with pytest.raises((ValueError, TypeError), match=says):
        log_probability(Bigram(TABLE), wrong)


def test_the_ids_of_padding_are_not_asked_about():
    padded = WINDOWS._replace(targets=WINDOWS.targets.at[1].set(-100))
    np.testing.assert_array_equal(*(log_probability(Bigram(TABLE), each) for each in (padded, WINDOWS)))


def test_a_leash_of_no_text_is_refused_and_of_one_that_does_not_count():
    model, none = Bigram(TABLE), jax.tree.map(lambda array: array[:0], WINDOWS)
    with pytest.raises(ValueError, match="windows has no text"):
        leash(model, model, none)
    with pytest.raises(ValueError, match=r"windows\.is_token\.sum\(axis=-1\)\[1\] is 0; expected at least 1"):
        leash(model, model, WINDOWS)


@pytest.mark.run_time_check
def test_what_is_compiled_finds_a_target_out_of_range_and_a_text_that_does_not_count():
    model, wrong = Bigram(TABLE), WINDOWS._replace(targets=WINDOWS.targets.at[0, 3].set(-1))
    with pytest.raises(RuntimeError, match="An entry of targets is not allowed; expected 0 to 2"):
        jax.block_until_ready(eqx.filter_jit(log_probability)(model, wrong))
    with pytest.raises(RuntimeError, match="each text has to have a token that counts"):
        jax.block_until_ready(eqx.filter_jit(leash)(model, model, WINDOWS))


@pytest.mark.equation("eq-finetuning-leash")
def test_leash_is_the_mean_of_what_the_texts_became_likelier():
    windows, other = preferences(Bigram(TABLE), PROMPTS, CHOSEN, REJECTED).chosen, TABLE[::-1]
    expected = np.log([0.25 / 0.2 * 0.3 / 0.3, 0.6 / 0.6]).mean()
    np.testing.assert_allclose(leash(Bigram(TABLE), Bigram(other), windows), expected, rtol=1e-4, atol=1e-6)
    assert leash(Bigram(TABLE), Bigram(TABLE), windows) == 0


@pytest.mark.equation("eq-finetuning-dpo")
def test_preference_surprise_by_hand():
    log_probs, reference = jnp.asarray([[-2.0, -5.0], [-3.0, -1.0]]), jnp.asarray([[-3.0, -4.0], [-3.0, -2.0]])
    expected = np.log1p(np.exp([-0.5 * 2, 0.5 * 1])).mean()
    np.testing.assert_allclose(preference_surprise(log_probs, reference, 0.5), expected, rtol=1e-6)
    assert np.isfinite(preference_surprise(1e4 * log_probs, reference, 0.5))


@pytest.mark.equation("eq-finetuning-dpo-gradient")
def test_gradient_by_hand():
    log_probs, reference = jnp.asarray([[-2.0, -5.0]]), jnp.asarray([[-3.0, -4.0]])
    found = jax.grad(preference_surprise)(log_probs, reference, 0.5)
    pull = 0.5 * (1 - 1 / (1 + np.exp(-0.5 * 2)))
    np.testing.assert_allclose(found, [[-pull, pull]], rtol=1e-6)


@pytest.mark.equation("eq-finetuning-tilted")
def test_least_surprise_is_at_the_tilted_reference():
    """Of all models of three answers, the reference weighed by exp(reward / β) explains the listener's choices best."""
    reward, beta = np.array([1.0, 0.0, -2.0]), 0.7
    reference = jax.nn.log_softmax(jnp.asarray([0.3, -0.4, 0.1]))
    pairs = jnp.asarray([(i, j) for i in range(3) for j in range(3) if i != j])
    share = jax.nn.sigmoid(jnp.asarray([reward[i] - reward[j] for i, j in pairs.tolist()]))

    def expected_surprise(log_probs):
        each = jax.vmap(lambda pair: preference_surprise(log_probs[pair][None], reference[pair][None], beta))(pairs)
        return (share * each).mean()

    tilted = jax.nn.log_softmax(reference + reward / beta)
    np.testing.assert_allclose(jax.grad(expected_surprise)(tilted), 0, atol=1e-6)
    assert expected_surprise(tilted) < expected_surprise(reference)


def test_preference_loss_trains_by_fit_and_begins_at_log_2():
    model = decoder()
    batch = preferences(model, [[3, 1], [9]], [[4, 2], [2]], [[5], [6, 6, 1]])
    config = pf.TrainingConfig(num_steps=20, learning_rate=0.01, warmup_steps=1)
    loss = partial(preference_loss, beta=0.5)
    found, metrics = pf.fit(model, loss, lambda step: batch, config, progress=False)
    assert metrics[0]["loss"] == pytest.approx(np.log(2), rel=1e-5)
    assert metrics[-1]["loss"] < 0.3
    assert log_probability(found, batch.chosen).sum() > log_probability(found, batch.rejected).sum()


@pytest.mark.equation("eq-finetuning-dpo")
def test_preference_loss_of_a_decoder_is_that_of_loops_in_float64():
    model, before, beta = decoder(), drawn(pf.Decoder, decoder().config, seed=1), 0.05
    prompts, chosen, rejected = [[3, 1], [9]], [[4, 2], [2]], [[5], [6, 6, 1]]

    def log_probability_of(model, prompt, answer):
        text, total = prompt + answer, 0.0
        for place, row in enumerate(reference.decoder(jnp.asarray(text[:-1]), model), start=1):
            total += (row[text[place]] - np.log(np.exp(row).sum())) * (place >= len(prompt))
        return total

    surprises = []
    for prompt, better, worse in zip(prompts, chosen, rejected, strict=True):
        gains = [
            log_probability_of(model, prompt, answer) - log_probability_of(before, prompt, answer)
            for answer in (better, worse)
        ]
        surprises.append(np.log1p(np.exp(-beta * (gains[0] - gains[1]))))
    found = preference_loss(model, preferences(before, prompts, chosen, rejected), beta=beta)
    np.testing.assert_allclose(found, np.mean(surprises), rtol=1e-5)
    assert abs(found - np.log(2)) > 0.01


def test_preferences_ask_a_function_for_what_it_says_now():
    now = TABLE

    def logits(tokens):
        return Bigram(now)(tokens)

    before = preferences(logits, PROMPTS, CHOSEN, REJECTED).reference
    now = TABLE[::-1]
    after, expected = (preferences(model, PROMPTS, CHOSEN, REJECTED).reference for model in (logits, Bigram(now)))
    np.testing.assert_allclose(after, expected, rtol=1e-6)
    assert np.abs(after - before).max() > 0.1


def test_padding_changes_neither_loss_nor_gradient():
    model, pair = decoder(), ([[3, 1]], [[4, 2]], [[5]])
    short, long = preferences(model, *pair), preferences(model, *pair, length=9)
    np.testing.assert_allclose(short.reference, long.reference, rtol=1e-5)
    loss = partial(preference_loss, beta=0.5)
    one, other = (eqx.filter_grad(loss)(model, batch) for batch in (short, long))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_new_tokens_come_first_and_change_nothing_else():
    model = decoder()
    larger = add_tokens(model, 3, key=KEY)
    assert larger.config.vocab_size == 14
    np.testing.assert_allclose(larger(IDS + 3)[..., 3:], model(IDS), rtol=1e-5, atol=1e-5)
    rows = np.asarray(larger.embedding.weight)
    np.testing.assert_allclose(rows[:3] - rows[3:].mean(axis=0), 0, atol=0.02)
    assert len(np.unique(rows[:3, 0])) == 3


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: answer_windows([[7, 1, 5], [7, 5]], 1), r"texts\[1\] has no token 1"),
        (lambda: answer_windows([[7, 5, 1]], 1), r"texts\[0\] ends with the token 1"),
        (lambda: answer_windows([[7, 1, 5, 4]], 1, length=2), r"texts\[0\] has 4 tokens, .*or take length=3, which"),
        (lambda: answer_windows([], 1), "texts is empty; expected at least one text"),
        (
            lambda: preferences(Bigram(TABLE), [[0, 1]], [[1]], [[2, 2, 2]], length=3),
            r"rejected\[0\] with its prompt has 5 tokens, .*expected at most 4 .*take length=4, which holds all",
        ),
        (lambda: preferences(Bigram(TABLE), [[0], [1]], [[1], [0, 3]], [[2], [2]]), r"chosen\[1\]\[1\] is 3; .*0 to 2"),
        (lambda: preferences(Bigram(TABLE), [[0], [1]], [[1], [0]], [[2], [7]]), r"rejected\[1\]\[0\] is 7; .*0 to 2"),
        (lambda: preferences(Bigram(TABLE).__call__, [[0]], [[1]], [[3]]), r"targets\[0, 0\] is 3; expected 0 to 2"),
        (lambda: continuation_windows([[0], [1]], [[1]]), r"prompts and texts have \[2, 1\] texts"),
        (lambda: continuation_windows([[0], [1]], [[1], []]), r"texts\[1\] is empty"),
        (lambda: preferences(Bigram(TABLE), [[0]], [[1]], [[]]), r"rejected\[0\] is empty"),
        (lambda: preferences(Bigram(TABLE), [[0]], [[1]], [[1]]), r"chosen\[0\] and rejected\[0\] are equal"),
        (lambda: preferences(Bigram(TABLE), [[0], [1]], [[1]], [[2]]), r"have \[2, 1, 1\] texts"),
        (lambda: add_tokens(decoder(tied_embedding=False), 2, key=KEY), "has an output matrix of its own"),
        (
            lambda: add_tokens(add_adapters(decoder(), 2, key=KEY), 2, key=KEY),
            "has adapters; .*Use merge_adapters first",
        ),
    ],
)
def test_what_cannot_be_tuned_is_refused(call, says):
    with pytest.raises(ValueError, match=says):
        call()
