"""Memory kept by the C library: tried in a process of its own, which it changes for good."""

import os
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


RELEASE = """
from pathlib import Path
from hitin import memory
import torch
def held():
    return int(Path("/proc/self/statm").read_text().split()[1])
def fragments():
    tensors = [torch.ones(1 << 15) for _ in range(2000)]  # 128 KB each, 256 MB together
    return tensors[::100]
some = fragments()
before = held()
done = memory.release_freed_memory()
after = held()
assert not memory.release_freed_memory()  # not again at once
memory._RELEASE_EVERY = 0
assert memory.release_freed_memory() or not done
memory.keep_freed_memory()
assert not memory.release_freed_memory()  # it is to be kept
print(done, before - after)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="for GNU's C library")
def test_freed_memory_between_what_is_used_goes_back_to_the_system() -> None:
    """Pieces that the library would not give back by itself, for others stand behind them."""
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "1000000000"}
    done = subprocess.run([sys.executable, "-c", RELEASE], check=True, capture_output=True, text=True, env=environment)
    released, pages = done.stdout.split()
    if released == "False":
        pytest.skip("the C library is not GNU's")
    assert int(pages) > 40_000  # of 65,536
