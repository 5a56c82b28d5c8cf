"""Train a decoder of stories on all devices that there are.

    python train_on_devices.py                     on the devices of this machine, often one
    python train_on_devices.py --pretend 8         on its processor, as if it were eight devices
    python train_on_devices.py --join 127.0.0.1:8476 2 0        in two processes, of which this is the first;
    python train_on_devices.py --join 127.0.0.1:8476 2 1        the other, at the same time in another window
    srun python train_on_devices.py --cluster      under Slurm, or without srun on every worker of a TPU slice

On several machines --join takes the address of the first one, with a free port. On a cluster two lines change, FOLDER
and SHARE. A training that was stopped goes on where it was saved, also on another number of devices or processes; one
that has ended is not trained again, until you delete its folder.
"""

import argparse
import os
import sys

import jax
import jax.numpy as jnp
import numpy as np

import plainformer as pf

FOLDER = "run"  # on several machines: a folder that all of them see
SHARE = 1  # how many devices share each matrix, 1, 2, 4 or 8: at most those of one machine; the others share the batch
SAVED = f"{FOLDER}.safetensors"
STEPS, TEXTS = 20, 16


def find_devices() -> None:
    """Do what the words on the command line say of devices and processes, before JAX is asked for anything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pretend", type=int, metavar="DEVICES")
    parser.add_argument("--join", nargs=3, metavar=("ADDRESS", "PROCESSES", "NUMBER"))
    parser.add_argument("--cluster", action="store_true")
    options = parser.parse_args()
    if options.pretend is not None and options.pretend < 1:
        parser.error(f"--pretend is {options.pretend}; expected at least 1")
    if options.join and not (":" in options.join[0] and all(map(str.isdecimal, options.join[1:]))):
        parser.error(f"--join is {' '.join(options.join)}; expected such as 127.0.0.1:8476 2 0")
    if options.pretend:
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", options.pretend)
    if options.join:
        address, count, number = options.join
        jax.distributed.initialize(
            address, int(count), int(number), initialization_timeout=50, heartbeat_timeout_seconds=20
        )
    elif options.cluster:  # Slurm and TPUs say themselves who is there
        jax.distributed.initialize(heartbeat_timeout_seconds=20)


def check_devices(count: int) -> None:
    """End with a sentence if so many devices cannot share the work, or the model cannot be saved in the end."""
    if SHARE not in (1, 2, 4, 8):
        sys.exit(f"SHARE is {SHARE}; expected 1, 2, 4 or 8, among which the model's eight heads can be shared.")
    if count % SHARE or TEXTS % (count // SHARE):
        wanted = ", ".join(str(SHARE * groups) for groups in (1, 2, 4, 8, 16))
        sys.exit(f"{count} devices with SHARE = {SHARE} cannot share {TEXTS} texts equally; expected {wanted} devices.")
    if os.path.isdir(SAVED):
        sys.exit(f"{SAVED} is a folder, and the model is to be saved there; rename it, or change FOLDER.")


def main() -> None:
    """Lay a mesh over the devices, train, and save the model."""
    find_devices()
    words = pf.Vocabulary(pf.data.little_world.WORLD_WORDS, separator=" ")
    texts = np.array([words.encode(story)[:33] for story in pf.data.stories(400, num_words=48, seed=18)])

    def batch_at(step):  # the same in all processes: each keeps the rows of its own devices
        rows = texts[np.random.default_rng([18, step]).integers(len(texts), size=TEXTS)]
        return pf.data.Windows(jnp.asarray(rows[:, :-1]), jnp.asarray(rows[:, 1:]))

    stack = pf.StackConfig(d_model=64, num_layers=2, num_heads=8)
    model = pf.Decoder(pf.DecoderConfig(len(words), 32, stack), key=jax.random.key(0))
    count, begun = jax.device_count(), max(pf.training.list_checkpoints(FOLDER), default=0)
    check_devices(count)
    try:
        model, metrics = pf.fit(
            model,
            pf.training.next_token_loss,
            batch_at,
            pf.TrainingConfig(num_steps=STEPS, learning_rate=0.003, warmup_steps=5),
            mesh=jax.make_mesh((count // SHARE, SHARE), ("data", "model")),
            sharding=pf.training.FULLY_SHARDED | pf.training.TENSOR,
            directory=FOLDER,
        )
    except pf.training.TrainingInterrupted as stopped:
        steps = len(stopped.result.metrics)
        sys.exit(f"Stopped after step {steps}: start the script again to go on, on any number of devices.")
    except (OSError, ValueError) as error:  # such as a folder of another model
        sys.exit(str(error))
    pf.save_model(SAVED, model, words)
    if jax.process_index() == 0:
        anew = f"; {FOLDER} had been trained to its end: delete it to train anew" if begun == STEPS else ""
        print(f"devices: {count}; steps: {STEPS}{anew}; loss {metrics[0]['loss']:.4f}, then {metrics[-1]['loss']:.4f}")


if __name__ == "__main__":
    main()
