"""HiMatch: HiAGM's text propagation, and losses that bring a text near its labels in one space for both.

Labels are read like documents, by the text they have (`hitin.methods.label_texts`). A text is to be near one of its
labels and the parent of that; it is to be further from a sibling, and further still from any other wrong label.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hitin.batches import Batch, Examples, by_length
from hitin.encoders.interface import Encoded, TextEncoder, Widths, encoded
from hitin.methods.hiagm_tp import HiAGMTP, HiAGMTPSettings
from hitin.methods.interface import Facts, Fidelity, Seen
from hitin.methods.label_texts import label_texts
from hitin.methods.quadratic import quadratic_warning
from hitin.methods.structure import build_structure
from hitin.option_values import check_counts, check_parts
from hitin.precision import in_full
from hitin.taxonomy import Taxonomy
from hitin.tokens import Ragged

_NEAR = 0.01  # the squared distance at which a text is near enough to the parent of its label
_SIBLING_MARGIN = 0.1
_OTHER_MARGIN = 0.2
_AT_ONCE = 128  # texts of labels that are encoded together


@dataclass(frozen=True)
class HiMatchSettings(HiAGMTPSettings):
    """The dropout is on the vectors that the labels are given by a text."""

    match_width: int = 200
    """Of the space in which texts and labels are compared."""
    match_dropout: float = 0.5
    """On the way there."""
    normalise: bool = False
    """Whether all vectors of that space are of length 1."""
    refresh: int = 50
    """Steps after which the texts of labels are read anew."""
    label_words: int = 30
    """Tokens in the text of a label."""
    logit_dropout: float = 0.5
    """On the logits, in the form `upstream` alone; 0 suits a transformer."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "match_width", "refresh", "label_words")
        check_parts(self, "match_dropout", "logit_dropout")

    def idle(self) -> dict[str, tuple[str, str]]:
        if self.fidelity == "upstream" or self.logit_dropout == HiMatchSettings.logit_dropout:
            return {}
        problem = "logit_dropout is for the form of the published program"
        return {"logit_dropout": (problem, "Leave it out, or set fidelity=upstream.")}


class HiMatch(HiAGMTP):
    """The logits are those of HiAGM-TP; `auxiliary` has the losses."""

    repeats = False  # it looks at the step, and at which labels a batch has

    def __init__(self, taxonomy: Taxonomy, widths: Widths, settings: HiMatchSettings) -> None:
        super().__init__(taxonomy, widths, settings)
        self.logit_dropout = nn.Dropout(settings.logit_dropout if settings.fidelity == "upstream" else 0)
        self.auxiliary = Matching(taxonomy, widths.document, settings)

    @classmethod
    def warning(cls, taxonomy: Taxonomy, widths: Widths, settings: HiAGMTPSettings) -> str | None:  # noqa: ARG003
        return quadratic_warning("himatch", settings.width, len(taxonomy), has_width=True)

    def prepare(self, facts: Facts) -> None:
        super().prepare(facts)
        if isinstance(self.auxiliary, Matching):
            self.auxiliary.prepare(facts)

    def score(self, encoder: TextEncoder, batch: Batch) -> tuple[Encoded, Tensor]:
        """What is seen of a document are the vectors that the labels have by it, one after the other."""
        text = encoded(encoder, batch)
        nodes = self.propagation(text.vector)  # (B, N, width)
        return text._replace(vector=nodes.flatten(start_dim=1)), self.logits_of(nodes)

    def losses(self, seen: Seen) -> dict[str, Tensor]:
        assert isinstance(self.auxiliary, Matching)
        return self.auxiliary.losses(seen)


class Matching(nn.Module):
    """Texts and labels in one space, and how near they are there."""

    def __init__(self, taxonomy: Taxonomy, document: int, settings: HiMatchSettings) -> None:
        """`document` is the width of a document's vector."""
        super().__init__()
        self.settings = settings
        self.structure = build_structure(settings.structure, taxonomy, document, settings.fidelity)
        self.text_map = _space(len(taxonomy) * settings.width, settings)
        self.label_map = _space(document, settings)
        self.comparison = Comparison(taxonomy, settings.fidelity)
        self.label_texts = LabelTexts(len(taxonomy), document, settings.refresh)

    def prepare(self, facts: Facts) -> None:
        self.structure.prepare(facts)
        self.label_texts.texts = label_texts(facts, self.settings.label_words, self.settings.fidelity)

    def losses(self, seen: Seen) -> dict[str, Tensor]:
        texts = self._in_space(self.text_map(seen.text.vector))  # (B, match_width)
        read = self.label_texts(seen.encoder, seen.step)  # (N, d)
        labels = self._in_space(self.label_map(self.structure(read)))  # (N, match_width)
        return matching_losses(texts, labels, self.comparison(seen.targets))

    def _in_space(self, vectors: Tensor) -> Tensor:
        vectors = in_full(vectors)
        return functional.normalize(vectors, dim=1) if self.settings.normalise else vectors


def _space(width: int, settings: HiMatchSettings) -> nn.Sequential:
    """From vectors of this width to the common space."""
    return nn.Sequential(
        nn.Linear(width, settings.match_width),
        nn.ReLU(),
        nn.Dropout(settings.match_dropout),
        nn.Linear(settings.match_width, settings.match_width),
    )


class LabelTexts(nn.Module):
    """What the text encoder makes of the text of each label, as it did some steps ago at most.

    The vectors are kept with a checkpoint, so that a training that goes on later does so with the same. When they were
    read need not be: a training begins at step 0, where it is time, and a checkpoint stands between two steps.
    """

    def __init__(self, labels: int, document: int, refresh: int) -> None:
        super().__init__()
        self.refresh = refresh
        self.texts: Ragged | None = None
        self.register_buffer("vectors", torch.zeros(labels, document))
        self.read_at = -1  # the step; on the device, a look at it would have the device wait

    def forward(self, encoder: TextEncoder, step: int) -> Tensor:
        """(N, d)"""
        if step % self.refresh == 0 and step != self.read_at:  # several batches may belong to one step
            self._read(encoder)
            self.read_at = step
        return self.get_buffer("vectors").clone()  # what is read anew is not to change what was computed from it

    @torch.no_grad()
    def _read(self, encoder: TextEncoder) -> None:
        assert self.texts is not None
        vectors = self.get_buffer("vectors")
        nothing = Ragged.of([[]] * len(self.texts))
        labels = Examples(self.texts, nothing, label_count=0)
        for rows in by_length(self.texts.lengths, _AT_ONCE):
            batch = labels.batch(rows).to(vectors.device)
            vectors[torch.from_numpy(rows).to(vectors.device)] = encoded(encoder, batch).vector.to(vectors.dtype)


class Compared(NamedTuple):
    """The labels that documents are compared with, (B,) each, and for which documents there is such a one."""

    own: Tensor
    """One of the document's labels."""
    parent: Tensor
    """The parent of that; at the top, the label itself."""
    sibling: Tensor
    """A sibling of it, or where there is none, any label that the document has not."""
    other: Tensor
    """Any label that the document has not."""
    has_own: Tensor
    has_sibling: Tensor
    has_other: Tensor


class Comparison(nn.Module):
    """Draws the labels that documents are compared with.

    A family is the children of one parent; the labels of the first level are one, too. What is kept are the pairs of
    a label and a family it belongs to.
    """

    def __init__(self, taxonomy: Taxonomy, fidelity: Fidelity) -> None:
        super().__init__()
        self.fidelity: Fidelity = fidelity
        self.top = len(taxonomy)  # the number of the first level's family
        labels = np.concatenate([taxonomy.roots, taxonomy.edges[:, 1]])
        families = np.concatenate([np.full(len(taxonomy.roots), self.top), taxonomy.edges[:, 0]])
        self.register_buffer("labels", torch.from_numpy(labels), persistent=False)  # (m,)
        self.register_buffer("families", torch.from_numpy(families), persistent=False)  # (m,)

    def forward(self, targets: Tensor) -> Compared:
        labels, families = self.get_buffer("labels"), self.get_buffer("families")
        gold = targets > 0  # (B, N)
        own, has_own = drawn(gold)
        family = families[drawn(labels == own[:, None])[0]]  # (B,)
        siblings = (families == family[:, None]) & (labels != own[:, None])  # (B, m)
        if self.fidelity == "clean":
            siblings &= ~gold[:, labels]
        place, has_sibling = drawn(siblings)
        other, has_other = drawn(~gold)
        return Compared(
            own=own,
            parent=torch.where(family == self.top, own, family),
            sibling=torch.where(has_sibling, labels[place], drawn(~gold)[0]),
            other=other,
            has_own=has_own,
            has_sibling=has_own & (has_sibling | has_other),
            has_other=has_own & has_other,
        )


def drawn(allowed: Tensor) -> tuple[Tensor, Tensor]:
    """One of the allowed columns for each row (B, n), all as probable; and whether there are any."""
    has_any = allowed.any(dim=1)
    weights = (allowed | ~has_any[:, None]).float()
    return torch.multinomial(weights, 1)[:, 0], has_any


def matching_losses(texts: Tensor, labels: Tensor, compared: Compared) -> dict[str, Tensor]:
    """`texts` (B, d) and `labels` (N, d) in their common space; a distance is a squared one, divided by d."""
    width = texts.shape[1]

    def distance(chosen: Tensor) -> Tensor:
        return (texts - labels[chosen]).square().sum(dim=1) / width

    own = distance(compared.own)
    too_far = torch.relu(distance(compared.parent) - _NEAR / width)
    sibling = torch.relu(own - distance(compared.sibling) + _SIBLING_MARGIN)
    other = torch.relu(own - distance(compared.other) + _OTHER_MARGIN)
    return {
        "inter": _mean(own, compared.has_own) + _mean(too_far, compared.has_own),
        "intra": _mean(sibling, compared.has_sibling) + _mean(other, compared.has_other),
    }


def _mean(values: Tensor, counting: Tensor) -> Tensor:
    """Over the documents that count."""
    weights = counting.to(values.dtype)
    return (values * weights).sum() / weights.sum().clamp(min=1)
