"""Batches that name their arrays: what a model reads of each, what counts, and for how much a batch stands."""

import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.data import named_batches

ROWS, OTHER = jnp.asarray([[3, 1, 4], [1, 5, 0]]), jnp.asarray([[1, 4, 2], [5, 0, 0]])
LABELS = jnp.asarray([1, 0])
SOME, DOCUMENTS = jnp.asarray([[True, True, False], [True, False, False]]), jnp.asarray([[0, 0, 1], [2, -1, -1]])
ALL = np.ones((2, 3), bool)


@pytest.mark.parametrize(
    ("batch", "read", "counts"),
    [
        (named_batches.Windows(ROWS, OTHER), (ROWS,), ALL),
        (named_batches.PaddedWindows(ROWS, OTHER, SOME), (ROWS,), SOME),
        (named_batches.PackedWindows(ROWS, OTHER, DOCUMENTS), (ROWS, DOCUMENTS), DOCUMENTS > -1),
        (named_batches.LabelledBatch(ROWS, LABELS), (ROWS,), ALL[:, 0]),
        (named_batches.LabelledBatch(ROWS, LABELS, SOME), (ROWS, SOME), ALL[:, 0]),
        (named_batches.LabelledBatch(ROWS, LABELS, segments=OTHER), (ROWS, None, OTHER), ALL[:, 0]),
        (named_batches.MaskedBatch(ROWS, OTHER, SOME), (ROWS,), SOME),
        (named_batches.TranslationBatch(ROWS, SOME, OTHER, OTHER, DOCUMENTS > 0), (ROWS, OTHER, SOME), DOCUMENTS > 0),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "read") else "",
)
def test_a_model_reads_the_arrays_up_to_the_last_that_is_given(batch, read, counts):
    assert [id(array) for array in batch.read] == [id(array) for array in read]
    np.testing.assert_array_equal(batch.counts, counts)
    assert named_batches.num_targets(batch) == float(np.sum(counts))


def test_a_batch_without_counts_stands_for_its_rows():
    assert named_batches.num_targets((ROWS, LABELS)) == 2
    assert named_batches.num_targets(jnp.float32(3)) == 1
