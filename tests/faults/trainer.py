"""A small training run in a process of its own, to be killed: python trainer.py DIRECTORY [FULL_AT LIMIT].

With the last two, no file may grow beyond LIMIT bytes from step FULL_AT on, as on a full disk.
"""

import resource
import signal
import sys
import time

import equinox as eqx
import jax

from plainformer.data.windows import random_windows
from plainformer.models.config import StackConfig
from plainformer.models.decoder import Decoder, DecoderConfig
from plainformer.training.fit import fit
from plainformer.training.losses import next_token_loss
from plainformer.training.optimiser import TrainingConfig

TEXT = [int(digit) for digit in str(7**2000)]
CONFIG = TrainingConfig(num_steps=80, learning_rate=0.01, warmup_steps=10, checkpoint_every=2)

# A shell that runs the tests in the background makes them, and what they start, deaf to SIGINT.
signal.signal(signal.SIGINT, signal.default_int_handler)


def say(*words) -> None:
    """Tell the test, at once, what begins now."""
    print(*words, flush=True)


def saving_aloud(save):
    """Save as ever, and say so before and after."""

    def aloud(directory, step, *rest, **more):
        say("saving", step)
        path = save(directory, step, *rest, **more)
        say("saved", step)
        return path

    return aloud


def main(directory: str, full_at: int = -1, limit: int = 0) -> None:
    """Train, or go on, until all steps are done."""
    sizes = StackConfig(d_model=12, num_layers=1, num_heads=3, dropout_rate=0.1)
    config = DecoderConfig(vocab_size=10, context_len=8, stack=sizes)
    model = eqx.filter_jit(Decoder)(config, key=jax.random.key(0))
    batches = random_windows(TEXT, 8, 4)

    def batch_at(step):
        say("step", step)
        time.sleep(0.002)
        if step == full_at:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        return batches(step)

    module = sys.modules["plainformer.training.run"]
    module.save_checkpoint = saving_aloud(module.save_checkpoint)
    fit(model, next_token_loss, batch_at, CONFIG, directory=directory, progress=False)
    say("finished")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
