"""What training a decoder takes on many devices, before it is trained: memory, what is sent, time."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import equinox as eqx
import jax
from jax.sharding import AbstractMesh, Mesh

from plainformer.checks import Count, Positive, check_each, check_length, checked
from plainformer.models.accounting import training_flops
from plainformer.models.config import GATES
from plainformer.models.decoder import Decoder, DecoderConfig
from plainformer.models.hardware import HARDWARE, Hardware
from plainformer.models.kept import fullest_moment, kept_bytes
from plainformer.training.axes import axis_names
from plainformer.training.operations import Collective
from plainformer.training.sharding import default_table

Precision = Literal["float32", "bfloat16"]
# How often each of them passes between a device and its memory: written, read by what follows, read on the way back,
# where a gradient of its size is written and read, too.
PASSES = 5
AXES = ("batch", "d_model", "heads", "d_ff", "vocab")


class Sent(NamedTuple):
    """Something that devices send each other in a step: what for, the collective, how often, and bytes a second."""

    reason: str
    collective: Collective
    times: int
    bandwidth: float

    @property
    def sent_bytes(self) -> float:
        """How many bytes each device sends for it in a step."""
        return self.times * self.collective.sent_bytes

    @property
    def seconds(self) -> float:
        """How long sending takes in a step."""
        return self.sent_bytes / self.bandwidth


@dataclasses.dataclass(frozen=True)
class Plan:
    r"""What `plan` returns: of each device the bytes it holds and sends in a step, and how long a step takes.

    Args:
        num_devices, num_parameters, num_tokens: of the whole: devices, learned numbers, and tokens of a batch.
        parameters, moments, gradients: bytes of a device's part of the weights, of Adam's two averages, of gradients.
        gathered: bytes of the weights that a device computes with, where these are others than its part; without the
            table that embeds, which is not needed for long.
        activations, early_gradients: bytes of what is kept for the gradients, or computed from it, and of gradients
            that are there already, when most is held on the way forward and back.
        sent: what devices send each other, as a tuple of `Sent`.
        flops, traffic: operations of a device in a step; bytes that pass between it and its memory.
        model_flops: operations of the whole step, if none is done twice.
        hardware: what the device can do.
    """

    num_devices: int
    num_parameters: int
    num_tokens: int
    parameters: int
    moments: int
    gradients: int
    gathered: int
    activations: int
    early_gradients: int
    sent: tuple[Sent, ...]
    flops: int
    traffic: int
    model_flops: int
    hardware: Hardware

    @property
    def memory(self) -> int:
        """Bytes that a device holds at most: on the way forward and back, or at the end, with all gradients."""
        on_the_way = self.gathered + self.activations + self.early_gradients
        return self.parameters + self.moments + max(on_the_way, self.gradients)

    @property
    def sent_bytes(self) -> float:
        """Bytes that a device sends in a step."""
        return math.fsum(each.sent_bytes for each in self.sent)

    @property
    def seconds(self) -> dict[str, float]:
        """How long a step's arithmetic takes, its traffic with memory, and what is sent, each at full speed."""
        return {
            "arithmetic": self.flops / self.hardware.flops,
            "memory": self.traffic / self.hardware.memory_bandwidth,
            "links": math.fsum(each.seconds for each in self.sent),
        }

    @property
    def bound(self) -> str:
        """Which of the three takes longest."""
        return max(self.seconds, key=self.seconds.__getitem__)

    @property
    def step_seconds(self) -> tuple[float, float]:
        """How long a step takes: at least, if all three go on at the same time; and one after the other."""
        return max(self.seconds.values()), sum(self.seconds.values())

    @property
    def utilisation(self) -> tuple[float, float]:
        """The share of the devices' operations that the model needs (MFU): one after the other, and at most."""
        needed = self.model_flops / self.num_devices / self.hardware.flops
        at_least, in_turn = self.step_seconds
        return needed / in_turn, needed / at_least

    def __str__(self) -> str:
        parts = ("parameters", "moments", "gradients", "gathered", "activations", "memory")
        lines = [f"{self.num_parameters:,} numbers on {self.num_devices:,} devices, {self.num_tokens:,} tokens a step"]
        lines += [f"  {part:<12}{getattr(self, part) / 1e9:12.3f} GB" for part in parts]
        lines[-1] += f" of {self.hardware.memory / 1e9:.0f} GB"
        lines += [f"  sent        {each.sent_bytes / 1e9:12.3f} GB for {each.reason}" for each in self.sent]
        lines += [f"  {part:<12}{1e3 * seconds:12.3f} ms" for part, seconds in self.seconds.items()]
        least, most = self.step_seconds
        low, high = self.utilisation
        lines += [f"  a step      {1e3 * least:12.3f} to {1e3 * most:.3f} ms, bound by {self.bound}"]
        return "\n".join([*lines, f"  utilisation {low:12.1%} to {high:.1%}"])


@checked
def plan(
    config: DecoderConfig,
    mesh: Mesh | AbstractMesh | Mapping[str, int],
    hardware: Hardware | str,
    *,
    batch_size: Count,
    seq_len: Positive | None = None,
    sharding: Mapping[str, str] | None = None,
    precision: Precision = "float32",
    rematerialise: Literal["nothing", "blocks"] = "nothing",
) -> Plan:
    r"""Work out what a step of training takes on each device of a mesh, without any of the devices.

    Parameters and Adam's moments are those of the model, cut as the table says. With T tokens on a device, of width d,
    of network width f, h columns of heads, n heads in texts of s tokens, and V words in its part of the vocabulary, it
    keeps for gradients, in each block, as XLA compiles the package's own blocks for processors:

        T (2 d + 2 · 2 d + 4 h + 3 f + 2 n s + 3 n)     numbers: residual stream, two norms, heads, network, weights

    with 3 d for a layer norm, 2 f for `relu`, 5 f with a gate, and no n s but another h for `"blockwise"`, and without
    the masks of dropout; and once

        T (3 d + 2 V)     numbers: embedded tokens and last norm; logits and their exponentials.

    It holds most when the loss is known, beside the gradient of the table that predicts; or on the way back through the
    last block, where its network has f numbers more for each token, and its attention n s; with `"blockwise"`, in
    blocks of b tokens, 2 n b² / s, and for a single text twice that. Or at the end: processors sum all gradients then,
    and hold them before and after that. Of what programs compiled for eight host devices take, this is 89 to 110 % for
    widths of 64 and 128 and 16 to 2048 tokens; but 86 % for a large table that embeds and predicts, cut over the axis
    of the batch, with as many tokens as its width. Small arrays and those of a moment are not counted.

    Each device of n sends of an array of B bytes, along a ring: 2 (n - 1) / n B to sum it, and half of this to gather
    it, or to keep a piece of the sum. In a step gradients are summed over the devices that cut the batch; with
    `d_model` cut, weights are gathered before; with `heads` or `d_ff` cut, the T d numbers of each sublayer are summed
    on the way forward and on the way back (Shoeybi et al., 2020, section 3), and with few heads of keys these are, too,
    and gathered; with `vocab`, T d twice more, and three numbers a token. On processors XLA sums before it adds: once
    for each matrix that reads the rows, three times in attention, and twice for a table that embeds and predicts.

    Time is that of three rooflines (Williams et al., 2009): arithmetic, as `training_flops` counts it; traffic with
    memory, for which what is kept is written once and read twice, and its gradient written and read; weights are read
    three times, gradients written and read, and the optimiser reads three arrays and writes three; and what is sent.
    What a program computes beside matrix products, and what a device falls short of its sheet, is not in it.

    Args:
        mesh: devices, or only how many there are along each axis, such as `{"data": 256, "model": 8}`. Those along the
            last axis stand next to each other: it is the one to keep within a node.
        hardware: one of "A100", "H100", "H200", "B200", "TPU v5e", "TPU v5p", "TPU v6e"; or what `this_machine` says.
        batch_size, seq_len: texts of a step on all devices together, and their length; `None` for `context_len`.
        sharding: as for `fit`; `None` for `DATA` and `TENSOR`, by the names of the mesh's axes. `"seq"` is not counted.
        precision: as for `TrainingConfig`: with `"bfloat16"` what is kept, gathered and summed has 2 bytes a number,
            but exponentials. Processors compute with 4 nevertheless, so that only those are checked. A sheet's
            arithmetic is that of 16 bits in both, though a card computes with 32 bits more slowly.
        rematerialise: as for `TrainingConfig`; with `"blocks"`, of each only what enters it is kept, and of one at a
            time all; the way forward, but for the last product of each block, is gone twice.

    Raises:
        ValueError: for unknown hardware, for an axis that there is not, or a size that does not divide.

    Example:
        A model of 70 billion numbers does not fit on one device, and does on two thousand.

        >>> llama = pf.StackConfig(d_model=8192, num_layers=80, num_heads=64, num_kv_heads=8, d_ff=28672, norm="rms",
        ...     activation="swiglu", use_bias=False, position_scheme="rotary", attention="blockwise")
        >>> config = pf.DecoderConfig(32000, 4096, llama, tied_embedding=False)
        >>> options = {"batch_size": 1024, "precision": "bfloat16", "rematerialise": "blocks"}
        >>> alone = pf.plan(config, {"data": 1}, "A100", **options)
        >>> alone.num_parameters, alone.memory < 80e9
        (68976648192, False)
        >>> both = pf.training.FULLY_SHARDED | pf.training.TENSOR
        >>> many = pf.plan(config, {"data": 256, "model": 8}, "A100", sharding=both, **options)
        >>> round(many.memory / 1e9), many.bound, round(many.step_seconds[0], 1)
        (44, 'arithmetic', 4.1)
    """
    seq_len = config.context_len if seq_len is None else seq_len
    check_length("tokens", seq_len, config.context_len, "context_len")
    devices = _devices(mesh)
    table = _checked_table(devices, sharding)
    pieces = _pieces(config, devices, table, batch_size)
    hardware = _known(hardware)
    weights, blocks = _weights(config)
    whole = {**pieces, "d_model": 1}  # a device computes with all rows of its columns, gathered where they are cut
    num_bytes = 4 if precision == "float32" else 2
    copied = weights if num_bytes == 2 else [each for each in weights if _is_cut(each, pieces)]
    parameters = 4 * _count(weights, pieces)
    gradients, unsummed = _gradient_bytes(config, weights, pieces, hardware)
    num_texts = batch_size // pieces["batch"]
    num_tokens = num_texts * seq_len
    read_once = [] if config.tied_embedding else [("vocab", "d_model")]
    gathered = num_bytes * _count([each for each in copied if each[0] not in read_once], whole)
    anew, kept = rematerialise == "blocks", kept_bytes(config, pieces, num_texts, seq_len, num_bytes)
    made = num_tokens * (config.stack.num_layers * kept.block + kept.last)
    fullest = fullest_moment(config, pieces, kept, num_tokens, gathered, unsummed if anew else None)
    return Plan(
        num_devices=math.prod(devices.values()),
        num_parameters=_count(weights, dict.fromkeys(pieces, 1)),
        num_tokens=batch_size * seq_len,
        parameters=parameters,
        moments=2 * parameters,
        gradients=gradients,
        gathered=gathered,
        activations=fullest.activations,
        early_gradients=fullest.gradients,
        sent=tuple(
            Sent(reason, collective, times, _bandwidth(hardware, devices, table[name]))
            for name, reason, collective, times in _collectives(config, pieces, hardware, num_tokens, num_bytes, anew)
            if pieces[name] > 1 and collective.num_bytes and collective.sent_bytes
        ),
        flops=2 * num_tokens * _products(config, blocks, whole, seq_len, anew),
        traffic=PASSES * made + 3 * num_bytes * _count(weights, whole) + 2 * gradients + 6 * parameters,
        model_flops=training_flops(config, batch_size * seq_len, seq_len),
        hardware=hardware,
    )


Named = tuple[tuple[str | None, ...], tuple[int, ...]]  # the names of an array's axes, and their sizes


def _weights(config: DecoderConfig) -> tuple[list[Named], list[Named]]:
    """All arrays of a decoder, and those of its blocks, by names and sizes of their axes."""
    one_layer = dataclasses.replace(config, stack=dataclasses.replace(config.stack, num_layers=1))  # all are alike
    model = eqx.filter_eval_shape(lambda key: Decoder(one_layer, key=key), jax.random.key(0))
    names = axis_names(model)

    def without_blocks(tree):
        return eqx.tree_at(lambda tree: tree.stack.blocks, tree, ())

    blocks = config.stack.num_layers * _named(model.stack.blocks, names.stack.blocks)
    return blocks + _named(without_blocks(model), without_blocks(names)), blocks


def _named(part, names) -> list[Named]:
    found: list[Named] = []
    jax.tree.map(lambda leaf, axes: found.append((axes, leaf.shape)) if hasattr(leaf, "shape") else None, part, names)
    return found


def _count(arrays: list[Named], pieces: Mapping[str, int]) -> int:
    """How many numbers a device holds of arrays whose axes are cut into so many pieces."""
    cuts: list[int] = [math.prod(pieces.get(name or "", 1) for name in names) for names, _ in arrays]
    return sum(math.prod(sizes) // cut for (_, sizes), cut in zip(arrays, cuts, strict=True))


def _products(config: DecoderConfig, blocks: list[Named], pieces: Mapping[str, int], seq_len: int, anew: bool) -> int:
    """How many multiplications a device's matrix products have for each token: twice as many back as forward.

    What is computed anew is all of a block but its last product.
    """
    stack = config.stack
    widths = stack.num_heads // pieces["heads"] * (stack.key_width + stack.value_width)
    of_blocks = _count([each for each in blocks if len(each[0]) == 2], pieces) + stack.num_layers * widths * seq_len
    last = stack.num_layers * stack.d_model * stack.inner_width // pieces["d_ff"]
    logits = stack.d_model * config.vocab_size // pieces["vocab"]
    return 3 * (of_blocks + logits) + anew * (of_blocks - last)


def _is_cut(array: Named, pieces: Mapping[str, int]) -> bool:
    """Whether an array is gathered before a device computes with it."""
    return "d_model" in array[0] and pieces["d_model"] > 1


def _gradient_bytes(
    config: DecoderConfig, weights: list[Named], pieces: Mapping[str, int], hardware: Hardware
) -> tuple[int, int]:
    """The bytes of gradients at the end of the way back, and before they are summed over the devices.

    Where devices sum whole gradients at the end, they hold them before and after that.
    """
    if hardware.joins_sums:
        return (4 * _count(weights, pieces),) * 2
    whole, of_several = {**pieces, "d_model": 1}, pieces["batch"] > 1
    unsummed = 4 * _count(weights + _twice(config) if of_several else weights, whole)
    return (1 + of_several) * unsummed, unsummed


def _twice(config: DecoderConfig) -> list[Named]:
    """The table that embeds, if it predicts, too: it has two gradients."""
    return [(("vocab", "d_model"), (config.vocab_size, config.stack.d_model))] * config.tied_embedding


def _collectives(
    config: DecoderConfig,
    pieces: Mapping[str, int],
    hardware: Hardware,
    num_tokens: int,
    num_bytes: int,
    anew: bool,
):
    """Yield what cuts it, the reason, the collective and how often, of all that a step may send."""
    weights, stack = _weights(config)[0], config.stack
    whole = {**pieces, "d_model": 1}
    both = weights if hardware.joins_sums else weights + _twice(config)
    cut = num_bytes * _count([each for each in weights if _is_cut(each, pieces)], whole)
    summed = num_bytes * _count(both, whole)
    in_pieces = num_bytes * _count([each for each in both if _is_cut(each, pieces)], whole)
    in_pieces = in_pieces if hardware.joins_sums else 0
    group = pieces["batch"]
    yield "d_model", "weights", Collective("all-gather", cut, group), 1
    yield "d_model", "gradients", Collective("reduce-scatter", in_pieces // group, group), 1
    yield "batch", "gradients", Collective("all-reduce", summed - in_pieces, group), 1
    rows = num_bytes * num_tokens * stack.d_model
    forward, into_attention, into_network = 2 if anew else 1, 3, 2 if stack.activation in GATES else 1
    if hardware.joins_sums:
        into_attention = into_network = 1
    layers, group, key_heads = stack.num_layers, pieces["heads"], stack.num_kv_heads or stack.num_heads
    if key_heads == stack.num_heads:
        yield "heads", "attention", Collective("all-reduce", rows, group), layers * (forward + into_attention)
    else:  # few keys and values are not cut: their gradients are summed and gathered in place of the rows'
        shared = num_bytes * num_tokens * key_heads * (stack.key_width + stack.value_width)
        owners = min(group, key_heads)
        yield "heads", "attention", Collective("all-reduce", rows, group), layers * (forward + 1)
        yield "heads", "keys and values", Collective("all-reduce", shared // owners, group // owners), layers
        yield "heads", "keys and values", Collective("all-gather", shared, owners), layers
    yield "d_ff", "networks", Collective("all-reduce", rows, pieces["d_ff"]), layers * (1 + into_network)
    yield "vocab", "embedding and logits", Collective("all-reduce", rows, pieces["vocab"]), 2
    yield "vocab", "the loss", Collective("all-reduce", 4 * num_tokens, pieces["vocab"]), 3


def _devices(mesh) -> dict[str, int]:
    """How many devices there are along each axis."""
    sizes = mesh.shape if isinstance(mesh, Mesh | AbstractMesh) else mesh
    if not isinstance(sizes, Mapping) or not sizes or not all(isinstance(axis, str) for axis in sizes):
        expected = "expected a mesh of devices, or its sizes, such as {'data': 4, 'model': 2}"
        raise TypeError(f"mesh is {sizes!r}; {expected}.")
    check_each(Positive, **sizes)
    return dict(sizes)


def _checked_table(devices: dict[str, int], table: Mapping[str, str] | None) -> dict[str, str]:
    """The table, or that which the names of the axes suggest; raise `ValueError` for one that is not counted."""
    table = default_table([*devices]) if table is None else table
    if not isinstance(table, Mapping):
        raise TypeError(f"sharding is {table!r}; expected names of axes, such as FULLY_SHARDED | TENSOR.")
    for name, axis in table.items():
        if name not in AXES:
            raise ValueError(f"sharding cuts {name!r}, which is not counted; expected some of {', '.join(AXES)}.")
        if axis not in devices:
            there = ", ".join(map(repr, devices))
            raise ValueError(f"sharding cuts {name!r} over {axis!r}, and the mesh has {there}; expected one of these.")
        if (name == "d_model") != (axis == table.get("batch")) and name != "batch":
            other = "the axis of 'batch'" if name == "d_model" else "another axis than 'batch'"
            raise ValueError(f"sharding cuts {name!r} over {axis!r}; expected {other}, as in FULLY_SHARDED | TENSOR.")
    if unused := [axis for axis, size in devices.items() if size > 1 and axis not in table.values()]:
        raise ValueError(f"Nothing is cut over the axis {unused[0]!r}; expected a table that says what, such as DATA.")
    return dict(table)


def _pieces(
    config: DecoderConfig, devices: dict[str, int], table: Mapping[str, str], batch_size: int
) -> dict[str, int]:
    """Into how many pieces each axis is cut; raise `ValueError` where its size does not divide."""
    stack = config.stack
    if stack.position_scheme == "relative":
        raise ValueError("position_scheme is 'relative', of which it is not known what devices send; expected another.")
    if stack.latent is not None:
        raise ValueError(
            "latent attention keeps short vectors, of which it is not counted what is kept; expected None."
        )
    if stack.attention == "linear":
        raise ValueError("attention is 'linear', of which it is not known what is kept; expected another.")
    if stack.norm_placement in ("output", "sandwich") or stack.qk_norm_over == "row":
        what = f"norm_placement {stack.norm_placement!r} with qk_norm_over {stack.qk_norm_over!r}"
        raise ValueError(f"Of {what} it is not known what is kept; expected 'pre' or 'post', with 'head'.")
    if stack.experts is not None:
        raise ValueError("There are experts, of which it is not known what devices send; expected experts=None.")
    if "delta" in stack.kinds:
        raise ValueError("pattern has 'delta', of which it is not known what is kept; expected other kinds of blocks.")
    sizes = dict(
        zip(AXES, (batch_size, stack.d_model, stack.num_heads, stack.inner_width, config.vocab_size), strict=True)
    )
    pieces = {name: devices[table[name]] if name in table else 1 for name in AXES}
    for name, count in pieces.items():
        if sizes[name] % count:
            raise ValueError(
                f"The axis {name!r} has size {sizes[name]}, which {count} devices along {table[name]!r} cannot share "
                f"equally; expected a multiple of {count}, such as {-(-sizes[name] // count) * count}."
            )
    key_heads, count = stack.num_kv_heads or stack.num_heads, pieces["heads"]
    if key_heads % count and count % key_heads:
        raise ValueError(
            f"What {count} devices send each other for num_kv_heads={key_heads} is not known; expected a multiple of "
            f"{count} or one of its divisors, such as {math.gcd(key_heads, count)}."
        )
    return pieces


def _known(hardware: Hardware | str) -> Hardware:
    """The hardware of this name."""
    if isinstance(hardware, Hardware):
        return hardware
    if not isinstance(hardware, str) or hardware not in HARDWARE:
        raise ValueError(f"hardware is {hardware!r}; expected one of {', '.join(HARDWARE)}, or a Hardware.")
    return HARDWARE[hardware]


def _bandwidth(hardware: Hardware, devices: dict[str, int], axis: str) -> float:
    """How fast the devices along an axis send each other: by links, if they and all within stand in one node."""
    names = list(devices)
    together = math.prod(devices[name] for name in names[names.index(axis) :])
    if together <= hardware.node_size:
        return hardware.link_bandwidth
    if hardware.network_bandwidth is None:
        raise ValueError(
            f"{together} devices along {axis!r} are more than a node of {hardware.node_size}, and hardware has no "
            "network_bandwidth; expected fewer, or a Hardware that has."
        )
    return hardware.network_bandwidth
