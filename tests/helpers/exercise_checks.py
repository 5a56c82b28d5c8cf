"""What the tests of the exercises share: a reader's function goes in, the message comes out."""

import jax
import numpy as np
import pytest

from plainformer.exercises import ExerciseError, check


def complaint(name, function):
    with pytest.raises(ExerciseError) as caught:
        check(name, function)
    return str(caught.value)


def in_numpy(function):
    """The function of a reader who stays with NumPy, whatever arrays come."""
    return lambda *given: function(*(np.asarray(each) if hasattr(each, "shape") else each for each in given))


def in_jax(function, **options):
    """The compiled function of a reader who stays with JAX; the compiler is told not to take long over it."""
    return jax.jit(function, compiler_options={"xla_backend_optimization_level": "0"}, **options)


def in_float64(answer):
    """A reader's function that gives our own answer, right or wrong, in double precision."""
    return lambda *given: answer(*(_wide(each) if hasattr(each, "shape") else each for each in given))


def _wide(array):
    return np.asarray(array, array.dtype if array.dtype.kind in "bi" else np.float64)


def with_added(array, number, *where):
    """The array with a number added in one place, if it has that."""
    array[tuple(slice(i, i + 1) for i in where)] += number
    return array


def softmax(scores, axis=-1):
    """As a reader with NumPy writes it; not a number in a row of nothing but minus infinity."""
    exponentials = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def log_softmax(logits, axis=-1):
    logits = logits - logits.max(axis=axis, keepdims=True)
    return logits - np.log(np.exp(logits).sum(axis=axis, keepdims=True))
