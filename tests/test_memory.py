"""Memory kept by the C library: tried in a process of its own, which it changes for good."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource
from hitin.memory import keep_freed_memory
done = keep_freed_memory()
import torch
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        alive = [torch.ones(size << 18) + 1 for size in (7, 3, 11, 1, 5, 9, 2, 10, 4, 6, 8) * 4]  # 1 to 11 MB
        del alive
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(done, faults())
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="for GNU's C library")
def test_tensors_take_the_place_of_those_that_were_freed() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    kept, faults = done.stdout.split()
    if kept == "False":
        pytest.skip("the C library is not GNU's")
    assert int(faults) < 10_000  # of the 675,000 pages that the tensors hold
