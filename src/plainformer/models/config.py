"""What all models have in common: the configuration of a stack of blocks (chapters 06 to 09)."""

import dataclasses

from plainformer.attention.multi_head import check_heads, check_width
from plainformer.blocks.blocks import NORM_PLACEMENTS
from plainformer.blocks.layers import ACTIVATIONS, check_eps
from plainformer.checks import check_choice, check_flags, check_fraction, check_positive
from plainformer.positions.sinusoidal import check_base

NORMS = ("layer", "rms")
POSITION_SCHEMES = ("learned", "sinusoidal", "sinusoidal_2d", "rotary", "relative", "alibi", "none")


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackConfig:
    r"""All that makes a stack of transformer blocks what it is, but for its learned numbers.

    **Arguments**

    - `d_model`, `num_layers`, `num_heads`: width of a token; number of blocks; attention heads in each.
    - `num_kv_heads`: heads for keys and values, a divisor of `num_heads`; `None` for as many.
    - `d_ff`: inner width of the token-wise networks; `None` for `4 * d_model`.
    - `norm`, `norm_eps`: `"layer"` or `"rms"`, and what it adds to the variance.
    - `norm_placement`: `"pre"` normalises what enters a sublayer, `"post"` what leaves the sum.
    - `activation`: `"relu"`, `"gelu"`, `"gelu_tanh"`, `"silu"`, or `"swiglu"` for networks with a gate and no bias.
    - `position_scheme`: one of `POSITION_SCHEMES`; `"sinusoidal_2d"` is for images.
    - `rope_theta`: the base of rotary positions.
    - `dropout_rate`: the probability with which an entry is dropped while training, after the embedding and in blocks.
    - `use_bias`: whether linear maps and layer norms have a bias.

    **Raises** `ValueError` if one of them is out of range; `TypeError` if it is not of its kind.
    """

    d_model: int = 128
    num_layers: int = 4
    num_heads: int = 4
    num_kv_heads: int | None = None
    d_ff: int | None = None
    norm: str = "layer"
    norm_eps: float = 1e-5
    norm_placement: str = "pre"
    activation: str = "gelu"
    position_scheme: str = "learned"
    rope_theta: float = 10_000.0
    dropout_rate: float = 0.0
    use_bias: bool = True

    def __post_init__(self):
        check_width(self.d_model, self.num_heads)
        check_heads(self.num_heads, self.num_heads if self.num_kv_heads is None else self.num_kv_heads)
        check_positive(num_layers=self.num_layers, d_ff=self.inner_width)
        check_choice("norm", self.norm, NORMS)
        check_choice("norm_placement", self.norm_placement, NORM_PLACEMENTS)
        check_choice("activation", self.activation, (*ACTIVATIONS, "swiglu"))
        check_choice("position_scheme", self.position_scheme, POSITION_SCHEMES)
        check_eps(self.norm_eps)
        check_base(self.rope_theta)
        check_fraction(dropout_rate=self.dropout_rate)
        check_flags(use_bias=self.use_bias)
        self._check_pairs()

    def _check_pairs(self) -> None:
        """Raise `ValueError` unless the scheme of positions can take columns in pairs, where it does so."""
        if self.position_scheme == "rotary" and (self.d_model // self.num_heads) % 2:
            raise ValueError(
                f"d_model={self.d_model} by num_heads={self.num_heads} is odd; expected an even width of each head for "
                "rotary positions, which turn columns in pairs."
            )
        if self.d_model % (multiple := {"sinusoidal": 2, "sinusoidal_2d": 4}.get(self.position_scheme, 1)):
            raise ValueError(
                f"d_model is {self.d_model}; expected a multiple of {multiple} for position_scheme="
                f"{self.position_scheme!r}, whose codes fill columns in pairs."
            )

    @property
    def inner_width(self) -> int:
        """Inner width of the token-wise networks."""
        return 4 * self.d_model if self.d_ff is None else self.d_ff
