"""Transformers for trajectories, some of which keep volumes (chapter on dynamics)."""

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from plainformer.attention.self_attention import softmax
from plainformer.blocks.blocks import Wiring
from plainformer.checks import Number, Positive, check_batch, check_fields, checked, says_where
from plainformer.models.config import StackConfig, make_block
from plainformer.positions.positions import LearnedPositions
from plainformer.tokens.tokens import Linear, normal

Several = Annotated[int, Number(lambda n: 2 <= n < 2**30, "at least 2: one number alone can read no other", whole=True)]


@checked
def bilinear_scores(
    x: Float[Array, "*batch seq d_model"], form: Float[Array, "d_model d_model"]
) -> Float[Array, "*batch seq seq"]:
    r"""Compare all rows with all rows by one square matrix: row n, as query, with column m, as key.

    Implements `eq-dynamics-bilinear`; Brantner et al. (2024), section 3, who write it in columns, transposed.
    """
    return x @ form @ x.mT


@checked
def cayley(scores: Float[Array, "*batch seq seq"]) -> Float[Array, "*batch seq seq"]:
    r"""Turn a skew-symmetric matrix into an orthogonal one.

    Implements `eq-dynamics-cayley`; Hairer, Lubich and Wanner (2006), section IV.8, with the other sign.
    """
    identity = jnp.eye(scores.shape[-1], dtype=scores.dtype)
    return jnp.linalg.solve(identity + scores, identity - scores)  # the two factors commute


def above_diagonal(entries: Float[Array, "*batch pairs"], size: int) -> Float[Array, "*batch size size"]:
    """Return the square matrix with these entries above its diagonal, row by row, and zeros elsewhere."""
    empty = jnp.zeros((*entries.shape[:-1], size, size), entries.dtype)
    return empty.at[..., *jnp.triu_indices(size, 1)].set(entries)


def _drawn(key, *shape: int) -> Array:
    """First weights, which leave a layer near the identity."""
    return 0.3 * normal(key, shape)


class BilinearAttention(eqx.Module):
    r"""Attention with one learned square matrix in the middle, a softmax, and the rows themselves as values.

    Implements `eq-dynamics-softmax`; Brantner et al. (2024), section 3.
    """

    form: Float[Array, "d_model d_model"]

    @checked
    def __init__(self, d_model: Several, *, key: PRNGKeyArray):
        self.form = _drawn(key, d_model, d_model)

    @checked
    def __call__(self, x: Float[Array, "*batch seq d_model"]) -> Float[Array, "*batch seq d_model"]:
        """Return a weighted average of the rows for each row."""
        return softmax(bilinear_scores(x, self.form)) @ x


class VolumePreservingAttention(eqx.Module):
    r"""Attention whose matrix of weights is orthogonal, so that the map of the whole window keeps volumes.

    Implements `eq-dynamics-attention`; Brantner et al. (2024), section 4. Learned are the numbers above the diagonal of
    a skew-symmetric matrix. There is one head, and no skip around it.
    """

    entries: Float[Array, " pairs"]
    d_model: int = eqx.field(static=True)

    @checked
    def __init__(self, d_model: Several, *, key: PRNGKeyArray):
        self.d_model, self.entries = d_model, _drawn(key, d_model * (d_model - 1) // 2)

    def weights(self, x: Float[Array, "*batch seq d_model"]) -> Float[Array, "*batch seq seq"]:
        """Return the orthogonal matrix that the rows are multiplied by."""
        above = above_diagonal(self.entries, self.d_model)
        return cayley(bilinear_scores(x, above - above.T))

    @checked
    def __call__(self, x: Float[Array, "*batch seq d_model"]) -> Float[Array, "*batch seq d_model"]:
        """Return the rows, mixed."""
        return self.weights(x) @ x


class ResidualLayer(eqx.Module):
    r"""A row and what a square matrix and tanh make of it.

    Implements `eq-dynamics-residual`; Brantner et al. (2024), section 3. Each number changes by less than 1.
    """

    weight: Float[Array, "d_model d_model"]
    bias: Float[Array, " d_model"]

    @checked
    def __init__(self, d_model: Several, *, key: PRNGKeyArray):
        self.weight, self.bias = _drawn(key, d_model, d_model), jnp.zeros(d_model)

    @checked
    def __call__(self, x: Float[Array, "*batch d_model"]) -> Float[Array, "*batch d_model"]:
        """Return each row after one step."""
        return x + jnp.tanh(x @ self.weight + self.bias)


class TriangularLayer(eqx.Module):
    r"""Two residual layers with triangular matrices, which keep volumes.

    Implements `eq-dynamics-triangular`; Brantner et al. (2024), section 4. In the first, each number of a row reads
    those before it; in the second, those after it. The diagonals are zero.
    """

    before: Float[Array, " pairs"]
    after: Float[Array, " pairs"]
    bias_before: Float[Array, " d_model"]
    bias_after: Float[Array, " d_model"]

    @checked
    def __init__(self, d_model: Several, *, key: PRNGKeyArray):
        self.before, self.after = _drawn(key, 2, d_model * (d_model - 1) // 2)
        self.bias_before = self.bias_after = jnp.zeros(d_model)

    @checked
    def __call__(self, x: Float[Array, "*batch d_model"]) -> Float[Array, "*batch d_model"]:
        """Return each row after both steps."""
        size = len(self.bias_before)
        x = x + jnp.tanh(x @ above_diagonal(self.before, size) + self.bias_before)
        return x + jnp.tanh(x @ above_diagonal(self.after, size).T + self.bias_after)


class TurningLayer(eqx.Module):
    r"""Each row is turned by a rotation of its own, which a small network makes of the row, so that its length stays.

    Implements `eq-dynamics-turning`. The numbers above the diagonal of the skew-symmetric matrix come from the network.
    """

    weight: Float[Array, "d_model width"]
    bias: Float[Array, " width"]
    readout: Float[Array, "width pairs"]

    @checked
    def __init__(self, d_model: Several, width: Positive, *, key: PRNGKeyArray):
        first, second = jax.random.split(key)
        self.weight, self.bias = _drawn(first, d_model, width), jnp.zeros(width)
        self.readout = _drawn(second, width, d_model * (d_model - 1) // 2)

    @checked
    def __call__(self, x: Float[Array, "*batch d_model"]) -> Float[Array, "*batch d_model"]:
        """Return each row, turned."""
        above = above_diagonal(jnp.tanh(x @ self.weight + self.bias) @ self.readout, x.shape[-1])
        return (x[..., None, :] @ cayley(above - above.mT))[..., 0, :]


class Places(eqx.Module):
    r"""A learned row is added to each row of a window, so that what follows knows which came first; volumes stay.

    Implements `eq-dynamics-places`; Gehring et al. (2017), section 3.1, do so with the places of words.
    """

    table: Float[Array, "seq d_model"]

    @checked
    def __init__(self, seq: Positive, d_model: Several, *, key: PRNGKeyArray):
        self.table = _drawn(key, seq, d_model)

    @checked
    def __call__(self, x: Float[Array, "*batch seq d_model"]) -> Float[Array, "*batch seq d_model"]:
        """Return the rows, moved."""
        return x + self.table


class Composition(eqx.Module):
    r"""Layers one after another, each with its own weights; the first of them acts first.

    Implements `eq-dynamics-composition`.
    """

    layers: tuple[Any, ...]

    def __call__(self, x: Float[Array, "*batch seq d_model"]) -> Float[Array, "*batch seq d_model"]:
        """Return what the last layer returns."""
        for layer in self.layers:
            x = layer(x)
        return x


@says_where
@dataclasses.dataclass(frozen=True, kw_only=True)
class TrajectoryConfig:
    """How wide and how deep the models are, and how many of each kind there are, which differ by their first weights.

    `num_layers` is that of one block; networks without attention have `num_layers_alone` in all, and `turning_width` is
    how many numbers the network of a turning layer has in between. `seq` is how many points a window has.
    """

    d_model: Several = 3
    seq: Positive = 3
    num_blocks: Positive = 3
    num_layers: Positive = 5
    num_layers_alone: Positive = 16
    turning_width: Positive = 27
    num_models: Positive = 5

    def __post_init__(self):
        check_fields(self)


class OrdinaryTransformer(eqx.Module):
    """Two blocks, eight wide, with learned places; what they say is added to the window."""

    first: Linear
    places: LearnedPositions
    blocks: tuple[Wiring, ...]
    last: Linear

    @checked
    def __init__(self, config: TrajectoryConfig, *, key: PRNGKeyArray):
        keys = jax.random.split(key, 5)
        stack = StackConfig(d_model=8, num_heads=2, d_ff=16, norm="rms", activation="swiglu", use_bias=False)
        self.first, self.last = Linear(config.d_model, 8, key=keys[0]), Linear(8, config.d_model, key=keys[1])
        self.places = LearnedPositions(config.seq, 8, key=keys[2])
        self.blocks = tuple(make_block(stack, key=key) for key in keys[3:])

    @checked
    def __call__(self, x: Float[Array, "*batch seq d_model"]) -> Float[Array, "*batch seq d_model"]:
        """Return the window that follows."""
        inside = self.places.embed(self.first(x))
        for block in self.blocks:
            inside = block(inside)
        return x + self.last(inside)


def _layers(make: Callable, number: int, key) -> tuple:
    """So many layers, with weights of their own."""
    return tuple(make(key=key) for key in jax.random.split(key, number))


def _units(front: Sequence[Callable], layer: Callable, config: TrajectoryConfig, key) -> Composition:
    """Units one after another, each with what stands in front, such as attention, and `num_layers` further layers."""

    def unit(key) -> tuple:
        *keys, last = jax.random.split(key, len(front) + 1)
        others = _layers(partial(layer, config.d_model), config.num_layers, last)
        return (*(make(key=key) for make, key in zip(front, keys, strict=True)), *others)

    return Composition(tuple(layer for key in jax.random.split(key, config.num_blocks) for layer in unit(key)))


@checked
def standard_transformer(config: TrajectoryConfig, *, key: PRNGKeyArray) -> Composition:
    """Make units of softmax attention, without a skip around it, and residual layers: `eq-dynamics-softmax`."""
    return _units([partial(BilinearAttention, config.d_model)], ResidualLayer, config, key)


@checked
def volume_preserving_transformer(config: TrajectoryConfig, *, key: PRNGKeyArray) -> Composition:
    """Make units of orthogonal attention and triangular layers: the whole keeps volumes."""
    return _units([partial(VolumePreservingAttention, config.d_model)], TriangularLayer, config, key)


@checked
def placed_transformer(config: TrajectoryConfig, *, key: PRNGKeyArray) -> Composition:
    """Make units that keep volumes and know the places of the rows, which are added in front of each."""
    places, attention = partial(Places, config.seq, config.d_model), partial(VolumePreservingAttention, config.d_model)
    return _units([places, attention], TriangularLayer, config, key)


@checked
def volume_preserving_network(config: TrajectoryConfig, *, key: PRNGKeyArray) -> Composition:
    """Make triangular layers alone: each row is mapped for itself, and volumes are kept."""
    return Composition(_layers(partial(TriangularLayer, config.d_model), config.num_layers_alone, key))


@checked
def residual_network(config: TrajectoryConfig, *, key: PRNGKeyArray) -> Composition:
    """Make residual layers alone: as many numbers as the triangular ones have, and volumes are not kept."""
    return Composition(_layers(partial(ResidualLayer, config.d_model), config.num_layers_alone, key))


@checked
def turning_network(config: TrajectoryConfig, *, key: PRNGKeyArray) -> Composition:
    """Make one turning layer: each row keeps its length."""
    return Composition((TurningLayer(config.d_model, config.turning_width, key=key),))


KINDS: dict[str, Callable] = {
    "volume_preserving": volume_preserving_transformer,
    "network": volume_preserving_network,
    "residual": residual_network,
    "standard": standard_transformer,
    "ordinary": OrdinaryTransformer,
    "turning": turning_network,
    "placed": placed_transformer,
}


class TrajectoryModels(eqx.Module):
    """Several models of each kind, side by side: every array has one more axis in front, which `one` takes away."""

    kinds: dict[str, Any]
    config: TrajectoryConfig = eqx.field(static=True)

    @checked
    def __init__(self, config: TrajectoryConfig, *, key: PRNGKeyArray):
        self.config, keys = config, jax.random.split(key, config.num_models)
        self.kinds = {
            name: eqx.filter_vmap(lambda key, make=make: make(config, key=key))(keys) for name, make in KINDS.items()
        }

    def one(self, kind: str, number: int):
        """Return one model of a kind."""
        return jax.tree.map(lambda array: array[number], self.kinds[kind])


@checked
def window_loss(model: Callable, batch: Sequence, key: PRNGKeyArray | None = None) -> Float[Array, ""]:
    """Return the mean squared difference between what a model makes of a window and the window that follows.

    `batch`: windows, and what follows each. Nothing is drawn: `key` is not used.
    """
    check_batch(batch, "windows", "following")
    windows, following = batch
    return ((model(windows) - following) ** 2).mean()


@checked
def rollout(
    model: Callable, window: Float[Array, "*batch seq d_model"], num_windows: Positive
) -> Float[Array, "*batch points d_model"]:
    """Let a model read its own predictions: return all points that it makes, window by window.

    The window that it begins with is not among them.
    """

    def step(window, _):
        following = model(window)
        return following, following

    _, windows = jax.lax.scan(step, window, length=num_windows)
    windows = jnp.moveaxis(windows, 0, -3)
    return windows.reshape(*windows.shape[:-3], -1, window.shape[-1])


def log_volume_change(model: Callable, window: Float[Array, "seq d_model"]) -> Float[Array, ""]:
    r"""Return the logarithm of the factor by which a model changes a small volume of windows around this one.

    Implements `eq-dynamics-volume`: zero for a map that keeps volumes.
    """
    jacobian = jax.jacfwd(model)(window).reshape(window.size, window.size)
    return jnp.linalg.slogdet(jacobian)[1]
