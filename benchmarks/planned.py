"""What `pf.plan` says beforehand of a training step on this machine, and what the step then takes."""

import jax
import jax.numpy as jnp

import plainformer as pf
from benchmarks.hardware import use_all_cores
from benchmarks.report import Goal, Section, Settings, say, table
from benchmarks.steps import our_training
from benchmarks.timing import in_turn, milliseconds, ratios
from benchmarks.training_step import new_batch

# Layers, width, texts and their length.
SIZES = [(4, 256, 16, 128), (6, 384, 8, 256), (2, 512, 16, 128), (12, 768, 2, 128), (4, 256, 4, 512)]


def planned(settings: Settings) -> Section:
    """Each size in turn, with this machine's speeds measured in the same round."""
    use_all_cores()
    rows, found = [], []
    for layers, width, texts, seq_len in SIZES:
        stack = pf.StackConfig(d_model=width, num_layers=layers, num_heads=width // 64)
        config = pf.DecoderConfig(1024, seq_len, stack)
        batch = pf.data.Windows(*(jnp.asarray(array, jnp.int32) for array in new_batch(config, texts)))
        model = pf.Decoder(config, key=jax.random.key(0))
        run, _ = our_training(model, pf.training.next_token_loss, batch)
        run()
        expected = []

        def plan(width=width, config=config, texts=texts, expected=expected):
            machine = pf.models.this_machine(memory=8e9, size=width)
            expected.append(pf.plan(config, {"data": 1}, machine, batch_size=texts))

        times = in_turn({"step": run, "plan": plan}, settings.rounds)
        in_a_row = [each.step_seconds[1] for each in expected[-settings.rounds :]]
        share = ratios(in_a_row, times["step"])
        found.append(share.middle)
        name = f"{layers} × {width}, {texts} × {seq_len} tokens"
        say(f"plan, {name}: {share.show(2)}")
        rows.append([name, milliseconds(in_a_row), milliseconds(times["step"]), share.show(2), expected[-1].bound])
    note = (
        "Arithmetic, traffic with memory one after the other, by the speeds of the products of a layer as wide as "
        "the model and of a copy, measured in the same rounds."
    )
    head = ["what", "planned, ms", "taken, ms", "planned / taken", "bound by"]
    goals = [
        Goal("the plan's time of a step by the time taken, least", min(found), "at least", 0.75),
        Goal("the plan's time of a step by the time taken, most", max(found), "at most", 1.25),
    ]
    return Section("Planned and taken", note + "\n\n" + table(head, rows), goals)
