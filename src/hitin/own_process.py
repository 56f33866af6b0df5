"""What torch and `accelerate` hold for a whole process, and a training changes for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

import torch

_TRAINING = RLock()


@contextmanager
def process_to_itself() -> Iterator[None]:
    """For a training: others of this process wait until it is done, and it does not see the caller's modes of torch."""
    with _TRAINING, torch.inference_mode(False), torch.enable_grad():
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(before)
