"""Modules as what they are to a file: arrays with names, a configuration as JSON, and a sum over all."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from toy_saved import Toy, ToyConfig

from plainformer.training.arrays import differences, digest, named_arrays, to_json, with_arrays
from plainformer.training.checkpoint import load_checkpoint, save_checkpoint

TREE = {"list": [np.arange(3), None, "no array"], "pair": (np.ones((2, 4), np.float32), 7)}


def test_named_arrays_are_named_by_their_place(key):
    assert list(named_arrays(TREE)) == ["list.0", "pair.0"]
    model = eqx.filter_eval_shape(lambda: Toy(ToyConfig(), key=key))  # shapes without numbers count as arrays
    names = named_arrays(model)
    assert names["layers.1.weight"] is model.layers[1]["weight"]
    assert len(names) == len(jax.tree.leaves(model))


def test_named_arrays_refuses_two_of_one_name():
    with pytest.raises(ValueError, match=r"^Two arrays are named 'a\.b'"):
        named_arrays({"a.b": np.ones(2), "a": {"b": np.zeros(3)}})


def test_with_arrays_replaces_arrays_alone():
    replaced = with_arrays(TREE, {"pair.0": np.zeros((2, 4), np.float16), "list.0": np.full(3, 9)})
    assert replaced["list"][0].tolist() == [9, 9, 9]
    assert replaced["list"][1:] == [None, "no array"]
    assert replaced["pair"][0].tolist() == [[0] * 4] * 2
    assert replaced["pair"][0].dtype == np.float16
    assert replaced["pair"][1] == 7
    assert TREE["list"][0].tolist() == [0, 1, 2]


def test_with_arrays_names_what_does_not_fit():
    arrays = {"list.0": np.arange(3), "pair.0": np.ones((4, 2), np.float32), "pair.1": np.ones(1)}
    wrong = r"pair\.0 is \(4, 2\) float32, expected \(2, 4\) float32; pair\.1 is .*, expected none"
    with pytest.raises(ValueError, match=wrong):
        with_arrays(TREE, arrays)
    with pytest.raises(ValueError, match=r"pair\.0 is missing, expected \(2, 4\) float32"):
        with_arrays(TREE, {"list.0": np.arange(3)})


def test_digest_changes_with_anything_but_the_order():
    arrays = {"a": np.arange(6, dtype=np.float32), "b": np.zeros((), np.int32)}
    same = {"b": jnp.zeros((), jnp.int32), "a": jnp.arange(6, dtype=jnp.float32)}
    assert digest(arrays) == digest(same)
    assert len(digest(arrays)) == 64
    others = [
        {**arrays, "a": arrays["a"].reshape(2, 3)},
        {**arrays, "a": arrays["a"].view(np.int32)},
        {**arrays, "a": np.nextafter(arrays["a"], np.float32(9))},
        {"c": arrays["a"], "b": arrays["b"]},
        {"a": arrays["a"]},
    ]
    texts = [(), ("text",), ("text ",), ("tex", "t"), ("text", "")]
    digests = [*(digest(arrays, *each) for each in texts), *map(digest, others)]
    assert len(set(digests)) == len(digests)


def test_digest_sees_a_matrix_row_by_row_however_it_lies():
    matrix = np.arange(6.0).reshape(2, 3)
    assert digest({"a": np.asfortranarray(matrix)}) == digest({"a": matrix}) != digest({"a": matrix.T})


def test_differences_are_named():
    expected = {"a": np.ones(2, np.float32), "b": np.ones((2, 3), np.float32)}
    assert differences(expected, dict(reversed(expected.items()))) == ""
    found = {"a": np.ones(2, np.float16), "c": np.ones(1, np.float32)}
    assert differences(found, expected) == (
        "a is (2,) float16, expected (2,) float32; "
        "b is missing, expected (2, 3) float32; c is (1,) float32, expected none"
    )
    many = {f"layer {number}": np.ones(1, np.float32) for number in range(5)}
    assert differences({}, many).endswith("; and 2 more")


@pytest.mark.parametrize("number", [np.int64(3), jnp.int32(3)])
def test_to_json_holds_pythons_own_numbers(number):
    @dataclasses.dataclass
    class Config:
        size: int
        name: str = "x"
        inner: object = None

    assert to_json(Config(number, inner=Config(2))) == (
        '{"size": 3, "name": "x", "inner": {"size": 2, "name": "x", "inner": null}}'
    )
    with pytest.raises(TypeError, match=r"^\{1\} is not JSON serializable"):
        to_json(Config(3, inner={1}))


def test_arrays_of_another_byte_order_are_converted(tmp_path):
    numbers = np.arange(6, dtype=">f4").reshape(2, 3)
    np.testing.assert_array_equal(with_arrays({"it": jnp.zeros((2, 3))}, {"it": numbers})["it"], numbers)
    save_checkpoint(tmp_path, 1, {"it": numbers}, {})
    found, _, _ = load_checkpoint(tmp_path, {"it": np.zeros((2, 3), np.float32)})
    np.testing.assert_array_equal(found["it"], numbers)
