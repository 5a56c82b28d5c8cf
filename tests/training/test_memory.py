"""Memory that is freed and asked for again costs no page faults, where the C library can be asked to keep it."""

import platform
import subprocess
import sys

SCRIPT = """
import resource
import numpy as np
from plainformer.training.memory import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        np.ones(2**24)  # 128 MiB, written to and freed
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = faults()
print(keep_freed_memory())
faults()  # from here on the memory is there
print(faults() < before / 4)
"""


def test_keep_freed_memory_saves_page_faults():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    could, saved = done.stdout.split()
    assert could == str(platform.libc_ver()[0] == "glibc")
    assert saved == "True" or could == "False"
