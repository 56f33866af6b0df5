"""Memory kept by the C library: tried in a process of its own, which it changes for good."""

import subprocess
import sys

import pytest

SCRIPT = """
import resource
from hitin.memory import keep_freed_memory
done = {keep}
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
def test_most_tensors_take_the_place_of_one_that_was_freed() -> None:
    found = []
    for keep in ("keep_freed_memory()", "False"):
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT.format(keep=keep)], check=True, capture_output=True, text=True
        )
        found.append(done.stdout.split())
    (kept, faults), (_, usual) = found
    if kept == "False":
        pytest.skip("the C library is not GNU's")
    assert int(faults) < int(usual) / 10
