"""A product in parts, bytes around a ring, and when a cut pays: by hand, by loops, and by balancing two times."""

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer as pf
from plainformer.training import scaling

X = np.random.default_rng(18).normal(size=(6, 12)).astype(np.float32)
WEIGHT = np.random.default_rng(81).normal(size=(12, 9)).astype(np.float32)


def cut_in_three(cut):
    return pf.training.cut_product(jnp.asarray(X), jnp.asarray(WEIGHT), 3, cut)


@pytest.mark.equation("eq-scaling-rows", "eq-scaling-columns", "eq-scaling-summed", "eq-scaling-gathered")
def test_cut_product_of_each_device_reads_its_own_part_alone():
    rows, columns, summands, gathered = (cut_in_three(cut) for cut in ("rows", "columns", "summed", "gathered"))
    for device in range(3):
        two, three, four = (slice(size * device, size * (device + 1)) for size in (2, 3, 4))
        np.testing.assert_allclose(rows[device], X[two] @ WEIGHT, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(gathered[device], X[two] @ WEIGHT, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(columns[device], X @ WEIGHT[:, three], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(summands[device], X[:, four] @ WEIGHT[four], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("cut", "devices", "said"),
    [
        ("rows", 4, "the rows of x are 6"),
        ("columns", 4, "the columns of weight are 9"),
        ("summed", 5, "the columns of x are 12"),
        ("gathered", 4, "the rows of x are 6"),
    ],
)
def test_cut_product_refuses_what_does_not_divide(cut, devices, said):
    with pytest.raises(ValueError, match=f"cut is '{cut}', and {said}, which {devices} devices"):
        pf.training.cut_product(jnp.asarray(X), jnp.asarray(WEIGHT), devices, cut)


def ring(collective, num_devices, num_bytes):
    """Go around a ring piece by piece; return what a device has sent, when all hold all that they should."""
    piece, sent = num_bytes / num_devices, 0.0
    summands = [[{device} for _ in range(num_devices)] for device in range(num_devices)]  # who is in which piece's sum
    everyone = set(range(num_devices))
    shifts = {"reduce-scatter": [0], "all-gather": [1], "all-reduce": [0, 1]}[collective]
    if collective == "all-gather":
        summands = [[everyone if i == (d + 1) % num_devices else set() for i in everyone] for d in everyone]
    for shift in shifts:
        for step in range(num_devices - 1):
            moving = [(device + shift - step) % num_devices for device in everyone]
            copies = [set(summands[device][moving[device]]) for device in everyone]
            for device in everyone:
                summands[(device + 1) % num_devices][moving[device]] |= copies[device]
            sent += piece
    complete = [[summands[d][i] == everyone for i in everyone] for d in everyone]
    wanted = np.roll(np.eye(num_devices, dtype=bool), 1, axis=1) if collective == "reduce-scatter" else True
    assert (np.array(complete) == wanted).all()
    return sent


@pytest.mark.equation("eq-scaling-sent")
@pytest.mark.parametrize("collective", ["all-gather", "reduce-scatter", "all-reduce"])
@pytest.mark.parametrize("num_devices", [1, 5])
def test_collective_bytes_are_those_of_a_ring(collective, num_devices):
    counted = pf.training.collective_bytes(collective, 1680, num_devices)
    assert counted == pytest.approx(ring(collective, num_devices, 1680), rel=1e-12)


@pytest.mark.equation("eq-scaling-state")
def test_state_bytes_by_hand():
    assert pf.training.state_bytes(7_000_000_000) == 112e9  # four numbers of four bytes
    cuts = ("nothing", "moments", "gradients", "weights")
    assert [pf.training.state_bytes(100, 8, cut) for cut in cuts] == [1600, 900, 550, 200]
    assert pf.training.state_bytes(100, 5, "weights", bytes_per_number=2) == 160


@pytest.mark.equation("eq-scaling-data-pays")
def test_least_tokens_balance_computing_and_sending():
    num_devices, parameters, flops, link = 8, 1_000_000, 3e12, 5e9
    tokens = pf.training.least_tokens(num_devices, flops, link, bytes_per_number=4)
    computing = 6 * parameters * tokens / flops
    sending = pf.training.collective_bytes("all-reduce", 4 * parameters, num_devices) / link
    assert computing == pytest.approx(sending, rel=1e-12)


@pytest.mark.equation("eq-scaling-tensor-pays")
@pytest.mark.parametrize(("num_devices", "tokens"), [(2, 100), (8, 3000)])
def test_least_width_balances_computing_and_sending_whatever_is_read(num_devices, tokens):
    flops, link = 3e12, 5e9
    width = pf.training.least_width(num_devices, flops, link, bytes_per_number=4)
    computing = 6 * 12 * width**2 * tokens / num_devices / flops
    sending = 4 * 2 * (num_devices - 1) / num_devices * 4 * tokens * width / link
    assert computing == pytest.approx(sending, rel=1e-12)


@pytest.mark.equation("eq-scaling-data-pays")
@pytest.mark.equation("eq-scaling-tensor-pays")
def test_nothing_has_to_be_sent_by_one_device():
    assert scaling.least_tokens(1, 1e15, 1e9) == scaling.least_width(1, 1e15, 1e9) == 0


@pytest.mark.equation("eq-scaling-bubble")
@pytest.mark.parametrize(("stages", "micro"), [(1, 4), (3, 5)])
def test_bubble_is_what_a_timetable_leaves_empty(stages, micro):
    timetable = np.zeros((stages, stages + micro - 1), bool)
    for stage in range(stages):
        timetable[stage, stage : stage + micro] = True  # a part arrives when the stage before is done with it
    assert pf.training.bubble(stages, micro) == pytest.approx(1 - timetable.mean(), abs=1e-12)
