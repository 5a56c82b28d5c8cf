"""Writing only what a pattern allows: an automaton over tokens, and the mask that it makes (chapter on serving)."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from plainformer.checks import Natural, checked
from plainformer.generation import patterns
from plainformer.tokens.bpe import BytePairEncoder
from plainformer.tokens.vocabulary import Vocabulary

MOST_STATES = 2000  # rows of a table that has a column for each token
MOST_LEFT = 20_000  # sequences in all of them, each of which is read on with every token


class AllowedTexts(eqx.Module):
    """An automaton that reads tokens: which state comes after which token, and where none may come, -1.

    It begins in state 0, and is an `adjust` for `generate`, `translate` and `beam_search`. `allowed_texts` makes one
    from a pattern.

    Args:
        next_state: the state after each token.
    """

    next_state: Int[Array, "states vocab_size"]

    @checked
    def __init__(self, next_state: Int[Array, "states vocab_size"]):
        self.next_state = next_state

    @checked
    def state(self, written: Int[Array, " seq"]) -> Int[Array, ""]:
        """Return the state after what was written, -1 where there is nothing; -1 if it is not allowed."""

        def step(state, token):
            after = jnp.where(state < 0, -1, self.next_state[state, token])
            return jnp.where(token < 0, state, after), None

        return jax.lax.scan(step, jnp.zeros((), self.next_state.dtype), written)[0]

    @checked
    def allowed(self, written: Int[Array, " seq"]) -> Bool[Array, " vocab_size"]:
        """Say which tokens may come next."""
        state = self.state(written)
        return (self.next_state[state] >= 0) & (state >= 0)

    @checked
    def __call__(
        self, logits: Float[Array, " vocab_size"], prompt: Int[Array, " prompt"], written: Int[Array, " seq"]
    ) -> Float[Array, " vocab_size"]:
        r"""Put -inf in place of the logits of all tokens that may not come next.

        Implements `eq-serving-allowed`: what softmax makes of them is the model's distribution among the allowed
        tokens.
        """
        return jnp.where(self.allowed(written), logits, -jnp.inf)


@checked
def allowed_texts(pattern: str, tokenizer: Vocabulary | BytePairEncoder, stop_token: Natural) -> AllowedTexts:
    r"""Make the automaton of all texts that match a pattern as a whole, token by token, and end with the stop token.

    A state is what is left of the pattern (Brzozowski, 1964; Antimirov, 1996). From each of them the pattern can still
    be matched, so that at least one token may always come next; behind the stop token, only that token again. Put it
    among the `stop_tokens` of `generate`, too. A text that reaches `max_new_tokens` is cut, as always.

    Args:
        pattern: characters, and of Python's `re` the signs `.`, `[a-z]`, `[^a-z]`, `\d`, `\w`, `\s`, `( )`, `|`, `*`,
            `+`, `?`, `{2}` and `{2,5}`.
        tokenizer: the one that the model was trained with. A token that cuts a character in two is never allowed.
        stop_token: the id that ends a text; it is not allowed within.

    Example:
        A name may be one letter or more; the stop token may not come first.

        >>> tokenizer = pf.Vocabulary("ab", special=["<stop>"])
        >>> allowed = pf.generation.allowed_texts("a+", tokenizer, stop_token=0)
        >>> print(allowed.allowed(jnp.array([-1])), allowed.allowed(jnp.array([1])))
        [False  True False] [ True  True False]
    """
    _check_texts(tokenizer, stop_token)
    pieces = {token: piece for token, piece in _pieces(tokenizer).items() if token != stop_token}
    separator = getattr(tokenizer, "separator", "")
    alphabet = {character for piece in [*pieces.values(), separator] for character in piece} - {"\ufffd"}
    begin = (True, frozenset([patterns.parse_pattern(pattern, alphabet)]))
    states, moves = {begin: 0}, list[dict[int, int]]()
    for is_first, state in _as_found(states):
        found = {}
        for token, piece in pieces.items():
            left = _read(state, piece if is_first else separator + piece)
            if left:
                found[token] = states.setdefault((False, left), len(states))
        moves.append(found)
    ends = np.array([any(map(patterns.can_be_empty, state)) for _, state in states])
    return AllowedTexts(jnp.asarray(_table(moves, ends, len(tokenizer), stop_token, pattern)))


def _as_found(states: dict):
    """Go through a dictionary to which keys are added on the way."""
    place, held = 0, 0
    while place < len(states):
        key = next(itertools.islice(states, place, None))
        place, held = place + 1, held + len(key[1])
        if len(states) > MOST_STATES or held > MOST_LEFT:
            raise ValueError(
                f"The pattern needs more than {MOST_STATES} states, or of too many parts; expected a shorter one: "
                "count less."
            )
        yield key


def _table(moves: list[dict[int, int]], ends, vocab_size: int, stop_token: int, pattern: str) -> np.ndarray:
    """The moves as a table, without those from which the text can never end; behind the stop token, the last state."""
    can_end = ends.copy()
    before = ~can_end
    while (can_end != before).any():
        before = can_end.copy()
        can_end |= [any(before[state] for state in found.values()) for found in moves]
    if not can_end[0]:
        raise ValueError(
            f"The pattern {pattern!r} allows no text of these {vocab_size} tokens; expected one that some text of the "
            "tokenizer matches. Does it ask for a character that no token has?"
        )
    table = np.full((len(moves) + 1, vocab_size), -1, np.int32)
    for state, found in enumerate(moves):
        for token, after in found.items():
            table[state, token] = after if can_end[after] else -1
    table[:-1][ends, stop_token] = table[-1, stop_token] = len(moves)
    return table


def _read(state: frozenset, text: str) -> frozenset:
    """What is left of the sequences of a state after a text."""
    for character in text:
        left = (patterns.left_after(sequence, character) for sequence in state)
        state = patterns.without_fewer(itertools.chain.from_iterable(left))
    return state


def _pieces(tokenizer) -> dict[int, str]:
    """The text of each token but the special ones and the empty."""
    special = set(tokenizer.special.values())
    pieces = {token: tokenizer.decode([token]) for token in range(len(tokenizer)) if token not in special}
    return {token: piece for token, piece in pieces.items() if piece}


def _check_texts(tokenizer, stop_token: int) -> None:
    """Raise unless this is a tokenizer whose tokens have texts of their own, and one of its ids."""
    if not isinstance(tokenizer, Vocabulary | BytePairEncoder):
        what = type(tokenizer).__name__
        raise TypeError(f"tokenizer is of type {what}; expected a Vocabulary or a BytePairEncoder.")
    if stop_token >= len(tokenizer):
        raise ValueError(f"stop_token is {stop_token}; expected an id below {len(tokenizer)}, the number of tokens.")
