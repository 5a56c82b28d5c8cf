"""Work in several processes that are forked from one which has imported everything, so that each starts in no time.

That one starts no thread before it forks, as it computes nothing itself; so it is a script, never a test's own process.
"""

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from pathlib import Path

import jax
import optax  # noqa: F401 (fit would import it in every process)
import orbax.checkpoint  # noqa: F401
import portalocker  # noqa: F401


def say(*words) -> None:
    """Tell whoever waits, at once, what begins now."""
    print(*words, flush=True)


def free_port() -> int:
    """A port that nothing listens at now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Together:
    """So many processes that do a work, a function of their number; killed at the latest as the `with` statement ends.

    A single one is on its own, and knows nothing of others.
    """

    def __init__(self, logs: Path, count: int, work):
        logs.mkdir(parents=True, exist_ok=True)
        self.logs = [logs / f"{number}.log" for number in range(count)]
        self.statuses: dict[int, int] = {}
        port = free_port()
        self.numbers = [self._fork(number, port, work) for number in range(count)]

    def _fork(self, number: int, port: int, work) -> int:
        self.logs[number].unlink(missing_ok=True)
        process = os.fork()
        if process:
            return process
        status, several = 1, len(self.logs) > 1
        try:
            signal.alarm(150)  # whatever happens to the one that started it
            log = os.open(self.logs[number], os.O_WRONLY | os.O_CREAT)
            os.dup2(log, 1)
            os.dup2(log, 2)
            say("starting")
            if several:
                address, timeouts = f"127.0.0.1:{port}", {"initialization_timeout": 15, "heartbeat_timeout_seconds": 10}
                jax.distributed.initialize(address, len(self.logs), number, **timeouts)
                say("connected")
            try:
                work(number)
                status = 0
            except BaseException:
                traceback.print_exc()
            if several:
                jax.distributed.shutdown()  # as JAX does when Python ends
        finally:
            os._exit(status)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for number, process in enumerate(self.numbers):
            if number not in self.statuses:
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)

    def wait_for(self, words: str, of: int, seconds: float = 60) -> None:
        """Wait until a process has said these words, or has ended."""
        end = time.monotonic() + seconds
        while words not in self.said(of) and time.monotonic() < end and not self._ended(of):
            time.sleep(0.002)

    def kill(self, number: int) -> None:
        """End a process as suddenly as a power cut would."""
        os.kill(self.numbers[number], signal.SIGKILL)

    def said(self, number: int) -> str:
        """All that a process has printed."""
        with contextlib.suppress(FileNotFoundError):
            return self.logs[number].read_text()
        return ""

    def end(self, seconds: float = math.inf) -> dict[int, int]:
        """Wait for the end of all, whose own alarms end those that hang; give their exit statuses."""
        end = time.monotonic() + seconds
        for number in range(len(self.numbers)):
            while not self._ended(number) and time.monotonic() < end:
                time.sleep(0.01)
        return self.statuses

    def _ended(self, number: int) -> bool:
        if number not in self.statuses:
            process, status = os.waitpid(self.numbers[number], os.WNOHANG)
            if process:
                self.statuses[number] = os.waitstatus_to_exitcode(status)
        return number in self.statuses


def said_by(script: Path, folder: Path):
    """What a script that starts processes prints as JSON, in a process of its own: it forks, and JAX has threads."""
    places = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    command = [sys.executable, str(script), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
