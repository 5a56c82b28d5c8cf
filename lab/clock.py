"""Times of several functions, taken in turn, on one core."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np


@contextmanager
def one_core() -> Iterator[None]:
    """Let all threads of this process run on one core only, where the system can do this."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    try:
        _put_on({min(before)})
        yield
    finally:
        _put_on(before)


def _put_on(cores: set[int]) -> None:
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), cores)


def seconds_in_turn(actions: Mapping[Any, Callable], rounds: int = 9, calls: int = 1) -> dict[str, float]:
    """The median of each action's processor seconds per call, over rounds in which all take their turn.

    Processor time of the whole process on one core: what else the machine does makes a call wait, and waiting does not
    count. Each action is called once before, to compile.
    """
    times: dict[str, list[float]] = {name: [] for name in actions}
    with one_core():
        for action in actions.values():
            jax.block_until_ready(action())
        for _ in range(rounds):
            for name, action in actions.items():
                begin = time.process_time()
                for _ in range(calls):
                    jax.block_until_ready(action())
                times[name].append((time.process_time() - begin) / calls)
    return {name: float(np.median(each)) for name, each in times.items()}
