"""What the tests of the exercises share: a reader's function goes in, the message comes out."""

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


def in_float64(answer):
    """A reader's function that gives our own answer, right or wrong, in double precision."""
    return lambda *given: answer(*(_wide(each) if hasattr(each, "shape") else each for each in given))


def _wide(array):
    return np.asarray(array, array.dtype if array.dtype.kind in "bi" else np.float64)
