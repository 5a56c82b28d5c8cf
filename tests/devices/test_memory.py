"""What a training step takes of each device's memory, as the compiler counts it."""

import dataclasses

import jax
import numpy as np
import pytest
from on_devices import CONFIG, LOSSES, new_mesh

import plainformer as pf
from plainformer.training.sharding import FULLY_SHARDED, TENSOR

SEQ = 96
STACK = pf.StackConfig(d_model=32, num_layers=2, num_heads=8)
MODEL = pf.Decoder(pf.DecoderConfig(40, SEQ, stack=STACK), key=jax.random.key(0))
IDS = np.zeros((16, SEQ), np.int32)


def memory(mesh, table, trainable=None, **fields):
    """What the compiler says of the memory of a training step, on each device."""
    batch, config = pf.data.Windows(IDS, IDS), dataclasses.replace(CONFIG, **fields)
    options = {"mesh": mesh, "sharding": table, "trainable": trainable}
    return pf.training.compile_step(MODEL, LOSSES["decoder"], batch, config, **options).memory_analysis()


@pytest.fixture(scope="module")
def shared():
    return memory(new_mesh(4, 2), FULLY_SHARDED | TENSOR)


def test_a_mesh_shares_what_is_kept(shared):
    alone = memory(None, None)
    assert 1 / 8 < shared.argument_size_in_bytes / alone.argument_size_in_bytes < 1 / 6
    assert shared.temp_size_in_bytes < alone.temp_size_in_bytes / 5


@pytest.mark.parametrize(
    ("fields", "least", "most"),
    [
        ({"precision": "bfloat16"}, 0.9, 0.98),  # processors compute with 32 bits nevertheless
        ({"accumulation_steps": 2}, 0.45, 0.6),
        ({"rematerialise": "blocks"}, 0.45, 0.6),
        ({"rematerialise": "all but products"}, 0.5, 0.65),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else "",
)
def test_a_step_takes_less_memory(shared, fields, least, most):
    found = memory(new_mesh(4, 2), FULLY_SHARDED | TENSOR, **fields)
    assert least < found.temp_size_in_bytes / shared.temp_size_in_bytes < most
    assert found.argument_size_in_bytes == shared.argument_size_in_bytes  # weights and moments keep 32 bits


def test_a_mesh_shares_what_is_not_trained(shared):
    """All but the biases: what stays as it is lies in eight parts, as what is trained does."""
    found = memory(new_mesh(4, 2), FULLY_SHARDED | TENSOR, trainable=lambda place: place.endswith("bias"))
    assert found.argument_size_in_bytes < shared.argument_size_in_bytes / 2
