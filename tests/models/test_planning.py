"""What training takes on many devices: by hand for a tiny decoder, and for published ones."""

import dataclasses

import jax
import pytest
from flat import decoder_config

import plainformer as pf
from plainformer.models import Hardware, plan, this_machine
from plainformer.models.hardware import HARDWARE
from plainformer.training import DATA, FULLY_SHARDED, SEQUENCE, TENSOR

TINY = {"d_model": 12, "num_layers": 5, "num_heads": 6, "d_ff": 10, "norm": "rms", "use_bias": False}
CONFIG = decoder_config(14, 9, **TINY, position_scheme="rotary", activation="relu", tied_embedding=False)
SIMPLE = Hardware(1e6, 1e6, 1e5, 1e4, 1e3, 2)  # two devices a node
WEIGHTS = 5 * (4 * 12 * 12 + 2 * 12 * 10 + 2 * 12) + 2 * 14 * 12 + 12
LLAMA_2 = pf.StackConfig(
    d_model=8192,
    num_layers=80,
    num_heads=64,
    num_kv_heads=8,
    d_ff=28672,
    attention="blockwise",
    norm="rms",
    activation="swiglu",
    use_bias=False,
    position_scheme="rotary",
)


def test_plan_of_one_device_by_hand():
    found = plan(CONFIG, {"data": 1}, SIMPLE, batch_size=4, seq_len=7)
    block = 6 * 12 + 4 * 12 + 2 * 10 + 2 * 6 * 7 + 3 * 6  # stream and norms, heads, network, weights of attention
    assert (found.num_devices, found.num_parameters, found.num_tokens) == (1, WEIGHTS, 28)
    assert (found.parameters, found.moments, found.gradients) == (4 * WEIGHTS, 8 * WEIGHTS, 4 * WEIGHTS)
    assert found.activations == 28 * 4 * (5 * block + 3 * 12 + 2 * 14)
    assert (found.gathered, found.sent, found.sent_bytes) == (0, (), 0)
    assert found.early_gradients == 4 * 14 * 12  # of the table that predicts
    assert found.memory == found.parameters + found.moments + found.activations + found.early_gradients
    assert found.flops == found.model_flops == pf.training_flops(CONFIG, 28, 7)
    traffic = 5 * found.activations + 11 * found.parameters
    assert found.seconds == {"arithmetic": found.flops / 1e6, "memory": pytest.approx(traffic / 1e5), "links": 0}
    assert found.bound == max(found.seconds, key=found.seconds.get)
    assert found.step_seconds == (max(found.seconds.values()), sum(found.seconds.values()))


def test_plan_counts_what_is_sent_by_hand():
    mesh = jax.sharding.AbstractMesh((4, 2), ("data", "model"))  # or its sizes by name
    found = plan(CONFIG, mesh, SIMPLE, batch_size=8, sharding=FULLY_SHARDED | TENSOR)
    cut_twice, cut_once = 5 * (4 * 12 * 12 + 2 * 12 * 10) + 2 * 14 * 12, 5 * 2 * 12 + 12
    assert found.parameters == 4 * (cut_twice // 8 + cut_once // 4)
    whole, rows = 4 * (cut_twice // 2 + cut_once), 4 * (2 * 9) * 12
    by_reason = {(each.reason, each.collective.kind): each.sent_bytes for each in found.sent}
    assert found.gathered == whole - 4 * 14 * 12 // 2  # without the table that embeds
    assert by_reason == {
        ("weights", "all-gather"): 3 / 4 * whole,
        ("gradients", "reduce-scatter"): 3 / 4 * whole,
        ("attention", "all-reduce"): 5 * 2 * rows,  # on the way forward, and back
        ("networks", "all-reduce"): 5 * 2 * rows,
        ("embedding and logits", "all-reduce"): 2 * rows,
        ("the loss", "all-reduce"): 3 * 4 * (2 * 9),
    }
    inside = sum(each.sent_bytes for each in found.sent[2:]) / 1e4
    assert found.seconds["links"] == pytest.approx(2 * 3 / 4 * whole / 1e3 + inside)  # two devices are a node


def test_plan_of_a_processor_sums_before_it_adds():
    processor = dataclasses.replace(SIMPLE, joins_sums=False)
    for table, sums in (({"heads": "x"}, 2), ({"d_ff": "x"}, 1)):
        gated = decoder_config(14, 9, **TINY, activation="swiglu")
        found = [
            plan(gated, {"x": 2}, each, batch_size=8, sharding=table).sent[0].times for each in (SIMPLE, processor)
        ]
        assert found == [5 * 2, 5 * (2 + sums)]
    tied, separate = decoder_config(14, 9, **TINY), decoder_config(14, 9, **TINY, tied_embedding=False)
    sent = [plan(each, {"data": 4}, processor, batch_size=8).sent_bytes for each in (tied, separate)]
    joined = [plan(each, {"data": 4}, SIMPLE, batch_size=8).sent_bytes for each in (tied, separate)]
    assert sent[0] == sent[1] == joined[1] == joined[0] + 2 * 3 / 4 * 4 * 14 * 12
    assert plan(tied, {"data": 4}, SIMPLE, batch_size=8).num_parameters == pf.count_parameters(made(tied))


def made(config):
    return jax.eval_shape(lambda key: pf.Decoder(config, key=key), jax.random.key(0))


def test_plan_of_a_published_model_has_its_number_of_parameters_and_bounds_its_time():
    config = pf.DecoderConfig(32000, 4096, LLAMA_2, tied_embedding=False)
    mesh, table = {"data": 256, "model": 8}, FULLY_SHARDED | TENSOR
    found = plan(config, mesh, "A100", batch_size=1024, sharding=table, precision="bfloat16")
    assert found.num_parameters == 68_976_648_192  # as the published files hold
    assert found.parameters + found.moments < 0.01 * 12 * found.num_parameters
    # 2 trillion tokens took 1,720,320 hours of an A100 (Touvron et al., 2023, table 2): no step is faster than planned.
    at_least = 2e12 / found.num_tokens * found.step_seconds[0] * found.num_devices / 3600
    assert 0.5 < at_least / 1_720_320 < 0.55
    anew = plan(config, mesh, "A100", batch_size=1024, sharding=table, precision="bfloat16", rematerialise="blocks")
    assert anew.memory < 80e9  # what the device has
    assert "{:.3f} to {:.3f} ms, bound by arithmetic".format(*(1e3 * each for each in found.step_seconds)) in str(found)


def test_plan_keeps_less_in_half_the_bytes_and_without_scores():
    options = {"batch_size": 4, "precision": "bfloat16"}
    wide, narrow = plan(CONFIG, {"data": 1}, "H100", batch_size=4), plan(CONFIG, {"data": 1}, "H100", **options)
    assert wide.activations / 2 < narrow.activations < wide.activations
    assert (narrow.parameters, narrow.gathered) == (wide.parameters, (wide.parameters - 4 * 14 * 12) // 2)
    blockwise = decoder_config(14, 9, **TINY, attention="blockwise", activation="relu", tied_embedding=False)
    direct = plan(CONFIG, {"data": 1}, "H100", batch_size=4).activations
    saved = 36 * 4 * 5 * (2 * 6 * 9 + 3 * 6 - 12 - 6)
    # It holds most on the way back, without the rows of a network, with 2 n s numbers in blocks; direct, at the end.
    on_the_way = 36 * 4 * (2 * 6 * 9 + 3 * 12 - 2 * 10 - (3 * 12 + 2 * 14))
    assert direct - plan(blockwise, {"data": 1}, "H100", batch_size=4).activations == saved - on_the_way


def test_plan_of_blocks_computed_anew_keeps_what_enters_them_and_one_more():
    kept, anew = (plan(CONFIG, {"data": 1}, SIMPLE, batch_size=4, rematerialise=anew) for anew in ("nothing", "blocks"))
    block = (kept.activations - 36 * 4 * (3 * 12 + 2 * 14)) // 5
    assert anew.activations == 36 * 4 * (5 * 12 - 2 * 10 + 6 * 9) + block  # on the way back through its attention
    assert anew.early_gradients == 4 * (WEIGHTS - 4 * 12 * 12)
    forward = 5 * (4 * 12 * 12 + 12 * 10 + 2 * 12 * 9)  # the product with d_ff rows at the end is not needed again
    assert anew.flops - kept.flops == 2 * 36 * forward
    assert anew.model_flops == kept.model_flops
    by_heads = [
        plan(CONFIG, {"model": 2}, SIMPLE, batch_size=4, rematerialise=anew).sent[0] for anew in ("nothing", "blocks")
    ]
    assert [each.times for each in by_heads] == [5 * 2, 5 * 3]


@pytest.mark.parametrize(
    ("mesh", "change", "message"),
    [
        ({"data": 3}, {}, "'batch' has size 8"),
        ({"model": 4}, {}, "'heads' has size 6"),
        ({"data": 4}, {"sharding": TENSOR}, "'heads' over 'model'"),
        ({"data": 4}, {"sharding": SEQUENCE}, "'seq'"),
        ({"data": 4}, {"sharding": {"batch": "data", "heads": "data"}}, "expected another axis"),
        ({"data": 4, "model": 2}, {"sharding": DATA | {"d_model": "model"}}, "'d_model'"),
        ({"rows": 4}, {}, "'rows'"),
        ({"data": 2, "rows": 4}, {"sharding": DATA}, "Nothing is cut"),
        ({"data": 4}, {"hardware": "H1000"}, "hardware is 'H1000'"),
        ({"data": 4}, {"seq_len": 10}, "10 tokens"),
        ({"data": 512}, {"batch_size": 512, "hardware": "TPU v6e"}, "512 devices"),
    ],
)
def test_plan_refuses(mesh, change, message):
    change = {"hardware": "A100", "batch_size": 8, **change}
    with pytest.raises(ValueError, match=message):
        plan(CONFIG, mesh, change.pop("hardware"), **change)


@pytest.mark.parametrize(
    ("fields", "mesh", "message"),
    [
        ({"pattern": ("delta", "full")}, {"data": 1}, "'delta'"),
        ({"norm_placement": "output"}, {"data": 1}, "not known what is kept"),
        ({"qk_norm": True, "qk_norm_over": "row"}, {"data": 1}, "not known what is kept"),
        ({"attention": "linear"}, {"data": 1}, "'linear'"),
        ({"position_scheme": "relative"}, {"data": 2}, "'relative', of which it is not known what devices send"),
        ({"experts": pf.blocks.ExpertsConfig(num_experts=3, per_token=2, width=5)}, {"data": 1}, "There are experts"),
        ({"num_heads": 12, "num_kv_heads": 3, "d_ff": 12}, {"model": 4}, "num_kv_heads=3"),
    ],
)
def test_plan_refuses_what_it_does_not_know(fields, mesh, message):
    with pytest.raises(ValueError, match=message):
        plan(decoder_config(16, 9, **TINY | fields), mesh, SIMPLE, batch_size=4)


def test_hardware_is_as_the_sheets_say_in_one_direction():
    assert HARDWARE["H100"].link_bandwidth == 900e9 / 2
    assert HARDWARE["TPU v5p"].link_bandwidth == 4800e9 / 8


def test_this_machine_is_measured():
    found = this_machine(8e9, size=256)
    assert found.memory == 8e9
    assert 1e8 < found.flops < 1e14
    assert found.memory_bandwidth == 2 * found.link_bandwidth > 1e7
    assert not found.joins_sums
    with pytest.raises(ValueError, match="size is 2,097,152; expected at most 8,192"):
        this_machine(8e9, size=2**21)
