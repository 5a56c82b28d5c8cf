"""What a way to tell tokens where they stand has to do, and two that are simple: nothing, and a table."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.checks import Positive, check_axes, checked, refuse


class Place(NamedTuple):
    """Where in a model a position scheme shall act: for how many positions; whether keys lie in the past only; how many
    patches an image is high and wide; and whether there is a class token before them."""

    max_len: int
    causal: bool
    grid: tuple[int, int] | None = None
    class_token: bool = False


class PositionScheme(eqx.Module):
    r"""A way to tell tokens where they stand, by up to four methods; each does nothing unless a scheme says otherwise.

    Positions are whole numbers, `(*batch, seq)`, counted from 0. Three facts about a scheme stand in its class:

    - `can_slide`: whether only differences of positions matter, so that a window may slide over a text that is longer
      than what a model reads;
    - `acts_on_scores`: whether it changes the scores, which linear attention does not have;
    - `token_scale(d_model)`: by how much vectors of tokens are multiplied before it adds to them.
    """

    can_slide: ClassVar[bool] = False
    acts_on_scores: ClassVar[bool] = False

    @classmethod
    def check(cls, config) -> None:
        """Raise `ValueError` if the sizes in a `StackConfig` are none that this scheme can serve."""

    @classmethod
    def made_for(cls, config, place: Place, *, key: PRNGKeyArray) -> "PositionScheme":
        """Make the scheme for a model of a `StackConfig`."""
        return cls()

    def token_scale(self, d_model: int) -> float:
        """Return the factor on the vectors of a vocabulary: 1, or the root of `d_model` in `eq-positions-scale`."""
        return 1.0

    def embed(
        self, x: Float[Array, "*batch seq d_model"], positions: Integer[Array, "*#batch seq"] | None = None
    ) -> Float[Array, "*batch seq d_model"]:
        """Return the token vectors, before the first block, with what is added to them; `None` counts from 0."""
        return x

    def rotate(
        self, rows: Float[Array, "*batch seq d_k"], positions: Integer[Array, "*#batch seq"] | None = None
    ) -> Float[Array, "*batch seq d_k"]:
        """Return queries or keys, turned; `None` counts from 0."""
        return rows

    def bias(
        self, q_positions: Integer[Array, "*batch q_seq"], kv_positions: Integer[Array, "*batch kv_seq"]
    ) -> Float[Array, "*batch heads q_seq kv_seq"] | None:
        """Return what is added to the scores of each head; `None` for nothing."""
        return None

    def sees(
        self, q_positions: Integer[Array, "*batch q_seq"], kv_positions: Integer[Array, "*batch kv_seq"]
    ) -> Bool[Array, "*batch q_seq kv_seq"] | None:
        """Say which keys are near enough to be attended to; `None` for all."""
        return None


class NoPositions(PositionScheme):
    """Tell tokens nothing of where they stand."""

    can_slide = True


NO_POSITIONS = NoPositions()


def add_positions(
    x: Float[Array, "*batch seq d_model"], scheme: PositionScheme, positions: Integer[Array, "*batch seq"] | None = None
) -> Float[Array, "*batch seq d_model"]:
    r"""Return tokens' vectors, scaled, with what the scheme adds to them.

    Implements `eq-positions-scale`; Vaswani et al. (2017), section 3.4, for sinusoidal positions, whose codes would
    otherwise drown the vectors; for all others the scale is 1.
    """
    scale = scheme.token_scale(x.shape[-1])
    return embed_by(scheme, x if scale == 1 else x * scale, positions)


def embed_by(
    scheme: PositionScheme, x: Float[Array, "*batch seq d_model"], positions: Integer[Array, "*batch seq"] | None = None
) -> Float[Array, "*batch seq d_model"]:
    """Return what a scheme makes of the rows that enter a model; raise `ValueError` if that is of another shape."""
    return _alike(scheme, "embed", scheme.embed(x, positions), x)


def rotate_by(
    scheme: PositionScheme, rows: Float[Array, "*batch seq d_k"], positions: Integer[Array, "*#batch seq"] | None = None
) -> Float[Array, "*batch seq d_k"]:
    """Return what a scheme makes of queries or keys; raise `ValueError` if that is of another shape."""
    return _alike(scheme, "rotate", scheme.rotate(rows, positions), rows)


def bias_of(
    scheme: PositionScheme,
    q_positions: Integer[Array, "*batch q_seq"],
    kv_positions: Integer[Array, "*batch kv_seq"],
    num_heads: int,
) -> Float[Array, "*batch heads q_seq kv_seq"] | None:
    """Return what a scheme adds to the scores of each head; raise `ValueError` if it is made for other heads."""
    bias = scheme.bias(q_positions, kv_positions)
    if bias is not None:
        name, hint = f"The bias of {type(scheme).__name__}", f"Make it for the {num_heads} heads here."
        axes = {"*batch": None, "heads": num_heads, "q_seq": q_positions.shape[-1], "kv_seq": kv_positions.shape[-1]}
        check_axes(name, bias, hint, **axes)
        if not jnp.issubdtype(bias.dtype, jnp.floating):
            raise TypeError(f"{name} holds {bias.dtype}; expected floats. To hide keys, say so by the method `sees`.")
    return bias


def near_keys(
    scheme: PositionScheme, q_positions: Integer[Array, "*batch q_seq"], kv_positions: Integer[Array, "*batch kv_seq"]
) -> Bool[Array, "*batch q_seq kv_seq"] | None:
    """Return which keys a scheme lets each query see, `None` for all; raise `TypeError` if it is no such table."""
    near = scheme.sees(q_positions, kv_positions)
    if near is not None:
        name = f"What {type(scheme).__name__} sees"
        axes = {"*batch": None, "q_seq": q_positions.shape[-1], "kv_seq": kv_positions.shape[-1]}
        check_axes(name, near, "", **axes)
        if near.dtype != bool:
            raise TypeError(f"{name} holds {near.dtype}; expected Booleans, True where a key is near enough.")
    return near


def _alike(scheme: PositionScheme, method: str, result, rows):
    """What a method of a scheme returned, which has the shape and the dtype of what it was given."""
    found = (getattr(result, "shape", None), getattr(result, "dtype", None))
    if found != (rows.shape, rows.dtype):
        raise ValueError(
            f"{type(scheme).__name__}.{method} returned shape {found[0]} and dtype {found[1]}; expected "
            f"{rows.shape} and {rows.dtype}, as it was given."
        )
    return result


def positions_of(x: Float[Array, "*batch seq d"], positions) -> Integer[Array, "*#batch seq"]:
    """Return a position for each row: 0, 1, 2, … unless others are given, and signed, since they are subtracted."""
    return jnp.arange(x.shape[-2]) if positions is None else positions.astype(int)


def places_in(documents: Integer[Array, "*batch seq"]) -> Integer[Array, "*batch seq"]:
    """Return the position of each token, counted from 0 in every run of tokens of one document."""
    places = jnp.arange(documents.shape[-1])
    begins = jnp.diff(documents, axis=-1, prepend=documents[..., :1]) != 0
    return places - jax.lax.cummax(jnp.where(begins, places, 0), axis=documents.ndim - 1)


def offsets(
    q_positions: Integer[Array, "*batch q_seq"], kv_positions: Integer[Array, "*batch kv_seq"]
) -> Integer[Array, "*batch q_seq kv_seq"]:
    """Return, from each query to each key, how many positions to the right."""
    return kv_positions.astype(int)[..., None, :] - q_positions.astype(int)[..., :, None]


class LearnedPositions(PositionScheme):
    r"""One learned vector per position, added to the token vectors.

    Implements `eq-positions-learned`, and by it `eq-positions-embed`; Gehring et al. (2017), section 3.1.

    Args:
        max_len: for how many positions there is a vector.
        d_model: width of a token.
        key: random key for the table (normal, standard deviation 0.02).
    """

    table: Float[Array, "max_len d_model"]

    @checked
    def __init__(self, max_len: Positive, d_model: Positive, *, key: PRNGKeyArray):
        self.table = 0.02 * jax.random.normal(key, (max_len, d_model))

    @classmethod
    def made_for(cls, config, place: Place, *, key: PRNGKeyArray) -> "LearnedPositions":
        """Make a table with a row for each position."""
        return cls(place.max_len, config.d_model, key=key)

    @checked
    def embed(
        self, x: Float[Array, "*batch seq d_model"], positions: Integer[Array, "*#batch seq"] | None = None
    ) -> Float[Array, "*batch seq d_model"]:
        """Add to each row of `x` the vector of its position; raise `ValueError` for one outside the table."""
        max_len, seq = len(self.table), x.shape[-2]
        expected = f"0 to {max_len - 1}. The table has a vector for these; make it longer."
        if positions is None:
            refuse(np.arange(seq), np.arange(seq) >= max_len, "positions", expected)
            return x + self.table[:seq].astype(x.dtype)
        positions = refuse(positions, (positions < 0) | (positions >= max_len), "positions", expected)
        return x + self.table[positions].astype(x.dtype)
