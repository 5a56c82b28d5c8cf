"""Arguments held to their annotations, and values refused at once or when a compiled function runs."""

import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from jaxtyping import Array, Bool, Float, Integer, PRNGKeyArray

from plainformer.checks import (
    Count,
    Even,
    Natural,
    NonNegative,
    Positive,
    PositiveFloat,
    Rate,
    check_auto_axes,
    check_axes,
    check_batch,
    check_each,
    check_fields,
    checked,
    ids_in_range,
    refuse,
)
from plainformer.positions.positions import NoPositions, PositionScheme
from plainformer.positions.rotary import RotaryPositions

X, W = np.ones((5, 12), np.float32), np.ones((12, 7), np.float32)


@checked
def mix(
    x: Float[Array, "*batch seq d_model"],
    weight: Float[Array, "d_model d_out"] | None = None,
    mask: Bool[Array, "*#batch seq seq"] | None = None,
    ids: Integer[Array, "*batch seq"] | None = None,
):
    """What came through."""
    return x, weight, mask, ids


@checked
def compare(rows: Float[Array, "rows d"], bias: Float[Array, " d"] | None = None, image=None):
    return rows


@checked
def attend(
    x: Float[Array, "*batch seq d_model"],
    bias: Float[Array, "*#batch seq seq"] | None = None,
    scheme: PositionScheme = NoPositions(),  # noqa: B008
    positions: Integer[Array, "*batch seq"] | None = None,
    is_token: Bool[Array, "*batch seq"] | None = None,
):
    return scheme


class Room(eqx.Module):
    """An object with arrays and attributes that know sizes; each array may be missing."""

    weight: Float[Array, "*batch d_model d_out"] | None = None
    bias: Float[Array, " d_out"] | None = None
    num_heads: int = eqx.field(static=True, default=3)

    @property
    def heads(self):
        return self.num_heads

    @checked
    def __call__(self, rows: Float[Array, "*batch heads seq d_model"]):
        return rows.shape

    @checked
    def add(self, rows: Float[Array, "seq d_out"]):
        return rows.shape


def mask(*shape):
    return np.ones(shape, bool)


# --- sizes


@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_checked_takes_any_batch_and_masks_that_broadcast_to_it(batch):
    x = np.ones((*batch, 5, 12), np.float32)
    fits = {(), *[batch[cut:] for cut in range(len(batch))], (1,) * len(batch), (*batch[:1], 1)[: len(batch)]}
    for front in fits:
        assert mix(x, W, mask(*front, 5, 5), np.ones((*batch, 5), int))[0].shape == x.shape


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X, W.T), r"weight has shape \(7, 12\); expected \(d_model=12, d_out\)"),
        ((X, W, mask(4, 4)), r"mask has shape \(4, 4\); expected \(seq=5, seq=5\)"),
        ((X, W, mask(1, 5, 5)), r"mask has shape \(1, 5, 5\); expected \(seq=5, seq=5\)"),
        ((X[None], W, mask(2, 5, 5)), r"mask has shape \(2, 5, 5\); expected \(\.\.\., seq=5, seq=5\)"),
        ((X[None], W, None, np.ones(5, int)), r"ids has shape \(5,\); expected \(1, seq=5\)"),
        ((X[0],), r"x has shape \(12,\); expected \(\.\.\., seq, d_model\)"),
    ],
)
def test_checked_gives_axes_of_one_name_one_size(arguments, message):
    with pytest.raises(ValueError, match=message):
        mix(*arguments)


def test_checked_holds_the_axes_of_one_array_to_each_other_and_binds_nothing_by_what_it_refuses():
    @checked
    def square(weights: Float[Array, "*batch rows rows"], x: Float[Array, "*batch rows d"]):
        return weights, x

    with pytest.raises(ValueError, match=r"weights has shape \(2, 5, 7\); expected \(\.\.\., rows, rows\)\.$"):
        square(np.ones((2, 5, 7), np.float32), X)
    with pytest.raises(ValueError, match=r"x has shape \(5, 12\); expected \(rows=7, d\)\.$"):
        square(np.ones((7, 7), np.float32), X)


def test_checked_binds_in_the_order_of_the_signature_however_the_arguments_come():
    with pytest.raises(ValueError, match=r"mask has shape \(7, 5, 5\); expected \(\.\.\., seq=5, seq=5\)"):
        mix(mask=mask(7, 5, 5), x=np.ones((2, 5, 12), np.float32))


def test_checked_knows_the_sizes_of_an_object_s_arrays_and_attributes():
    room = Room(jnp.ones((12, 7)))
    assert room(np.ones((3, 5, 12), np.float32)) == (3, 5, 12)
    with pytest.raises(ValueError, match=r"rows has shape \(2, 5, 12\); expected \(heads=3, seq, d_model=12\)"):
        room(np.ones((2, 5, 12), np.float32))
    with pytest.raises(ValueError, match=r"rows has shape \(4, 3, 5, 12\); expected \(heads=3, seq, d_model=12\)"):
        room(np.ones((4, 3, 5, 12), np.float32))  # an array without a batch says that there is none
    several = Room(jnp.ones((2, 4, 12, 7)), jnp.ones(7))
    assert several(np.ones((2, 4, 3, 5, 12), np.float32)) == (2, 4, 3, 5, 12)
    with pytest.raises(ValueError, match=r"rows has shape \(3, 5, 12\); expected \(2, 4, heads=3, seq, d_model=12\)"):
        several(np.ones((3, 5, 12), np.float32))
    with pytest.raises(ValueError, match=r"rows has shape \(5, 12\); expected \(seq, d_out=7\)"):
        several.add(X)
    with pytest.raises(ValueError, match=r"rows has shape \(5, 12\); expected \(seq, d_out=7\)"):
        Room(bias=jnp.ones(7)).add(X)  # all axes of this array are the argument's, too


# --- what may come, and what comes through


def test_checked_takes_an_array_for_a_default():
    @checked
    def add(x: Float[Array, "seq d"], more: Float[Array, " d"] = W[:, 0]):
        return x + more

    np.testing.assert_array_equal(add(X), X + 1)


def test_checked_lets_none_through_where_the_annotation_does():
    assert mix(X, None)[1:] == (None, None, None)
    with pytest.raises(TypeError, match=r"x is a NoneType; expected an array with axes \(\.\.\., seq, d_model\)"):
        mix(None)


def test_checked_makes_numpy_s_arrays_jax_s_and_leaves_those_of_jax_alone():
    found = mix(X.astype(np.float64), W, mask(5, 5), np.arange(5, dtype=np.int64))
    assert all(isinstance(array, jax.Array) for array in found)
    assert [str(array.dtype) for array in found] == ["float32", "float32", "bool", "int32"]
    np.testing.assert_array_equal(mix(X.astype(">f4"))[0], X)  # of another byte order
    x = jnp.ones((5, 12))
    assert mix(x)[0] is x
    ids = np.arange(5)
    assert jax.jit(lambda x: mix(x, ids=ids)[3])(x).tolist() == [0, 1, 2, 3, 4]  # while tracing, too
    ids[1] = 2**32 + 2
    with pytest.raises(ValueError, match=rf"ids\[1\] is {2**32 + 2}; expected whole numbers that int32 holds"):
        mix(X, ids=ids)


def test_checked_leaves_all_else_to_python():
    assert (mix.__name__, mix.__doc__) == ("mix", "What came through.")
    image = object()
    assert compare(X, image=image).shape == (5, 12)
    with pytest.raises(TypeError, match=r"mix\(\): missing a required argument: 'x'"):
        mix()
    with pytest.raises(TypeError, match=r"mix\(\): got an unexpected keyword argument 'y'"):
        mix(X, y=X)


def test_checked_raises_while_tracing_and_sees_single_examples_under_vmap():
    x = jnp.ones((2, 5, 12))
    with pytest.raises(ValueError, match=r"weight has shape \(7, 12\); expected \(d_model=12, d_out\)"):
        jax.jit(mix)(x, W.T)
    with pytest.raises(ValueError, match=r"mask has shape \(2, 5, 5\); expected \(seq=5, seq=5\)"):
        jax.vmap(lambda each: mix(each, W, mask(2, 5, 5))[0])(x)
    found = jax.jit(jax.vmap(lambda each, seen: mix(each, W, seen)[0]))(x, mask(2, 5, 5))
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize(
    "between",
    [
        lambda inner: inner,
        jax.jit,
        jax.checkpoint,
        lambda inner: lambda x: jax.vmap(inner)(x[None]),
        lambda inner: jax.grad(lambda x: inner(x).sum()),
        lambda inner: lambda x: jax.lax.scan(lambda x, _: (inner(x), None), x, np.arange(2)),
    ],
)
def test_checked_looks_again_within_what_was_checked(between):
    """As a part of one's own inside a model is answered as outside."""

    @checked
    def outer(x: Float[Array, "*batch seq d_model"]):
        return between(lambda x: mix(x, x)[1])(x)

    with pytest.raises(ValueError, match=r"weight has shape \(5, 12\); expected \(d_model=12, d_out\)"):
        outer(X)


# --- causes and kinds


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        (lambda: mix(X, W.T), r"try weight\.mT"),
        (lambda: mix(X, W[None]), r"weight .* one axis too many"),
        (lambda: mix(X[0]), r"x .* one axis too few: .*x\[None\]"),
        (lambda: mix(X, W, mask(5)), "padding_mask"),
        (lambda: mix(X[None], None, None, np.ones((2, 5), int)), r"ids .*in front is a batch"),
        (lambda: attend(X, is_token=mask(4)), r"One for each token"),
    ],
)
def test_checked_tells_the_likely_cause(call, cause):
    with pytest.raises(ValueError, match=cause):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mix([[1.0]]), r"x is a list; .*jnp\.asarray\(x"),
        (lambda: mix("text"), r"x is a str; .*Encode it first"),
        (lambda: mix(X, W, [[True]]), r"mask is a list"),
        (lambda: mix(X.astype(int)), r"x holds int64; .*x\.astype\(float\)"),
        (lambda: mix(X, W, np.zeros((5, 5))), r"mask is an array of float64; .*pass mask == 0"),
        (lambda: mix(X, W, jax.random.key(0)), r"mask is an array of key<fry>"),
        (lambda: mix(X, ids=np.ones(5)), r"ids holds float64; .*encode\(\)"),
        (lambda: attend(X, mask(5, 5)), r"bias is an array of bool; .* pass it as mask"),
        (lambda: attend(X, positions=X[:, 0]), r"positions holds float32; .*jnp\.arange\(5\)"),
        (lambda: attend(X, is_token=X[:, 0]), r"is_token holds float32; .*is_token == 1"),
        (lambda: attend(X, scheme=RotaryPositions), r"scheme is the class RotaryPositions"),
        (lambda: attend(X, scheme="rotary"), r"scheme is of type str"),
        (lambda: attend(X, scheme=jnp.arange(5)), r"scheme is an array"),
    ],
)
def test_checked_names_things_of_another_kind(call, message):
    with pytest.raises(TypeError, match=message):
        call()


def test_checked_takes_any_object_that_has_the_methods_of_a_part():
    class Own:
        embed = rotate = bias = sees = token_scale = staticmethod(lambda *_: None)

    own = Own()
    assert attend(X, scheme=own) is own


def test_check_axes_says_what_an_annotation_cannot():
    check_axes("weights", X, rows=5, columns=None)
    check_axes("weights", X[None], **{"*batch": (1,)}, rows=5, columns=None)
    with pytest.raises(ValueError, match=r"weights has shape \(5, 12\); expected \(rows=4, columns\)\. Cut them\.$"):
        check_axes("weights", X, "Cut them.", rows=4, columns=None)
    with pytest.raises(ValueError, match=r"weights has shape \(5, 12\); expected \(2, rows, columns\)"):
        check_axes("weights", X, **{"*batch": (2,)}, rows=None, columns=None)
    with pytest.raises(TypeError, match=r"weights is a list; expected an array with axes \(\.\.\., rows\)"):
        check_axes("weights", [1.0], **{"*batch": None}, rows=None)


# --- numbers, flags and choices


@checked
def number(count: Positive | None = None, rate: Rate = 0.1, norm: Literal["pre", "post"] = "pre", flag: bool = True):
    return count, rate, norm, flag


@pytest.mark.parametrize(
    ("kind", "fits", "refused"),
    [
        (Positive, [1, 7, 2**30 - 1], [0, -1, 2**30]),
        (Count, [1, 2**40], [0, -1]),
        (Natural, [0, 2**31 - 1], [-1, 2**31]),
        (Even, [2, 12], [0, 3, -2]),
        (PositiveFloat, [1e-9, 3], [0, -1.0, np.inf, np.nan]),
        (NonNegative, [0, 0.5], [-1e-9, np.inf, np.nan]),
        (Rate, [0, 0.999], [1, -0.1, np.nan]),
    ],
)
def test_check_each_holds_a_number_to_its_bounds(kind, fits, refused):
    for value in fits:
        check_each(kind, size=value)
    for value in refused:
        with pytest.raises(ValueError, match=rf"^size is {value}; expected "):
            check_each(kind, size=value)
    for value in ["1", None, True, np.True_, [1], np.ones(1)]:
        with pytest.raises(TypeError, match=r"^size is .*; expected a (whole )?number, "):
            check_each(kind, size=value)
    if kind in (Positive, Count, Natural, Even):
        with pytest.raises(TypeError, match=r"^size is 2\.0; expected a whole number, "):
            check_each(kind, size=2.0)


def test_checked_makes_numpy_s_flags_python_s():
    assert number(flag=np.True_)[3] is True
    assert number(flag=np.False_)[3] is False


def test_checked_makes_numpy_s_numbers_python_s():
    count, rate, _, _ = number(np.int64(3), np.float32(0.5))
    assert (type(count), count, type(rate), rate) == (int, 3, float, 0.5)
    assert number(None)[0] is None


@checked
def tell(
    key: PRNGKeyArray | None = None,
    path: str | os.PathLike = "",
    function: Callable[[int], int] | None = None,
    title: str = "",
    arrays: dict | None = None,
):
    return key, path, function, title, arrays


def test_checked_takes_keys_paths_functions_strings_and_dictionaries():
    assert tell() == (None, "", None, "", None)
    key = jax.random.key(0)
    assert tell(key, Path("a"), len, "b", {}) == (key, Path("a"), len, "b", {})
    old = jax.random.PRNGKey(0)
    assert tell(old)[0] is old
    found = jax.vmap(lambda key: jax.random.normal(tell(key)[0]))(jax.random.split(key, 3))
    assert jax.jit(lambda key: jax.random.normal(tell(key)[0]))(key).shape == ()
    assert found.shape == (3,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": 0}, r"^key is of type int; expected a single random key, such as jax\.random\.key\(0\)\.$"),
        ({"key": jax.random.split(jax.random.key(0), 3)}, r"^key is an array; expected a single random key"),
        ({"path": None}, r"^path is of type NoneType; expected the name of a file or folder, a string or a Path\.$"),
        ({"function": [1]}, r"^function is of type list; expected a function\.$"),
        ({"title": None}, r"^title is of type NoneType; expected a string\.$"),
        ({"arrays": [1]}, r"^arrays is of type list; expected a dictionary\.$"),
    ],
)
def test_checked_names_what_is_no_key_path_function_string_or_dictionary(unchecked, arguments, message):
    with pytest.raises(TypeError, match=message):
        tell(**arguments)


def test_check_batch_names_what_is_no_tuple_and_what_is_missing():
    check_batch((1, 2), "inputs", "targets")
    check_batch([1, 2, 3], "inputs", "targets")
    with pytest.raises(TypeError, match=r"^batch is 1 arrays; expected a tuple of inputs, targets\.$"):
        check_batch((1,), "inputs", "targets")
    with pytest.raises(TypeError, match=r"^batch is of type int; expected a tuple of inputs, targets\.$"):
        check_batch(3, "inputs", "targets")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: number(0), ValueError, r"^count is 0; expected at least 1 and below 2\^30\.$"),
        (lambda: number(2**30), ValueError, r"^count is 1073741824; expected at least 1 and below 2\^30\.$"),
        (lambda: number(rate=None), TypeError, r"^rate is None; expected a number, at least 0 and below 1, such as 0"),
        (lambda: number(norm="mid"), ValueError, r"^norm is 'mid'; expected one of 'pre', 'post'\.$"),
        (lambda: number(flag=1), TypeError, r"^flag is 1; expected True or False\.$"),
        (lambda: jax.jit(number)(3), TypeError, r"^count is traced, .* static_argnames of jax\.jit"),
    ],
)
def test_checked_names_a_wrong_number_flag_or_choice(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_checked_of_numbers_alone_leaves_checks_inside_awake():
    @checked
    def repeat(function, times: Positive):
        return [function() for _ in range(times)]

    with pytest.raises(ValueError, match=r"weight has shape \(7, 12\); expected \(d_model=12, d_out\)"):
        repeat(lambda: mix(X, W.T), 2)


def test_check_fields_makes_numpy_s_numbers_python_s_and_names_a_part_of_another_kind():
    @dataclasses.dataclass(frozen=True)
    class Part:
        size: Positive = 1

    @dataclasses.dataclass(frozen=True)
    class Other(Part):
        length: Positive = 1

    @dataclasses.dataclass(frozen=True)
    class Whole:
        part: Part = Part()
        other: Other = Other()
        rate: Rate = 0.1

        def __post_init__(self):
            check_fields(self)

    assert type(Whole(rate=jnp.float32(0.5)).rate) is float
    with pytest.raises(TypeError, match=r"^part is of type int; expected a Part\.$"):
        Whole(part=64)
    with pytest.raises(TypeError, match=r"^other is of type Part; expected an Other\.$"):
        Whole(other=Part())


# --- values


def below(limit):
    return lambda ids: refuse(ids, ids >= limit, "ids", f"0 to {limit - 1}.")


def test_refuse_returns_what_is_allowed():
    ids = jnp.array([[0, 2], [1, 2]])
    assert below(3)(ids) is ids
    np.testing.assert_array_equal(jax.jit(jax.vmap(below(3)))(ids), ids)


@pytest.mark.parametrize("array", [np.array, jnp.array])
def test_refuse_names_the_first_bad_place_and_its_value(array):
    with pytest.raises(ValueError, match=r"^ids\[1\] is 7; expected 0 to 5\.$"):
        below(6)(array([0, 7, 8]))
    with pytest.raises(ValueError, match=r"^ids\[1, 0\] is 7; expected 0 to 5\.$"):
        below(6)(array([[0, 5], [7, 8]]))
    with pytest.raises(ValueError, match=r"^ids is 7; expected 0 to 5\.$"):
        below(6)(array(7))
    is_token = array([[True, False], [False, False]])
    with pytest.raises(ValueError, match=r"^is_token\[1\] is not allowed; expected a token in each text\.$"):
        refuse(is_token, ~is_token.any(axis=1), "is_token", "a token in each text.")


@pytest.mark.run_time_check
def test_refuse_raises_when_a_compiled_function_runs():
    compiled = eqx.filter_jit(below(6))
    assert compiled(jnp.array([0, 5])).tolist() == [0, 5]
    message = r"An entry of ids is not allowed; expected 0 to 5\."
    with pytest.raises(eqx.EquinoxRuntimeError, match=message):
        jax.block_until_ready(compiled(jnp.array([0, 7])))
    with pytest.raises(eqx.EquinoxRuntimeError, match=message):
        jax.block_until_ready(jax.vmap(below(6))(jnp.array([[0], [7]])))
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        jax.block_until_ready(jax.jit(below(6))(jnp.array([0, 7])))


# --- ids


@pytest.mark.parametrize("array", [np.asarray, jnp.asarray, lambda ids: jnp.asarray(ids, jnp.int8)])
def test_ids_in_range_names_the_argument_and_the_first_id_that_is_none(array):
    ids = array([0, 5])
    assert ids_in_range(ids, 6) is ids
    assert ids_in_range(ids, 300) is ids  # more than 8 bits count
    assert ids_in_range(ids, None) is ids
    with pytest.raises(ValueError, match=r"^stops\[1\] is 5; expected 0 to 4, as there are 5 tokens\. Were these ids"):
        ids_in_range(ids, 5, "stops")
    with pytest.raises(ValueError, match=r"^ids\[0\] is -1; expected 0 to 2147483647, the whole numbers that int32 ho"):
        ids_in_range(array([-1]), None)
    with pytest.raises(ValueError, match=r"^rows\[0\] is 7; expected 0 to 6, as there are 7 classes\. Count them\.$"):
        ids_in_range(array([7, 9]), 7, "rows", of="classes", hint="Count them.", where=array([1, 0]) == 1)
    assert ids_in_range(ids, 5, where=array([1, 0]) == 1) is ids


def test_ids_in_range_takes_numbers_of_more_bits_than_numpy_has():
    with pytest.raises(ValueError, match=rf"^ids\[1\] is {2**80}; expected 0 to 6, as there are 7 tokens"):
        ids_in_range(np.array([1, 2**80], dtype=object), 7)


def test_ids_that_are_cut_over_an_explicit_mesh_are_refused_and_all_others_come_through():
    ids = np.arange(4)
    for kind in (AxisType.Auto, AxisType.Explicit):
        mesh = jax.make_mesh((1,), ("data",), axis_types=(kind,))
        for given in (ids, jnp.asarray(ids), jax.device_put(ids, NamedSharding(mesh, P()))):
            check_auto_axes("ids", given)
        cut = jax.device_put(ids, NamedSharding(mesh, P("data")))
        if kind is AxisType.Auto:
            check_auto_axes("ids", cut)
            continue
        with pytest.raises(ValueError, match=r"^stops are cut as .*data.* Explicit; expected Auto axes"):
            check_auto_axes("stops", cut)
