"""Trains a line in one, three and four processes, and with bad input; prints as JSON what came of it: DIRECTORY."""

import dataclasses
import json
import shutil
import signal
import sys
from functools import partial
from pathlib import Path

import jax
import numpy as np
from jaxtyping import Array, Float
from tiny_run import CONFIG, Line, batch_at, run, squared_error
from together import Together

import plainformer as pf
from plainformer.checks import refuse
from plainformer.training.processes import Companions
from plainformer.training.sharded_checkpoint import SEAL
from plainformer.training.sharding import FULLY_SHARDED

LINE = dataclasses.replace(CONFIG, num_steps=20, evaluate_every=10)
BASE = Path(sys.argv[1])


class Columns(Line):
    """A line whose columns have a name by which they may be cut."""

    weight: Float[Array, "5 d_model"]
    bias: Float[Array, " d_model"]


def all_devices():
    """A mesh of the devices of all processes; none for a process of its own."""
    return jax.make_mesh((jax.device_count(),), ("data",)) if jax.process_count() > 1 else None


def together(name: str, count: int, work) -> list[str]:
    """What each of the processes has said at its end."""
    with Together(BASE / name / "logs", count, work) as processes:
        processes.end()
        return [processes.said(number) for number in range(count)]


def held_out(model) -> float:
    """A loss on what the model is not trained on."""
    return squared_error(model, batch_at(99))


def training(name: str, kind=Columns, **options):
    """The work of training in a folder, which leaves its metrics, and notes how often a callback was called."""

    def work(number: int) -> None:
        called: list[int] = []
        callbacks = [lambda metrics, step: called.append(step)]
        arguments = {"config": LINE, "directory": BASE / name / "run", "mesh": all_devices(), **options}
        result = run(model=kind(), evaluate=held_out, callbacks=callbacks, **arguments)
        found = {
            "losses": [row["loss"] for row in result.metrics],
            "validation": [row["validation_loss"] for row in result.metrics if "validation_loss" in row],
            "weight": [shard.data.shape for shard in result.model.weight.addressable_shards],
            "callbacks": len(called),
        }
        (BASE / name / f"{number}.json").write_text(json.dumps(found))

    return work


def train_decoder(number: int, several: bool = False) -> None:
    """Train a decoder; where there are several processes, each has two devices, and all share each matrix."""
    if several:  # said before JAX is asked anything
        jax.config.update("jax_num_cpu_devices", 2)
    stack = pf.StackConfig(d_model=16, num_layers=1, num_heads=8)
    decoder = pf.Decoder(pf.DecoderConfig(24, 12, stack), key=jax.random.key(0))
    texts = np.random.default_rng(0).integers(24, size=(20, 4, 13))
    found = pf.fit(
        decoder,
        pf.training.next_token_loss,
        lambda step: pf.data.Windows(jax.numpy.asarray(texts[step, :, :-1]), jax.numpy.asarray(texts[step, :, 1:])),
        dataclasses.replace(LINE, learning_rate=0.003),
        mesh=jax.make_mesh((1, 8), ("data", "model")) if several else None,
        progress=False,
    )
    name = "decoder in four" if several else "decoder"
    (BASE / name / f"{number}.json").write_text(json.dumps({"losses": [row["loss"] for row in found.metrics]}))


def own_rows(step: int):
    """The batch of all, of which each process makes its own rows; the last has an entry out of range at step 2."""
    inputs, targets = (np.array(array) for array in batch_at(step))
    count, number = jax.process_count(), jax.process_index()
    part = slice(number * 12 // count, (number + 1) * 12 // count)
    inputs, targets = inputs[part], targets[part]
    if number == count - 1 and step == 2:
        inputs[1, 3] = 70
    rows = jax.NamedSharding(jax.make_mesh((jax.device_count(),), ("data",)), jax.P("data"))
    return tuple(jax.make_array_from_process_local_data(rows, array) for array in (inputs, targets))


def at_most_nine(model, batch, key):
    """The loss, of inputs that are checked as ids are."""
    inputs, targets = batch
    return squared_error(model, (refuse(inputs, inputs > 9, "inputs", "at most 9."), targets), key)


def try_what_is_refused(number: int) -> None:
    """Say what is wrong with one bad input after the other: all processes find it out, so that they can go on."""
    some = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("data",))
    file = BASE / "file"
    file.touch()
    for bad in (
        {"batches": lambda step: tuple(array[:2] for array in batch_at(step))},
        {"directory": BASE / "apart" / str(number)},  # folders of one name on different machines, as it were
        {"directory": file / "run"},
        {"mesh": some},
        {"model": jax.tree.map(lambda array: array + number, Columns())},
    ):
        try:
            run(**{"config": LINE, "mesh": all_devices(), **bad})
        except (ValueError, OSError) as error:
            print(type(error).__name__, error, flush=True)


def end_early(number: int) -> None:
    """Train on iterators of 2 and 3 batches."""
    result = run(LINE, batches=iter([batch_at(step) for step in range(2 + number)]), mesh=all_devices())
    print(f"{len(result.metrics)} steps", flush=True)


def interrupt_one(number: int) -> None:
    """Ctrl-C comes in the second process alone."""

    def batches(step):
        if number == 1 and step == 5:
            signal.raise_signal(signal.SIGINT)
        return batch_at(step)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell makes what runs in the background deaf to it
    run(LINE, batches=batches, directory=BASE / "interrupted" / "run", mesh=all_devices())


def call_and_fail(number: int) -> None:
    """Train with a callback that fails, as it only does in the first process."""
    Companions.patience = 0.5

    def fail(metrics, step):
        raise KeyError("no such run")

    run(LINE, directory=BASE / "alone" / "run", mesh=all_devices(), callbacks=[fail])


def main() -> None:
    """All of it, one after the other."""
    said = {}
    for name, count in (("one", 1), ("four", 4)):
        together(name, count, training(name))
    together("decoder", 1, train_decoder)
    together("decoder in four", 4, partial(train_decoder, several=True))
    longer = dataclasses.replace(LINE, num_steps=24)
    together("three", 3, training("three", sharding=FULLY_SHARDED))  # one column of weights each
    said["three to one"] = together("three", 1, training("three", config=longer))
    said["one to two"] = together("one", 2, training("one", config=longer))
    said["another model"] = together("four", 2, training("four", trainable=lambda place: place == "bias"))
    said["own rows"] = together("rows", 2, training("rows", batches=own_rows, loss=at_most_nine))
    said["refused"] = together("refused", 3, try_what_is_refused)
    said["uneven"] = together("uneven", 2, end_early)
    said["interrupted"] = together("interrupted", 2, interrupt_one)
    shutil.copytree(BASE / "interrupted" / "run", BASE / "damaged" / "run")
    next((BASE / "damaged" / "run" / "000006" / "state").rglob("manifest.ocdbt")).write_bytes(b"")
    shutil.copytree(BASE / "interrupted" / "run" / "000006", BASE / "damaged" / "run" / "000020")
    (BASE / "damaged" / "run" / "000020" / SEAL).unlink()  # as if a process had been killed before the seal
    (BASE / "damaged" / "run" / "202611" / "notes").mkdir(parents=True)  # which is no checkpoint
    said["damaged"] = together("damaged", 2, training("damaged", Line))
    said["alone"] = together("alone", 2, call_and_fail)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
