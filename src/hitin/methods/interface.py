"""What a method of the comparison is: from what a text encoder made to a logit for each label."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hitin.batches import Batch, Examples
from hitin.encoders.interface import Encoded, Sight, TextEncoder, Widths, encoded
from hitin.label_blocks import LastLayer
from hitin.taxonomy import Taxonomy
from hitin.tokens import Ragged

Fidelity = Literal["clean", "upstream"]
"""As a method is meant; or as its published program computes it, with what that program does otherwise."""

AUXILIARY = "auxiliary"
"""The name of the part of a method that only training needs."""


@dataclass(frozen=True)
class Facts:
    """What a method can know before training."""

    train: Examples
    """The training documents."""
    held_counts: NDArray[np.int64] | None
    """How many validation documents have each label."""
    names: Ragged
    """The tokens of each label's name."""
    frame: NDArray[np.int32]
    """The tokens of no text at all: what stands around every document."""


class Seen(NamedTuple):
    """What is seen of a batch in training."""

    encoder: TextEncoder
    batch: Batch
    text: Encoded
    logits: Tensor
    """(B, |Y|)"""
    step: int
    """How many steps the optimiser has taken before."""
    classification: Callable[[Tensor], Tensor]
    """The common loss of any logits (B, |Y|) of these documents, as the settings of the run want it."""

    @property
    def targets(self) -> Tensor:
        """(B, |Y|)"""
        return self.batch.targets


class Method(nn.Module):
    """A structure encoder and its classifier. One method is one file; `hitin.methods` knows them by name.

    One that needs no more of a document than its vector or its tokens has a `forward` from these to the logits, and
    says in `sight` what it looks at. Others can

    * learn by losses of their own (`losses`), beside the common loss of the decisions or in its place
      (`replaces_loss`), with parts that only they need (`auxiliary`). HILL would: its coding tree is such a part, which
      makes a second view of a document to contrast with the first.
    * let the encoder read something else (`score`). HPT would: after the words of a document (`TextEncoder.words_of`)
      stand those of its prompt, and the logits come from the tokens at their places. Its losses replace the common one.
    * ask the encoder several times (`score`). HBGL would, level by level: what was chosen of a level is read with the
      next. In training its `losses` give it the true labels of all levels at once, for which the encoder would have to
      take a mask of who may see whom, beside `words`.
    """

    replaces_loss: ClassVar[bool] = False
    """Whether `losses` are all there is to minimise, but for the recursive regularisation."""

    repeats: ClassVar[bool] = False
    """Whether training computes the same for every batch of a shape, without a look at the numbers or at the step on
    the way: such steps can be recorded on a GPU and replayed."""

    is_linear: bool = False
    """Whether the logits are the `last_layer` of the `features` of a document, and nothing else is learnt from them:
    then they can be computed some labels at a time, where labels are very many."""

    @classmethod
    def is_linear_with(cls, settings: Any) -> bool:  # noqa: ARG003
        """Whether it `is_linear` with these settings."""
        return cls.is_linear

    classifier: Any
    """The last layer: a row of `weight` and a number of `bias` for each label, where `start` and `label_weights` are
    not the method's own."""

    auxiliary: nn.Module | None
    """What only training needs. It is not part of the model that is saved."""

    def __init__(self, taxonomy: Taxonomy, widths: Widths, settings: Any) -> None:  # noqa: ARG002
        """`widths` are those of the encoder; `settings` is the dataclass that stands beside the method."""
        super().__init__()
        self.auxiliary = None

    @classmethod
    def sight(cls, settings: Any) -> Sight:  # noqa: ARG003
        """What it has to see of a text."""
        return "document"

    @classmethod
    def adapt(cls, encoder: TextEncoder, settings: Any) -> None:
        """Take away from an encoder what the method does not look at, before either is trained or restored."""

    @classmethod
    def warning(cls, taxonomy: Taxonomy, widths: Widths, settings: Any) -> str | None:  # noqa: ARG003
        """What a person should know before it is built: that it takes much memory, above all."""
        return None

    @classmethod
    def restored(cls, taxonomy: Taxonomy, widths: Widths, settings: Any, tensors: Mapping[str, Tensor]) -> Self:  # noqa: ARG003
        """The method as saved, before its weights are filled in; what is built from data is taken from `tensors`."""
        method = cls(taxonomy, widths, settings)
        method.auxiliary = None
        return method

    def prepare(self, facts: Facts) -> None:
        """Told before training what is known by then; where training goes on, the weights are filled in afterwards."""

    def start(self, label_counts: NDArray[np.int64], documents: int) -> None:
        """Let each label begin as probable as it is frequent among the training documents."""
        with torch.no_grad():
            self.classifier.bias.copy_(prior_logits(label_counts, documents))

    def score(self, encoder: TextEncoder, batch: Batch) -> tuple[Encoded, Tensor]:
        """What is seen of documents, and their logits (B, |Y|)."""
        text = encoded(encoder, batch)
        return text, self(text)

    def forward(self, text: Encoded) -> Tensor:
        """(B, |Y|): the logits."""
        raise NotImplementedError

    def features(self, text: Encoded) -> Tensor:
        """(B, d): what the last layer is laid on, where the method `is_linear`."""
        raise NotImplementedError

    def last_layer(self) -> LastLayer:
        """From the features to the logits."""
        return LastLayer(self.classifier.weight, self.classifier.bias)

    def cells_of_document(self) -> int:
        """How many numbers its largest layer has for one document, where that is more than a few for each label."""
        return 0

    def losses(self, seen: Seen) -> dict[str, Tensor]:  # noqa: ARG002
        """What is added to the classification loss in training, by name."""
        return {}

    def label_weights(self) -> Tensor:
        """(|Y|, d): the row of the classifier of each label, for the recursive regularisation."""
        weight: Tensor = self.classifier.weight
        return weight


def prior_logits(label_counts: NDArray[np.int64], documents: int) -> Tensor:
    """The bias at which a label is as probable as it is frequent.

    Half a document more with it and half a one without keep those on none or on all documents finite.
    """
    logits = np.log(label_counts + 0.5) - np.log(documents - label_counts + 0.5)
    return torch.from_numpy(logits).float()


def trainable(module: nn.Module) -> int:
    """How many numbers are learnt."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
