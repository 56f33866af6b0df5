"""What a method of the comparison is: from what a text encoder made to a logit for each label."""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
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

    def start(self, label_frequencies: NDArray[np.float64]) -> None:
        """Told before training how often each label occurs, as a part of the training documents."""

    def forward(self, text: Encoded) -> Tensor:
        """(B, |Y|): the logits."""
        raise NotImplementedError

    def losses(self, text: Encoded, logits: Tensor, targets: Tensor) -> dict[str, Tensor]:  # noqa: ARG002
        """What is added to the classification loss in training, by name."""
        return {}

    def label_weights(self) -> Tensor:
        """(|Y|, d): the row of the classifier of each label, for the recursive regularisation."""
        raise NotImplementedError


def prior_logits(label_frequencies: NDArray[np.float64], documents: float = 1000.0) -> NDArray[np.float64]:
    """The bias at which a label is as probable as it is frequent; a label that never occurs is a little possible."""
    least = 1 / (2 * documents)
    clipped = np.clip(label_frequencies, least, 1 - least)
    return np.asarray(np.log(clipped) - np.log1p(-clipped))
