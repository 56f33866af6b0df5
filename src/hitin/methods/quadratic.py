"""The classifier that sees the vectors of all labels for the logit of each; and what it costs: d |Y| |Y| weights."""

from torch import Tensor, nn

_BYTES = 16  # a weight in training: itself, its gradient, and two moments of the optimiser
GIGABYTE = 10**9
"""What more takes is worth a word."""


class AllLabelsClassifier(nn.Linear):
    """logits = W [x_1 ; x_2 ; ...] + b, with x_k the vector of label k."""

    def __init__(self, width: int, labels: int) -> None:
        super().__init__(width * labels, labels)

    def forward(self, nodes: Tensor) -> Tensor:
        """(B, N, d) -> (B, N)"""
        return super().forward(nodes.flatten(start_dim=1))


def gigabytes_to_train(weights: int) -> float:
    """What so many weights take of memory in training."""
    return weights * _BYTES / GIGABYTE


def quadratic_warning(method: str, width: int, labels: int, *, has_width: bool) -> str | None:
    """What a person should know before such a classifier is built, if it takes much memory.

    `has_width` says whether the width of labels is an option of the method.
    """
    weights = width * labels * labels
    gigabytes = gigabytes_to_train(weights)
    if gigabytes <= 1:
        return None
    narrower = "a smaller width, or " if has_width else ""
    return (
        f"at {labels:,} labels the last layer of {method} has {weights:,} weights, and training takes "
        f"{gigabytes:,.1f} GB of memory for it; choose {narrower}the method hitin, flat or linear"
    )
