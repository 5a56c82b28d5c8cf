"""Places in a grid of patches: one sinusoidal code for the row, one for the column (chapter on vision)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer, PRNGKeyArray

from plainformer.checks import Positive, check_axes, check_each, checked, ids_in_range
from plainformer.positions.positions import Place, PositionScheme
from plainformer.positions.sinusoidal import check_multiple, sinusoidal_positions


@checked
def sinusoidal_positions_2d(
    grid_height: Positive, grid_width: Positive, d_model: Positive
) -> Float[Array, "num_patches d_model"]:
    r"""Describe each place of a grid by two sinusoidal codes side by side: that of its row, and that of its column.

    Implements `eq-vision-sinusoid-2d`; Beyer et al. (2022), section 2, in the order of columns of Vaswani et al.
    (2017), section 3.5.

    Args:
        grid_height, grid_width: how many patches the grid is high and wide.
        d_model: width of a token, a multiple of 4: the row has one half of it, the column the other, both in pairs.

    Returns:
        One code per patch, in reading order.
    """
    if d_model % 4:
        raise ValueError(
            f"d_model is {d_model}; expected a multiple of 4: rows and columns of patches each have one half, in pairs."
        )
    rows = jnp.repeat(sinusoidal_positions(jnp.arange(grid_height), d_model // 2), grid_width, axis=0)
    columns = jnp.tile(sinusoidal_positions(jnp.arange(grid_width), d_model // 2), (grid_height, 1))
    return jnp.concatenate([rows, columns], axis=1)


class GridPositions(PositionScheme):
    r"""Two-dimensional sinusoidal codes, added to the embeddings of patches, but not to a class token before them.

    Implements `eq-vision-sinusoid-2d`; without learned numbers.

    Args:
        grid_height, grid_width, d_model: as for `sinusoidal_positions_2d`.
        class_token: whether there is one.
    """

    grid_height: int = eqx.field(static=True)
    grid_width: int = eqx.field(static=True)
    d_model: int = eqx.field(static=True)
    class_token: bool = eqx.field(static=True)

    def __check_init__(self):
        check_each(Positive, grid_height=self.grid_height, grid_width=self.grid_width, d_model=self.d_model)

    @classmethod
    def check(cls, config) -> None:
        """Raise `ValueError` unless rows and columns of patches each have pairs of columns."""
        check_multiple(config, 4)

    @classmethod
    def made_for(cls, config, place: Place, *, key: PRNGKeyArray) -> "GridPositions":
        """Make the codes of a grid of patches; raise `ValueError` where there is none."""
        if place.grid is None:
            raise ValueError("position_scheme 'sinusoidal_2d' is for images, as in ViT; expected one for sequences.")
        return cls(*place.grid, config.d_model, place.class_token)

    @checked
    def embed(
        self, x: Float[Array, "*batch seq d_model"], positions: Integer[Array, "*#batch seq"] | None = None
    ) -> Float[Array, "*batch seq d_model"]:
        """Add to each row of `x` the code of its place among class token, if there is one, and patches."""
        codes = sinusoidal_positions_2d(self.grid_height, self.grid_width, self.d_model).astype(x.dtype)
        if self.class_token:
            codes = jnp.concatenate([jnp.zeros((1, self.d_model), x.dtype), codes])
        if positions is None:
            hint = f"One row for each of {self.grid_height} x {self.grid_width} patches" + (
                ", and one for the class token." if self.class_token else "."
            )
            check_axes("x", x, hint, **{"*batch": None}, seq=len(codes), d_model=self.d_model)
            return x + codes
        return x + codes[ids_in_range(positions, len(codes), "positions", of="places", hint="")]
