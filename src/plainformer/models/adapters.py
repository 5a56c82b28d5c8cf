"""Adapters: a few learned numbers beside matrices that stay as they are, and can be added into them afterwards."""

import difflib
import itertools
import json
from collections.abc import Callable, Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from plainformer.checks import Positive, PositiveFloat, checked
from plainformer.data.files import as_path, parse_json, write_bytes
from plainformer.models.low_precision import SmallLinear
from plainformer.tokens.tokens import Linear, normal
from plainformer.training.arrays import (
    Location,
    differences,
    digest,
    header_of,
    holds_adapters,
    named_arrays,
    place_of,
    read_arrays,
    to_bytes,
    with_arrays,
)
from plainformer.training.identity import changed_fields, plain_fields, scales_of

OF_ADAPTERS = (".adapter_in", ".adapter_out")
EXPECTED = "expected some, as add_adapters makes them"
OF_ATTENTION = ("attention.query", "attention.value")


class AdaptedLinear(eqx.Module):
    r"""A `Linear` with an adapter beside it, which adds `scale` times the product of two narrow matrices.

    Implements `eq-finetuning-adapter`; Hu et al. (2022), equation 3. The second matrix starts at zeros, so that at
    first the layer does what it did.

    Args:
        layer: the `Linear`, or a `SmallLinear` of few bytes (Dettmers et al., 2023), which `is_adapter` leaves out of
            training.
        rank: the number of columns of the first matrix and of rows of the second, at most the layer's smaller side.
        scale: what their product is multiplied by; Hu et al. call it α / r.
        key: random key, for the first matrix.
    """

    layer: Linear | SmallLinear
    adapter_in: Float[Array, "d_in rank"]
    adapter_out: Float[Array, "rank d_out"]
    scale: float = eqx.field(static=True)

    @checked
    def __init__(self, layer: Linear | SmallLinear, rank: Positive, scale: PositiveFloat, *, key: PRNGKeyArray):
        _check_layer(layer)
        d_in, d_out = layer.weight.shape
        if rank > min(d_in, d_out):
            sides = f"the smaller side of a map from {d_in} to {d_out} numbers"
            raise ValueError(f"rank is {rank}; expected at most {min(d_in, d_out)}, {sides}.")
        self.layer, self.scale = layer, scale
        self.adapter_in = normal(key, (d_in, rank)) / d_in**0.5
        self.adapter_out = jnp.zeros((rank, d_out))

    @property
    def weight(self) -> Float[Array, "d_in d_out"]:
        """The matrix that does the same alone, but for rounding where the layer's own has few bits."""
        weight = self.layer.weight
        return (weight + self.scale * self.adapter_in @ self.adapter_out).astype(weight.dtype)

    @property
    def bias(self) -> Float[Array, " d_out"] | None:
        """The layer's bias."""
        return self.layer.bias

    @checked
    def __call__(self, x: Float[Array, "*batch d_in"]) -> Float[Array, "*batch d_out"]:
        """Return the map of each row of `x`, with as many bits as the layer alone gives it."""
        y = self.layer(x)
        return y + (self.scale * (x @ self.adapter_in) @ self.adapter_out).astype(y.dtype)


def _check_layer(layer) -> None:
    """Raise `TypeError` or `ValueError` unless this is a linear map of its own."""
    if not isinstance(layer, Linear | SmallLinear):
        raise TypeError(
            f"layer is of type {type(layer).__name__}; expected a Linear or a SmallLinear, without adapter."
        )
    if layer.weight.ndim != 2:
        expected = "expected a single one, (d_in, d_out). Adapters of many experts' maps are not made"
        raise ValueError(f"layer has matrices of shape {layer.weight.shape}; {expected}.")


@checked
def is_adapter(place: str) -> bool:
    """Whether a place in a model is that of an adapter: what `fit(…, trainable=is_adapter)` trains alone."""
    return place.endswith(OF_ADAPTERS)


@checked
def add_adapters(
    model: eqx.Module,
    rank: Positive,
    *,
    scale: PositiveFloat = 2.0,
    where: str | Sequence[str] | Callable[[str], bool] = OF_ATTENTION,
    key: PRNGKeyArray,
):
    r"""Return a model whose linear maps have adapters, of queries and values if nothing else is said.

    Hu et al. (2022), section 4.2. The other arrays are the model's own, and the model itself stays as it was.

    Args:
        model: such as a `Decoder`.
        rank, scale, key: as for `AdaptedLinear`.
        where: which linear maps get one: a name, or several. A place such as `"stack.blocks.0.attention.query"` is
            meant by its whole, by `"query"`, by `"stack.blocks.0"`, and by any other part. Or a function of the place.

    Raises:
        ValueError: if there is no linear map, none is chosen, a name is in no place, or a map has an adapter already.

    Example:
        Two adapters in each block, of 2 · 8 · 1 numbers each.

        >>> config = pf.DecoderConfig(65, 16, stack=pf.StackConfig(d_model=8, num_layers=1, num_heads=2))
        >>> decoder = pf.Decoder(config, key=jax.random.key(0))
        >>> adapted = pf.models.add_adapters(decoder, rank=1, key=jax.random.key(1))
        >>> pf.count_parameters(adapted) - pf.count_parameters(decoder)
        32
    """
    if not (there := _maps(model)):
        raise ValueError(
            f"This {type(model).__name__} has no linear map; expected a model with some, as a Decoder has."
        )
    maps = {place: there[place] for place in _chosen(where, list(there))}
    if taken := [place for place, part in maps.items() if isinstance(part, AdaptedLinear)]:
        raise ValueError(f"{taken[0]} has an adapter; expected none. Use merge_adapters first, or another `where`.")
    if not maps:
        raise ValueError(f"No linear map is chosen; expected a place such as {next(iter(there))!r}.")
    keys = dict(zip(maps, jax.random.split(key, len(maps)), strict=True))
    return _replaced(model, lambda place, part: AdaptedLinear(part, rank, scale, key=keys[place]), maps)


@checked
def merge_adapters(model: eqx.Module):
    """Return a model without adapters that computes the same: each one is added into its matrix.

    Implements `eq-finetuning-merge`. The sum is kept in floats, also where the matrix was kept in fewer bytes. A matrix
    of 16 bits stays one, so that there the sum is rounded: logits of two layers then differ by up to eight epsilons of
    the dtype, of the largest logit, which are 0.06 in bfloat16 and 0.008 in float16.

    Raises:
        ValueError: if it has none.
    """
    if not (maps := _adapted(model)):
        raise ValueError(f"This {type(model).__name__} has no adapters; {EXPECTED}.")

    def merged(place: str, part: AdaptedLinear) -> Linear:
        if isinstance(part.layer, Linear):
            return eqx.tree_at(lambda layer: layer.weight, part.layer, part.weight)
        d_in, d_out = part.weight.shape
        empty = eqx.filter_eval_shape(lambda key: Linear(d_in, d_out, key=key), jax.random.key(0))
        return eqx.tree_at(lambda layer: (layer.weight, layer.bias), empty, (part.weight, part.bias))

    return _replaced(model, merged, maps)


@checked
def save_adapters(path: Location, model: eqx.Module) -> None:
    r"""Write the adapters of a model, and nothing else of it, into a safetensors file.

    Raises:
        ValueError: if it has none.
        FileExistsError: if the file is there, and holds something else, such as the model itself.
        OSError: if the file cannot be written.
    """
    arrays, others = _arrays_of(model)
    if not arrays:
        raise ValueError(f"This {type(model).__name__} has no adapters; {EXPECTED}.")
    if (target := as_path(path)).is_file() and not holds_adapters(header_of(target)):
        hint = "Give the adapters a name of their own, or delete that file first"
        raise FileExistsError(f"{path} holds no adapters; expected a new file, or one of save_adapters. {hint}.")
    config = {"adapters_of": digest(others), "scales": scales_of(model), "config": _fields_of(model)}
    write_bytes(path, to_bytes(arrays, {"config": json.dumps(config)}))


@checked
def load_adapters(path: Location, model: eqx.Module):
    r"""Return a model with the adapters that a file has, in place of its own.

    Args:
        path: what `save_adapters` wrote.
        model: the same model, of the same configuration, with adapters of the same rank and scale in the same places,
            as `add_adapters` makes it. Files of earlier versions do not say their scale or the configuration: there
            they are the model's.

    Raises:
        ValueError: if the file is damaged, has adapters of another model, or others than this model.
        FileNotFoundError: if there is no file.
    """
    try:
        arrays, header = read_arrays(as_path(path), "config")
        config = parse_json(header["config"], "its header")
    except ValueError as error:
        raise ValueError(f"{path} is damaged, or no file of save_adapters: {error}.") from error
    if "adapters_of" not in config:
        raise ValueError(f"{path} holds no adapters; expected a file of save_adapters.")
    _check_fits(path, arrays, config, model)
    return with_arrays(model, named_arrays(model) | arrays)


def _check_fits(path: Location, arrays: dict, config: dict, model) -> None:
    """Raise `ValueError` unless the adapters in a file are of this model, and like those that it has."""
    own, others = _arrays_of(model)
    if not own:
        rank = min((min(array.shape) for array in arrays.values()), default=1)
        hint = f"Try add_adapters(model, rank={rank}, …) first"
        raise ValueError(f"This {type(model).__name__} has no adapters; expected some. {hint}.")
    if wrong := differences(arrays, own):
        same_shapes = {name: array.shape for name, array in arrays.items()} == {name: own[name].shape for name in own}
        hint = (
            "Only dtypes differ: give the model's adapters that of the file."
            if same_shapes
            else "Were rank and `where` others?"
        )
        raise ValueError(f"The adapters in {path} do not fit: {wrong}. {hint}")
    if config["adapters_of"] != digest(others):
        raise ValueError(f"{path} has adapters of another model; expected those of one with the same numbers.")
    then, now = config.get("config", {}), _fields_of(model)
    if changes := changed_fields(_in_both(then, now), _in_both(now, then)):
        said = f"{path} has adapters of a model of another configuration: {', '.join(changes)}"
        raise ValueError(f"{said}; expected the same. Make the model as it was made for them.")
    for place, here in scales_of(model).items():
        if (scale := config.get("scales", {}).get(place, here)) != here:
            said = f"scale={scale} at {place}, and this model has {here} there"
            raise ValueError(
                f"The adapters in {path} have {said}; expected the same. Try add_adapters(…, scale={scale})."
            )


def _fields_of(model) -> dict:
    """The fields of a model's configuration, none if it has no such thing."""
    return plain_fields(getattr(model, "config", None))


def _in_both(fields: dict, other: dict) -> dict:
    """Those fields of a configuration that another one has, too: of another version it may have others."""

    def within(name: str, value):
        return _in_both(value, other[name]) if isinstance(value, dict) and isinstance(other[name], dict) else value

    return {name: within(name, value) for name, value in fields.items() if name in other}


def _arrays_of(model) -> tuple[dict, dict]:
    """The arrays of the adapters, and all others."""
    arrays = named_arrays(model)
    own = {name: array for name, array in arrays.items() if is_adapter(name)}
    return own, {name: array for name, array in arrays.items() if name not in own}


def _is_map(part) -> bool:
    """Whether this is a linear map of its own, and not those of many experts in one."""
    return isinstance(part, SmallLinear | AdaptedLinear) or (isinstance(part, Linear) and part.weight.ndim == 2)


def _maps(model) -> dict:
    """The linear maps of a model by their places."""
    leaves = jax.tree_util.tree_leaves_with_path(model, is_leaf=_is_map)
    return {place_of(path): part for path, part in leaves if _is_map(part)}


def _chosen(where, places: list[str]) -> list[str]:
    """Those of these places that somebody means by a function, or by names of which each is a part of one."""
    if callable(where):
        return [place for place in places if where(place)]
    names = [where] if isinstance(where, str) else where
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise TypeError(f"where is {where!r}; expected names, such as {list(OF_ATTENTION)}, or a function of a place.")
    parts = {place: _parts_of(place) for place in places}
    known = dict.fromkeys(itertools.chain.from_iterable(parts.values()))
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=3, cutoff=0.3) or places[:3]
            raise ValueError(f"where has {name!r}, which is in no place of a linear map; expected such as {close}.")
    return [place for place in places if set(names) & set(parts[place])]


def _parts_of(place: str) -> list[str]:
    """A place, and all that stands together in it: `a.b` has `a`, `a.b` and `b`."""
    words = place.split(".")
    ends = range(1, len(words) + 1)
    return [".".join(words[start:end]) for start in range(len(words)) for end in ends if end > start]


def _adapted(model) -> dict:
    """Those that have adapters."""
    return {place: part for place, part in _maps(model).items() if isinstance(part, AdaptedLinear)}


def _replaced(model, make: Callable, maps: dict):
    """The model with other parts in these places."""

    def each(path, part):
        place = place_of(path)
        return make(place, part) if place in maps else part

    return jax.tree_util.tree_map_with_path(each, model, is_leaf=_is_map)
