"""Windows: equally long pieces of one long text, each with the tokens that follow its own."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from plainformer.checks import Natural, Positive, checked
from plainformer.data.lists import check_token_ids


class Windows(NamedTuple):
    """Windows, `inputs`, and the same windows one token later, `targets`."""

    inputs: Int[Array, "windows seq"]
    targets: Int[Array, "windows seq"]


class PaddedWindows(NamedTuple):
    """Windows, `inputs`, and the same windows one token later, `targets`; both count where `is_token` is `True`."""

    inputs: Int[Array, "windows seq"]
    targets: Int[Array, "windows seq"]
    is_token: Bool[Array, "windows seq"]


@checked
def random_windows(tokens, seq_len: Positive, batch_size: Positive, *, seed: Natural = 0) -> Callable[[int], Windows]:
    """Make the function that draws a batch of windows from a text: the same batch for the same step, always.

    The `tokens` are the ids of the text, a list or an array, at least `seq_len + 1` of them; windows start anywhere in
    it. The function, from a step, 0 or more, remembers nothing, so training can resume anywhere.
    """
    text = _long_enough(tokens, seq_len)
    places = np.arange(seq_len)

    def batch_at(step: int) -> Windows:
        starts = np.random.default_rng([seed, step]).integers(len(text) - seq_len, size=(batch_size, 1))
        return Windows(jnp.asarray(text[starts + places]), jnp.asarray(text[starts + places + 1]))

    return batch_at


@checked
def consecutive_windows(tokens, seq_len: Positive) -> PaddedWindows:
    """Cut a text into windows side by side, so that every token but the first is a target exactly once.

    Arguments as for `random_windows`; `is_token` is `False` where the last window is padded with zeros.
    """
    text = _long_enough(tokens, seq_len)
    num_targets = len(text) - 1
    padded = np.pad(text, (0, -num_targets % seq_len))
    inputs, targets = padded[:-1].reshape(-1, seq_len), padded[1:].reshape(-1, seq_len)
    is_token = np.arange(inputs.size).reshape(inputs.shape) < num_targets
    return PaddedWindows(jnp.asarray(inputs), jnp.asarray(targets), jnp.asarray(is_token))


def _long_enough(tokens, seq_len: int) -> np.ndarray:
    text = np.asarray(check_token_ids(tokens), np.int32)
    if len(text) < seq_len + 1:
        expected = f"at least {seq_len + 1}, a window and the token after it"
        raise ValueError(f"The text has {len(text)} tokens; expected {expected}. Use a longer text or shorter windows.")
    return text
