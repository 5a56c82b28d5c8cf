"""Documents in windows: where each token goes, what a packed batch gives, and what is refused."""

from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, strategies as st
from toy_models import drawn

import plainformer as pf

DOCUMENTS = [[5, 1, 2, 3], [5, 4, 4, 2, 1], [5, 2, 6, 1, 1, 3]]
LISTS = st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=8), min_size=1, max_size=12)


def config_of(**fields):
    return pf.DecoderConfig(7, 8, stack=pf.StackConfig(**{"d_model": 12, "num_layers": 2, "num_heads": 3} | fields))


def pairs_of(packed):
    """By window and number, the inputs and targets of a document."""
    found = {}
    for row, (inputs, targets, numbers) in enumerate(zip(*map(np.asarray, packed), strict=True)):
        for number in set(numbers[numbers >= 0].tolist()):
            here = numbers == number
            found[row, number] = (inputs[here].tolist(), targets[here].tolist())
    return found


def test_pack_puts_the_longest_where_the_least_room_is_left():
    packed = pf.data.pack(DOCUMENTS, 8)
    np.testing.assert_array_equal(packed.inputs, [[5, 2, 6, 1, 1, 5, 1, 2], [5, 4, 4, 2, 0, 0, 0, 0]])
    np.testing.assert_array_equal(packed.targets, [[2, 6, 1, 1, 3, 1, 2, 3], [4, 4, 2, 1, 0, 0, 0, 0]])
    np.testing.assert_array_equal(packed.documents, [[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, -1, -1, -1, -1]])
    np.testing.assert_array_equal(packed.counts, np.asarray(packed.documents) >= 0)
    # A window with room for 3 and one with room for 4: an input of 3 tokens goes where it leaves nothing.
    documents = [range(9), range(6), range(5), range(4)]
    np.testing.assert_array_equal(pf.data.pack(documents, 8).documents[:, -1], [0, 1, -1])


def test_pack_fills_each_window_if_it_may_cut():
    packed = pf.data.pack(DOCUMENTS, 8, cut=True)
    np.testing.assert_array_equal(packed.documents, [[0, 0, 0, 1, 1, 1, 1, 2], [0, 0, 0, 0, -1, -1, -1, -1]])
    np.testing.assert_array_equal(packed.targets[:, 7], [2, 0])
    np.testing.assert_array_equal(packed.inputs[1, :4], [2, 6, 1, 1])


@given(LISTS)
def test_pack_keeps_every_document_whole(documents):
    packed = pf.data.pack(documents, 7)
    found = sorted(inputs + targets[-1:] for inputs, targets in pairs_of(packed).values())
    assert found == sorted(documents)
    assert all(inputs[1:] == targets[:-1] for inputs, targets in pairs_of(packed).values())
    room = sorted(np.asarray(packed.documents == -1).sum(axis=1))
    assert len(room) == 1 or min(len(each) - 1 for each in documents) > room[0]
    assert len(room) <= len(documents)


@given(LISTS, st.integers(2, 9))
def test_pack_with_cuts_reads_every_pair_once_and_wastes_one_window_at_most(documents, window_len):
    packed = pf.data.pack(documents, window_len, cut=True)
    read = np.asarray(packed.documents >= 0)
    inputs, targets = np.asarray(packed.inputs)[read], np.asarray(packed.targets)[read]
    expected = [pair for ids in documents for pair in pairwise(ids)]
    assert list(zip(inputs.tolist(), targets.tolist(), strict=True)) == expected
    assert read[:-1].all()


@pytest.mark.equation("eq-recipes-packing")
def test_a_token_sees_its_own_document_up_to_itself():
    documents = np.array([[0, 0, 0, 1, 1, -1], [0, 1, 1, 1, 2, 2]])
    mask = pf.attention.Mask.of_documents(jnp.asarray(documents)).table(6, 6)
    for row, numbers in enumerate(documents):
        for query in range(6):
            for key in range(6):
                assert mask[row, query, key] == (numbers[query] == numbers[key] and key <= query)


FORMS = {
    **{scheme: {"position_scheme": scheme} for scheme in ("learned", "alibi")},
    "windows": {"position_scheme": "rotary", "window": 2, "pattern": ("window", "full")},
    "sinks": {"position_scheme": "rotary", "sinks": True},
    "blockwise": {"position_scheme": "alibi", "kernel": "blockwise"},
}


@pytest.fixture(params=FORMS)
def model(request):
    fields = FORMS[request.param]
    if "kernel" not in fields:
        return drawn(pf.Decoder, config_of(**fields), 0)
    model = drawn(pf.Decoder, config_of(position_scheme="alibi"), 0)
    return eqx.tree_at(
        lambda m: [b.attention.kernel for b in m.stack.blocks], model, 2 * [pf.attention.Blockwise(block_size=3)]
    )


def test_packed_logits_and_gradients_are_those_of_each_document_alone(model):
    packed = pf.data.pack(DOCUMENTS, 8)
    logits = model(packed.inputs, packed.documents)
    for (row, column), ids in zip([(0, 5), (1, 0), (0, 0)], DOCUMENTS, strict=True):
        alone = model(jnp.asarray(ids[:-1]))
        np.testing.assert_allclose(logits[row, column : column + len(alone)], alone, atol=1e-5)

    def one_by_one(model):
        each = [jnp.asarray(ids) for ids in DOCUMENTS]
        losses = [pf.training.next_token_loss(model, pf.data.Windows(ids[:-1], ids[1:])) for ids in each]
        return sum(loss * (len(ids) - 1) for loss, ids in zip(losses, each, strict=True)) / 12

    loss, gradient = eqx.filter_value_and_grad(pf.training.next_token_loss)(model, packed)
    expected, expected_gradient = eqx.filter_value_and_grad(one_by_one)(model)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    for ours, theirs in zip(jax.tree.leaves(gradient), jax.tree.leaves(expected_gradient), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_what_the_padding_holds_changes_nothing():
    model, packed = drawn(pf.Decoder, config_of(position_scheme="rotary"), 0), pf.data.pack(DOCUMENTS, 8)
    others = packed._replace(inputs=jnp.where(packed.counts, packed.inputs, 6), targets=packed.targets)
    np.testing.assert_array_equal(
        pf.training.next_token_loss(model, packed), pf.training.next_token_loss(model, others)
    )


def test_without_a_mask_a_document_sees_the_one_before():
    model, packed = drawn(pf.Decoder, config_of(position_scheme="rotary"), 0), pf.data.pack(DOCUMENTS, 8)
    assert jnp.abs(model(packed.inputs) - model(*packed.read))[0, 5:].max() > 0.01
    np.testing.assert_allclose(model(packed.inputs)[0, :5], model(*packed.read)[0, :5], atol=1e-6)


def test_a_state_that_would_run_across_documents_is_refused():
    stack = pf.StackConfig(d_model=12, num_layers=2, num_heads=3, pattern=("delta", "full"))
    model, packed = drawn(pf.Decoder, pf.DecoderConfig(7, 8, stack=stack), 0), pf.data.pack(DOCUMENTS, 8)
    with pytest.raises(ValueError, match="mask is a table, and a state is read onwards"):
        model(*packed.read)


@pytest.mark.parametrize(
    ("documents", "options", "message"),
    [
        ([], {"window_len": 2}, "documents is empty"),
        ([[1, 2], [3]], {"window_len": 2}, r"documents\[1\] has one token"),
        ([[1, 2], [1, 2, 3, 4]], {"window_len": 2}, r"documents\[1\] has 4 tokens"),
        ([[1, -2]], {"window_len": 2}, r"documents\[0\]\[1\] is -2"),
    ],
)
def test_pack_refuses(documents, options, message):
    with pytest.raises(ValueError, match=message):
        pf.data.pack(documents, **options)
