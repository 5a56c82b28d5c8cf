"""Windows: equally long pieces of one long text, each with the tokens that follow its own."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int

from plainformer.checks import check_positive, check_token_ids


class Windows(NamedTuple):
    """Windows, `inputs`, and the same windows one token later, `targets`."""

    inputs: Int[Array, "windows seq"]
    targets: Int[Array, "windows seq"]


class PaddedWindows(NamedTuple):
    """Windows, `inputs`, and the same windows one token later, `targets`; both count where `is_token` is `True`."""

    inputs: Int[Array, "windows seq"]
    targets: Int[Array, "windows seq"]
    is_token: Bool[Array, "windows seq"]


def random_windows(tokens, seq_len: int, batch_size: int, *, seed: int = 0) -> Callable[[int], Windows]:
    r"""Make the function that draws a batch of windows from a text: the same batch for the same step, always.

    **Arguments**

    - `tokens`: the ids of the text, a list or an array, at least `seq_len + 1` of them.
    - `seq_len`, `batch_size`: tokens per window; windows per batch.
    - `seed`: for another sequence of batches, at least 0.

    **Returns** a function from a step, 0 or more, to inputs and targets, each `(batch_size, seq_len)`, int32: windows
    that start anywhere. It remembers nothing, so training can resume anywhere.

    **Raises** `ValueError` if the text is shorter than a window and its next token.
    """
    text = _long_enough(tokens, seq_len)
    check_positive(batch_size=batch_size)
    check_seed(seed)
    places = np.arange(seq_len)

    def batch_at(step: int) -> Windows:
        starts = np.random.default_rng([seed, step]).integers(len(text) - seq_len, size=(batch_size, 1))
        return Windows(jnp.asarray(text[starts + places]), jnp.asarray(text[starts + places + 1]))

    return batch_at


def consecutive_windows(tokens, seq_len: int) -> PaddedWindows:
    r"""Cut a text into windows side by side, so that every token but the first is a target exactly once.

    **Arguments** the ids of the text, at least `seq_len + 1` of them, and the number of tokens per window.

    **Returns** inputs, targets and `is_token`, each `(windows, seq_len)`; `is_token` is `False` where the last window
    is padded with zeros. **Raises** as `random_windows`.
    """
    text = _long_enough(tokens, seq_len)
    num_targets = len(text) - 1
    padded = np.pad(text, (0, -num_targets % seq_len))
    inputs, targets = padded[:-1].reshape(-1, seq_len), padded[1:].reshape(-1, seq_len)
    is_token = np.arange(inputs.size).reshape(inputs.shape) < num_targets
    return PaddedWindows(jnp.asarray(inputs), jnp.asarray(targets), jnp.asarray(is_token))


def check_seed(seed: int) -> None:
    """Raise `ValueError` unless NumPy can seed its random numbers with this."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed is {seed!r}; expected a whole number, at least 0.")


def _long_enough(tokens, seq_len: int) -> np.ndarray:
    check_positive(seq_len=seq_len)
    text = np.asarray(check_token_ids(tokens), np.int32)
    if len(text) < seq_len + 1:
        raise ValueError(
            f"The text has {len(text)} tokens; expected at least {seq_len + 1}, a window and the token after it. "
            "Use a longer text or a shorter window."
        )
    return text
