"""The exercises of chapter 05; the wrong answers are written as a reader would, not with the catalogue's own steps."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exercise_checks import complaint
from readers_answers_positions import alibi, blocks, right_codes, turn, turned

import plainformer as pf
from plainformer.exercises import EXERCISES, check, positions, running

NAMES = list(positions.EXERCISES)


def sinusoid(positions, d_model):
    angles = positions.astype(jnp.float32)[:, None] / 10000 ** (jnp.arange(0, d_model, 2.0) / d_model)[None]
    codes = jnp.zeros((len(positions), d_model))
    return codes.at[:, ::2].set(jnp.sin(angles)).at[:, 1::2].set(jnp.cos(angles))


def rotary(rows, positions):
    a, b = jnp.split(rows, 2, axis=1)
    angles = jnp.outer(positions.astype(jnp.float32), 10000 ** (-jnp.arange(0, 2.0 * a.shape[1], 2) / rows.shape[1]))
    points = jax.lax.complex(a, b) * jax.lax.complex(jnp.cos(angles), jnp.sin(angles))
    return jnp.concatenate([points.real, points.imag], axis=1)


def jax_alibi(num_heads, q_seq):
    slopes = 2.0 ** (-8 * jnp.arange(1.0, num_heads + 1) / num_heads)
    places = jnp.arange(q_seq, dtype=jnp.float32)
    return -jnp.einsum("h,ij->hij", slopes, jnp.abs(places[:, None] - places[None]))


def shift_by_least_squares(offset, d_model):
    """The matrix that takes 100 codes to their successors, found without any trigonometry."""
    before, after = (right_codes(np.arange(100) + k, d_model) for k in (0, offset))
    return np.linalg.lstsq(before, after)[0]


def package_alibi(num_heads, q_seq):
    return pf.AlibiPositions(num_heads).bias(jnp.arange(q_seq), jnp.arange(q_seq))


RIGHT = [
    ("sinusoid", jax.jit(sinusoid, static_argnums=1)),
    ("sinusoid", right_codes),
    ("sinusoid", jax.jit(pf.sinusoidal_positions, static_argnums=1)),
    ("rotary", jax.jit(rotary)),
    ("rotary", turned()),
    ("rotary", jax.jit(pf.rotate_pairs)),
    ("alibi", jax.jit(jax_alibi, static_argnums=(0, 1))),
    ("alibi", alibi()),
    ("alibi", jax.jit(package_alibi, static_argnums=(0, 1))),
    ("shift", shift_by_least_squares),
    ("shift", blocks(turn)),
    ("shift", jax.jit(pf.shift_matrix, static_argnums=(0, 1))),
]


@pytest.mark.parametrize(("name", "function"), RIGHT)
def test_check_passes_right_answers(name, function, capsys):
    check(name, function)
    assert re.fullmatch(rf"{name}: passed \d checks on \d \w+, \d \w+\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("name", "function", "says"),
    [
        ("sinusoid", lambda positions, d: 2 * sinusoid(positions, d), "Every number is 2 times"),
        (
            "sinusoid",
            lambda positions, d: sinusoid(positions, d).at[1, 2].add(1),
            r"not right yet for five positions from 0, with positions \(5,\), d_model 4.\n"
            r"The largest difference is at \(1, 2\): 1.01 instead of 0.01",
        ),
        ("sinusoid", lambda positions, d: sinusoid(positions, d)[:, : d // 2], r"shape \(5, 2\); expected"),
        ("rotary", jax.jit(lambda rows, places: rotary(rows, places).at[4, 3].add(2)), r"difference is at \(4, 3\): "),
        ("alibi", lambda h, n: jax_alibi(h, n)[0], r"expected \(num_heads, q_seq, q_seq\) = \(4, 5, 5\). An axis is"),
        (
            "alibi",
            lambda h, n: jax_alibi(h, n).at[3, 0, 4].set(7),
            r"difference is at \(3, 0, 4\): 7 instead of -0.016",
        ),
        ("shift", lambda k, d: np.ones((d, d)), r"difference is at \(\d, \d\): 1 instead of "),
    ],
)
def test_what_no_known_mistake_explains(name, function, says):
    assert re.search(says, complaint(name, function))


def test_check_names_two_mistakes_at_once():
    message = complaint("alibi", alibi(slope=lambda h, n: 2**-h, distance=lambda i, j: (i - j) ** 2))
    assert "right for eight heads only; and your distances are squared" in message
    assert message.count("?") == 2


def test_numbers_in_the_message_are_the_functions_own():
    wrong = turned(pairs="neighbours")
    lines = complaint("rotary", wrong).splitlines()
    stated = dict(line.strip().split(" = ") for line in lines if " = " in line)
    rows, places = (np.array(eval(stated[name])) for name in ("rows", "positions"))
    np.testing.assert_allclose(eval(lines[lines.index("you return") + 1]), wrong(rows, places), atol=6e-4)
    np.testing.assert_allclose(eval(lines[lines.index("it should be") + 1]), turned()(rows, places), atol=6e-4)


def test_examples_say_what_the_package_returns():
    package = dict(RIGHT)  # the last of each name
    for name in NAMES:
        for inputs in EXERCISES[name].examples():
            arguments = [running.as_argument(value) for value in inputs.values()]
            np.testing.assert_allclose(package[name](*arguments), EXERCISES[name].answer(**inputs), atol=1e-5)


def test_shift_takes_codes_to_codes():
    codes, shift = (EXERCISES[name].answer for name in ("sinusoid", "shift"))
    np.testing.assert_allclose(codes(np.arange(5), 6) @ shift(3, 6), codes(np.arange(5) + 3, 6), atol=1e-12)


def test_inputs_tell_sizes_apart():
    for name in NAMES:
        inputs = EXERCISES[name].cases()[0].inputs
        sizes = [size for value in inputs.values() for size in np.shape(value) or [value]]
        assert len(set(sizes)) == 2
