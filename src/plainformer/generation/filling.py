"""Writing by filling holes: guess all of them, keep the surest guesses, and again (chapter on the encoder)."""

from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Integer, PRNGKeyArray

from plainformer.attention.self_attention import at_least_float32
from plainformer.checks import Natural, NonNegative, Positive, checked, ids_in_range
from plainformer.generation.sampling import FLOAT32_MAX, at_temperature

tempered = jnp.vectorize(at_temperature, signature="(vocab_size),()->(vocab_size)")


@checked
def fill_holes(
    model: Callable,
    ids: Integer[Array, "*batch seq"],
    rounds: Positive,
    is_token: Bool[Array, "*batch seq"] | None = None,
    *,
    mask_token: Natural,
    first_ordinary: Natural = 0,
    order: Literal["surest", "random", "left"] = "surest",
    temperature: NonNegative = 1.0,
    key: PRNGKeyArray,
) -> Integer[Array, "rounds *batch seq"]:
    r"""Write where a text has holes, in rounds: draw a token for every hole, keep some of them, empty the others again.

    Implements `eq-encoder-filling`: as many holes in every round, up to rounding. With the surest tokens kept, this is
    mask-predict (Ghazvininejad et al., 2019) and MaskGIT (Chang et al., 2022, section 3.2); with random ones, a masked
    diffusion model that writes (Sahoo et al., 2024, section 3.2).

    Args:
        model: from ids and `is_token` to logits, `(*batch, seq, vocab_size)`, such as a `MaskedLanguageModel`.
        ids: texts with holes; all else in them stays.
        rounds: how often the model reads. In a text with fewer holes nothing is filled in some of the rounds.
        is_token: `False` for padding, which has no holes; `None` for no padding.
        mask_token: the id that stands for a hole, and is never drawn.
        first_ordinary: ids below this one are special, and never drawn.
        order: what is kept of the drawn tokens: the `"surest"`, those to which the model gives the largest probability;
            `"random"` ones; or those of the holes on the `"left"`.
        temperature: what logits are divided by. At 0 the likeliest token is taken.
        key: random key.

    Returns:
        The texts after each round, int32. Those after the last one have no holes.

    Differs from the papers:
        What was kept is never drawn again, as in MaskGIT; mask-predict empties what has become doubtful, too. All
        rounds fill equally many; in MaskGIT few at first, then more. Its confidence has noise added, and here has none.

    Raises:
        ValueError: if no text has a hole, or an id is out of range.

    Example:
        A model that is sure of a 2 on the left, and finds a 1 or a 2 likely on the right.

        >>> logits = jnp.log(jnp.asarray([[1.0, 1.0, 98.0], [0.0, 1.0, 1.0]]))
        >>> holes = jnp.asarray([0, 0])
        >>> written = pf.fill_holes(lambda *_: logits, holes, 2, mask_token=0, key=jax.random.key(0))
        >>> written.tolist()
        [[2, 0], [2, 2]]
    """
    ordinary = _ordinary(model, ids, is_token, mask_token, first_ordinary)
    texts, dividing, written = jnp.asarray(ids, jnp.int32), jnp.asarray(min(temperature, FLOAT32_MAX), float), []
    counts = np.asarray(_holes(texts, is_token, mask_token).sum(axis=-1), np.int64)
    if not counts.any():
        raise ValueError(f"ids has no mask_token, which is {mask_token}, to be filled; expected a hole in some text.")
    for number in range(1, rounds + 1):
        left = counts * (rounds - number) // rounds
        round_key = jax.random.fold_in(key, number)
        texts = fill_once(model, texts, is_token, mask_token, ordinary, left, order, dividing, round_key)
        written.append(texts)
    return jnp.stack(written)


@eqx.filter_jit
def fill_once(model, texts, is_token, mask_token, ordinary, left, order: str, temperature, key):
    """Fill holes in one round, after which each text has as many as are `left`."""
    draw_key, order_key = jax.random.split(key)
    logits = jnp.where(ordinary, at_least_float32(model(texts, is_token)), -jnp.inf)
    drawn = jax.random.categorical(draw_key, tempered(logits, temperature)).astype(jnp.int32)
    scores = jnp.take_along_axis(jax.nn.log_softmax(logits), drawn[..., None], axis=-1)[..., 0]
    if order == "random":
        scores = jax.random.uniform(order_key, texts.shape)
    elif order == "left":
        scores = jnp.broadcast_to(-jnp.arange(texts.shape[-1], dtype=float), texts.shape)
    holes = _holes(texts, is_token, mask_token)
    places = jnp.where(holes, scores, -jnp.inf).argsort(axis=-1, descending=True).argsort(axis=-1)
    return jnp.where(holes & (places < (holes.sum(axis=-1) - left)[..., None]), drawn, texts)


def _holes(texts, is_token, mask_token) -> Bool[Array, "*batch seq"]:
    """Where there is something to fill."""
    return (texts == mask_token) & (True if is_token is None else is_token)


def _ordinary(model: Callable, ids, is_token, mask_token: int, first_ordinary: int) -> Bool[Array, " vocab_size"]:
    """Which tokens may be drawn, of as many as the model has logits for; raise `ValueError` for ids that are none."""
    logits = eqx.filter_eval_shape(model, ids, is_token)
    if getattr(logits, "shape", ())[:-1] != ids.shape:
        what = f"an array of shape {logits.shape}" if hasattr(logits, "shape") else f"a {type(logits).__name__}"
        shape = ", ".join(map(str, (*ids.shape, "vocab_size")))
        raise ValueError(f"model makes {what} of ids; expected logits of shape ({shape}).")
    vocab_size = logits.shape[-1]
    ids_in_range(np.asarray(ids), vocab_size)
    for name, token in {"mask_token": mask_token, "first_ordinary": first_ordinary}.items():
        ids_in_range(np.asarray(token), vocab_size, name, hint="")
    ordinary = (np.arange(vocab_size) >= first_ordinary) & (np.arange(vocab_size) != mask_token)
    if not ordinary.any():
        raise ValueError(f"first_ordinary is {first_ordinary}, so that no token may be drawn; expected less.")
    return jnp.asarray(ordinary)
