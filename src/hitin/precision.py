"""Numbers in full and in half precision."""

import torch
from torch import Tensor


def in_full(values: Tensor) -> Tensor:
    """In 32 bits, or 64 where they have them: for sums."""
    return values if values.dtype == torch.float64 else values.float()


def half_precision(device: torch.device) -> torch.dtype | None:
    """That of mixed precision, where it is on."""
    return torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else None
