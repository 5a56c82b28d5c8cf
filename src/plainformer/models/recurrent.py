"""Recurrent language models: a state of fixed size, rewritten at every token (chapter on relations)."""

import dataclasses
from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.checks import Positive, check_axes, check_fields, checked, says_where
from plainformer.tokens.tokens import Linear, TokenEmbedding, glorot_normal

State = jax.Array | tuple[jax.Array, jax.Array]


class ElmanCell(eqx.Module):
    r"""The plain recurrent step: a new state from a token and the state before it.

    Implements `eq-relations-rnn`; Elman (1990). The map from state to state starts orthogonal, so that it keeps
    lengths.

    Args:
        d_model: width of a token.
        d_state: width of the state.
        key: random key for the two matrices.
    """

    input_weight: Float[Array, "d_model d_state"]
    state_weight: Float[Array, "d_state d_state"]
    bias: Float[Array, " d_state"]

    @checked
    def __init__(self, d_model: Positive, d_state: Positive, *, key: PRNGKeyArray):
        input_key, state_key = jax.random.split(key)
        self.input_weight = glorot_normal(input_key, (d_model, d_state))
        self.state_weight = jax.nn.initializers.orthogonal()(state_key, (d_state, d_state))
        self.bias = jnp.zeros(d_state)

    @checked
    def __call__(self, x: Float[Array, " d_model"], state: Float[Array, " d_state"]) -> Float[Array, " d_state"]:
        """Return the state after one more token."""
        return jnp.tanh(x @ self.input_weight + state @ self.state_weight + self.bias)


@says_where
@dataclasses.dataclass(frozen=True)
class RecurrentConfig:
    """The size of a recurrent language model, and which of the three cells it has.

    Args:
        vocab_size: the number of tokens in the vocabulary.
        d_state: the width of tokens and state.
        cell: `"rnn"` for `ElmanCell`, `"lstm"` or `"gru"` for Equinox's cells of these names.
    """

    vocab_size: Positive
    d_state: Positive
    cell: Literal["rnn", "lstm", "gru"] = "lstm"

    def __post_init__(self):
        check_fields(self)


class RecurrentModel(eqx.Module):
    r"""A recurrent language model: one cell reads a text from left to right; its state says what comes next.

    Implements `eq-relations-rnn`, Elman (1990); `eq-relations-lstm`, Hochreiter and Schmidhuber (1997) with the gate of
    Gers et al. (2000) that forgets; or `eq-relations-gru`, Cho et al. (2014).

    Differs from the papers:
        The gate that keeps starts with a bias of one (Jozefowicz et al., 2015), and the GRU resets after the product
        with the state's matrix, which has a bias of its own there.
    """

    embedding: TokenEmbedding
    cell: Callable
    output: Linear
    config: RecurrentConfig = eqx.field(static=True)

    @checked
    def __init__(self, config: RecurrentConfig, *, key: PRNGKeyArray):
        embedding_key, cell_key, output_key = jax.random.split(key, 3)
        self.config, width = config, config.d_state
        self.embedding = TokenEmbedding(config.vocab_size, width, key=embedding_key)
        self.cell = CELLS[config.cell](width, cell_key)
        self.output = Linear(width, config.vocab_size, key=output_key)

    @checked
    def __call__(
        self, tokens: Integer[Array, "*batch seq"], *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "*batch seq vocab_size"]:
        """Return, at every token of a text, logits for the token that comes next; every text starts anew.

        The `key` is for the losses, which hand one to every model; nothing here is random.
        """
        return self.output(self.extend(tokens, self.start(tokens.shape[:-1]))[0])

    def start(self, batch: tuple[int, ...] = ()) -> State:
        """Return the state before the first token: zeros; for an LSTM, of the state and of the memory behind it."""
        zeros = jnp.zeros((*batch, self.config.d_state))
        return (zeros, zeros) if self.config.cell == "lstm" else zeros

    @checked
    def extend(
        self, tokens: Integer[Array, "*batch seq"], state: State
    ) -> tuple[Float[Array, "*batch seq d_state"], State]:
        """Read further tokens, from the state that `start` or an earlier call returned.

        Returns the state at each token, from which `output` makes logits, and the one to go on from.
        """
        if len(jax.tree.leaves(state)) != len(jax.tree.leaves(self.start())):
            raise ValueError(f"state is of another cell than {self.config.cell!r}; expected what start(…) returns.")
        for part in jax.tree.leaves(state):
            check_axes(
                "state",
                part,
                "Take it from start(tokens.shape[:-1]).",
                **{"*batch": tokens.shape[:-1]},
                d_state=self.config.d_state,
            )
        cell = self.cell
        for _ in tokens.shape[:-1]:
            cell = jax.vmap(cell)

        def step(state, x):
            state = cell(x, state)
            return state, state[0] if isinstance(state, tuple) else state

        state, rows = jax.lax.scan(step, state, jnp.moveaxis(self.embedding(tokens), -2, 0))
        return jnp.moveaxis(rows, 0, -2), state


def _lstm(width: int, key: PRNGKeyArray) -> eqx.nn.LSTMCell:
    cell = eqx.nn.LSTMCell(width, width, key=key)
    bias = jnp.zeros((4, width)).at[1].set(1.0)  # in Equinox: write, keep, candidate, show
    return eqx.tree_at(lambda cell: cell.bias, cell, bias.reshape(-1))


def _gru(width: int, key: PRNGKeyArray) -> eqx.nn.GRUCell:
    cell = eqx.nn.GRUCell(width, width, key=key)
    bias = jnp.zeros((3, width)).at[1].set(1.0)  # in Equinox: reset, keep, candidate
    return eqx.tree_at(lambda cell: (cell.bias, cell.bias_n), cell, (bias.reshape(-1), jnp.zeros(width)))


CELLS: dict[str, Callable] = {
    "rnn": lambda width, key: ElmanCell(width, width, key=key),
    "lstm": _lstm,
    "gru": _gru,
}
