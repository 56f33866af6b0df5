"""What a method of the comparison is: from what a text encoder made to a logit for each label."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hitin.encoders.interface import Encoded
from hitin.taxonomy import Taxonomy


class Method(nn.Module):
    """A structure encoder and its classifier. One method is one file; `hitin.methods` knows them by name."""

    uses_tokens: ClassVar[bool] = False
    """Whether it looks at the tokens, not at the document's vector alone."""

    def __init__(self, taxonomy: Taxonomy, width: int, settings: Any) -> None:  # noqa: ARG002
        """`width` is that of the encoder's vector; `settings` is the dataclass that stands beside the method."""
        super().__init__()

    @classmethod
    def restored(cls, taxonomy: Taxonomy, width: int, settings: Any, tensors: Mapping[str, Tensor]) -> Self:  # noqa: ARG003
        """The method as saved, before its weights are filled in; what is built from data is taken from `tensors`."""
        return cls(taxonomy, width, settings)

    def start(self, label_counts: NDArray[np.int64], documents: int) -> None:
        """Told before training how many of the training documents have each label."""

    def forward(self, text: Encoded) -> Tensor:
        """(B, |Y|): the logits."""
        raise NotImplementedError

    def losses(self, text: Encoded, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:  # noqa: ARG002
        """What is added to the classification loss in training, by name."""
        return {}

    def label_weights(self) -> Tensor:
        """(|Y|, d): the row of the classifier of each label, for the recursive regularisation."""
        raise NotImplementedError


def prior_logits(label_counts: NDArray[np.int64], documents: int) -> Tensor:
    """The bias at which a label is as probable as it is frequent.

    Half a document more with it and half a one without keep those on none or on all documents finite.
    """
    logits = np.log(label_counts + 0.5) - np.log(documents - label_counts + 0.5)
    return torch.from_numpy(logits).float()
