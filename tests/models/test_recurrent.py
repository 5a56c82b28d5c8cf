"""Recurrent models: each cell is its equation, each text starts anew, and to read on is to read."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_models import drawn

import plainformer as pf
from plainformer.models.recurrent import ElmanCell, RecurrentConfig, RecurrentModel

CELLS = ("rnn", "lstm", "gru")
each_cell = pytest.mark.parametrize("cell", CELLS)
VOCAB, WIDTH, SEQ = 11, 6, 7
TOKENS = jnp.asarray(np.random.default_rng(3).integers(VOCAB, size=(3, SEQ)))


def new_model(cell):
    """A model with all its parameters drawn: a bias of zero would hide a slip."""
    return drawn(RecurrentModel, RecurrentConfig(VOCAB, WIDTH, cell), 0)


def sigma(z):
    return 1 / (1 + np.exp(-z))


def wide(*arrays):
    return [np.asarray(array, np.float64) for array in arrays]


def rnn_by_hand(cell, x, state):
    input_weight, state_weight, bias = wide(cell.input_weight, cell.state_weight, cell.bias)
    return [np.tanh(x @ input_weight + state[0] @ state_weight + bias)]


def lstm_by_hand(cell, x, state):
    from_input, from_state, bias = wide(cell.weight_ih, cell.weight_hh, cell.bias)
    hidden, memory = state
    write, keep, candidate, show = np.split(from_input @ x + from_state @ hidden + bias, 4)
    memory = sigma(keep) * memory + sigma(write) * np.tanh(candidate)
    return [sigma(show) * np.tanh(memory), memory]


def gru_by_hand(cell, x, state):
    from_input, from_state, bias, own_bias = wide(cell.weight_ih, cell.weight_hh, cell.bias, cell.bias_n)
    (hidden,) = state
    reset, keep, candidate = np.split(from_input @ x + bias, 3)
    reset_by, keep_by, candidate_by = np.split(from_state @ hidden, 3)
    proposed = np.tanh(candidate + sigma(reset + reset_by) * (candidate_by + own_bias))
    share = sigma(keep + keep_by)
    return [share * hidden + (1 - share) * proposed]


STEPS = {"rnn": rnn_by_hand, "lstm": lstm_by_hand, "gru": gru_by_hand}


@pytest.mark.equation("eq-relations-rnn", "eq-relations-lstm", "eq-relations-gru")
@each_cell
def test_model_agrees_with_its_equations_in_float64(cell):
    model = new_model(cell)
    table, output, bias = wide(model.embedding.weight, model.output.weight, model.output.bias)
    found = model(TOKENS)
    for text, logits in zip(TOKENS, found, strict=True):
        state = [np.zeros(WIDTH)] * (2 if cell == "lstm" else 1)
        for token, row in zip(text, logits, strict=True):
            state = STEPS[cell](model.cell, table[token], state)
            np.testing.assert_allclose(row, state[0] @ output + bias, atol=1e-5)


@each_cell
def test_reading_on_is_reading_the_whole(cell):
    model = new_model(cell)
    first, state = model.extend(TOKENS[:, :4], model.start((3,)))
    second, state = model.extend(TOKENS[:, 4:], state)
    rows, end = model.extend(TOKENS, model.start((3,)))
    np.testing.assert_allclose(jnp.concatenate([first, second], axis=1), rows, atol=1e-6)
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, atol=1e-6), state, end)
    np.testing.assert_allclose(model.output(rows), model(TOKENS), atol=1e-6)


@each_cell
def test_every_text_starts_anew(cell):
    model = new_model(cell)
    alone = model(TOKENS[1])
    model(TOKENS[0])  # nothing of it is left
    np.testing.assert_allclose(model(TOKENS[1]), alone, atol=1e-6)
    np.testing.assert_allclose(model(TOKENS)[1], alone, atol=1e-6)  # nor of a text beside it
    _, state = model.extend(TOKENS[0], model.start())
    assert jnp.abs(model.output(model.extend(TOKENS[1], state)[0]) - alone).max() > 0.01
    assert all(not part.any() for part in jax.tree.leaves(model.start((2,))))


@pytest.mark.parametrize(("cell", "parts", "row"), [("lstm", 4, 1), ("gru", 3, 1)])
def test_the_gate_that_keeps_starts_open(cell, parts, row):
    model = RecurrentModel(RecurrentConfig(VOCAB, WIDTH, cell), key=jax.random.key(0))
    biases = model.cell.bias.reshape(parts, WIDTH)
    np.testing.assert_array_equal(biases, (np.arange(parts) == row)[:, None] * np.ones(WIDTH))
    # So a memory without any input lives on, and by more than half at each step.
    kept = eqx.tree_at(lambda cell: [cell.weight_ih, cell.weight_hh], model.cell, replace_fn=jnp.zeros_like)
    state = (jnp.zeros(WIDTH), jnp.ones(WIDTH)) if cell == "lstm" else jnp.ones(WIDTH)
    after = kept(jnp.ones(WIDTH), state)
    np.testing.assert_allclose(after[1] if cell == "lstm" else after, sigma(1.0), rtol=1e-6)


def test_the_plain_cell_starts_by_keeping_lengths():
    weight = ElmanCell(5, WIDTH, key=jax.random.key(0)).state_weight
    np.testing.assert_allclose(weight @ weight.T, np.eye(WIDTH), atol=1e-5)


def test_model_is_trained_by_fit():
    model = RecurrentModel(RecurrentConfig(VOCAB, WIDTH, "gru"), key=jax.random.key(0))
    text = np.tile(np.arange(VOCAB), 9)
    settings = pf.TrainingConfig(num_steps=60, learning_rate=0.03, warmup_steps=5)
    with jax.numpy_dtype_promotion("standard"):  # optax counts in integers
        batches = pf.data.random_windows(text, seq_len=8, batch_size=4)
        _, metrics = pf.fit(model, pf.training.next_token_loss, batches, settings, progress=False)
    assert metrics[-1]["loss"] < metrics[0]["loss"] / 2


def test_a_state_of_another_batch_or_cell_is_refused():
    model = new_model("lstm")
    for state in (model.start((2,)), new_model("gru").start((3,))):
        with pytest.raises(ValueError, match=r"state .*expected"):
            model.extend(TOKENS, state)
