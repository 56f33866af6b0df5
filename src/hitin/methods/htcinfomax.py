"""HTCInfoMax: HiAGM's label attention, and two losses that make the vectors of labels tell more.

A document's text and its labels are to have much information in common: a network learns to tell a text with its own
labels from one with those of another document. And all labels together are to be spread like a prior distribution,
the uniform one: a second network learns to tell the two apart.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from hitin.encoders.interface import Encoded, Sight, TextEncoder, Widths
from hitin.methods.hiagm_la import LabelVectors, label_attention
from hitin.methods.interface import Facts, Method, Seen
from hitin.methods.quadratic import AllLabelsClassifier, quadratic_warning
from hitin.methods.structure import StructureSettings
from hitin.precision import in_full
from hitin.taxonomy import Taxonomy

_SUMMARY = 512  # numbers that a text is summed up in, for the network that judges pairs
_PRIOR_LAYERS = (1000, 200)


@dataclass(frozen=True)
class HTCInfoMaxSettings(StructureSettings):
    """The dropout is on the vectors of labels."""

    mutual_information: bool = True
    """Whether texts and their labels are to have much information in common."""
    prior_matching: bool = True
    """Whether labels are to be spread evenly. Of both losses, a weight is learnt; one alone counts in full."""


class HTCInfoMax(Method):
    """The label attention of HiAGM-LA over tokens; `auxiliary` has the losses.

    The published program attends to padding, too, and leaves the networks that judge as they are at the start.
    """

    def __init__(self, taxonomy: Taxonomy, widths: Widths, settings: HTCInfoMaxSettings) -> None:
        super().__init__(taxonomy, widths, settings)
        self.attends_to_padding = settings.fidelity == "upstream"
        self.labels = LabelVectors(taxonomy, widths.token, settings)
        self.classifier = AllLabelsClassifier(widths.token, len(taxonomy))
        if settings.mutual_information or settings.prior_matching:
            self.auxiliary = Information(widths.token, len(taxonomy), settings)

    @classmethod
    def sight(cls, settings: HTCInfoMaxSettings) -> Sight:  # noqa: ARG003
        return "tokens"

    @classmethod
    def adapt(cls, encoder: TextEncoder, settings: HTCInfoMaxSettings) -> None:
        encoder.leave_out_vector(keep=settings.fidelity == "upstream")

    @classmethod
    def warning(cls, taxonomy: Taxonomy, widths: Widths, settings: HTCInfoMaxSettings) -> str | None:  # noqa: ARG003
        return quadratic_warning("htcinfomax", widths.token, len(taxonomy), has_width=False)

    def prepare(self, facts: Facts) -> None:
        self.labels.structure.prepare(facts)

    def forward(self, text: Encoded) -> Tensor:
        found = label_attention(self.labels(), text.tokens, self._mask(text))  # (B, N, d)
        logits: Tensor = self.classifier(found)
        return logits

    def losses(self, seen: Seen) -> dict[str, Tensor]:
        """Those of labels made once more, with a dropout of their own: they are few beside the texts."""
        if self.auxiliary is None:
            return {}
        losses: dict[str, Tensor] = self.auxiliary(self.labels(), seen.text.tokens, self._mask(seen.text), seen.targets)
        return losses

    def _mask(self, text: Encoded) -> Tensor:
        """(B, L): true where there is something to attend to."""
        return torch.ones_like(text.mask) if self.attends_to_padding else text.mask


class PairJudge(nn.Module):
    """Whether a text and the labels beside it belong together: a logit."""

    def __init__(self, width: int) -> None:
        super().__init__()
        # Places beyond the ends count as 0, so that there may be a single token.
        self.first = nn.Conv1d(width, width, 3, padding=1)
        self.second = nn.Conv1d(width, _SUMMARY, 3, padding=1)
        self.layers = nn.Sequential(
            nn.Linear(_SUMMARY + width, _SUMMARY),
            nn.ReLU(),
            nn.Linear(_SUMMARY, _SUMMARY),
            nn.ReLU(),
            nn.Linear(_SUMMARY, 1),
        )

    def summary(self, tokens: Tensor, mask: Tensor) -> Tensor:
        """(B, L, d) -> (B, 512): what is judged of texts; padding has no part in it."""
        tokens = in_full(tokens).transpose(1, 2)  # (B, d, L)
        inside = mask[:, None].to(tokens.dtype)  # (B, 1, L)
        found = torch.relu(self.first(tokens * inside)) * inside
        return (in_full(self.second(found)) * inside).sum(dim=2) / inside.sum(dim=2)

    def forward(self, labels: Tensor, summary: Tensor) -> Tensor:
        """(B, d), (B, 512) -> (B,)"""
        logits: Tensor = self.layers(torch.cat([summary, labels], dim=1))
        return in_full(logits[:, 0])


class PriorJudge(nn.Sequential):
    """Whether a vector is drawn from the prior distribution or that of a label: a logit."""

    def __init__(self, width: int) -> None:
        first, second = _PRIOR_LAYERS
        super().__init__(nn.Linear(width, first), nn.ReLU(), nn.Linear(first, second), nn.ReLU(), nn.Linear(second, 1))


class Mixing(nn.Module):
    """F, the weight of the first loss against the second: sigmoid(a mean(T) + b vec(Z))."""

    def __init__(self, width: int, labels: int) -> None:
        super().__init__()
        self.text = nn.Linear(width, 1)
        self.labels = nn.Linear(labels * width, 1)

    def forward(self, tokens: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        """A number, from the mean over all tokens (B, L, d) of the batch and the labels (N, d)."""
        tokens = in_full(tokens)
        inside = mask[:, :, None].to(tokens.dtype)
        mean = (tokens * inside).sum(dim=(0, 1)) / inside.sum()
        return torch.sigmoid(in_full(self.text(mean) + self.labels(labels.flatten())))[0]


class Information(nn.Module):
    """The two losses, of labels G as the structure encoder gives them; what is judged is Z = G W_z."""

    def __init__(self, width: int, labels: int, settings: HTCInfoMaxSettings) -> None:
        super().__init__()
        self.is_clean = settings.fidelity == "clean"
        self.projection = nn.Linear(width, width, bias=False)  # W_z
        nn.init.xavier_uniform_(self.projection.weight)
        self.pairs = PairJudge(width) if settings.mutual_information else None
        self.prior = PriorJudge(width) if settings.prior_matching else None
        self.mixing = Mixing(width, labels) if self.pairs and self.prior else None
        if not self.is_clean:  # as published, they are not handed to the optimiser
            for judge in filter(None, (self.pairs, self.prior, self.mixing)):
                judge.requires_grad_(False)

    def forward(self, labels: Tensor, tokens: Tensor, mask: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """`labels` (N, d) are G, `tokens` (B, L, d) and `mask` (B, L) the texts, `targets` (B, N) says whose labels."""
        projected = in_full(self.projection(labels))  # Z
        losses = {}
        if self.pairs:
            losses["mutual_information"] = self._mutual_information(self.pairs, projected, tokens, mask, targets)
        if self.prior:
            losses["prior_matching"] = prior_matching(self.prior, projected)
        if self.mixing:
            weight = self.mixing(tokens, mask, projected)
            losses["mutual_information"] = weight * losses["mutual_information"]
            losses["prior_matching"] = (1 - weight) * losses["prior_matching"]
        return losses

    def _mutual_information(
        self, judge: PairJudge, labels: Tensor, tokens: Tensor, mask: Tensor, targets: Tensor
    ) -> Tensor:
        """Without a loss for a document that has no labels, or no other document beside it."""
        documents = len(targets)
        others = (
            derangement(documents, tokens.device) if self.is_clean else torch.randperm(documents, device=tokens.device)
        )
        counting = targets.any(dim=1)
        if self.is_clean and documents == 1:
            counting = torch.zeros_like(counting)
        losses = mutual_information(judge, mean_of_labels(labels, targets), judge.summary(tokens, mask), others)
        return (losses * counting).sum() / counting.sum().clamp(min=1)


def mean_of_labels(labels: Tensor, targets: Tensor) -> Tensor:
    """(N, d), (B, N) -> (B, d): over the labels of each document; 0 where there are none."""
    with torch.autocast(labels.device.type, enabled=False):
        return targets.to(labels.dtype) @ labels / targets.sum(dim=1, keepdim=True).clamp(min=1)


def mutual_information(judge: PairJudge, labels: Tensor, texts: Tensor, others: Tensor) -> Tensor:
    """(B,): softplus(D(y, T')) + softplus(-D(y, T)), with y the labels (B, d), T the texts as they are summed up, and
    T' those of the `others`. It is low where there is much information in common (Jensen and Shannon's estimate)."""
    return functional.softplus(judge(labels, texts[others])) + functional.softplus(-judge(labels, texts))


def prior_matching(judge: PriorJudge, labels: Tensor) -> Tensor:
    """-(log D(q) + log(1 - D(z))), the mean over labels z (N, d), with a q drawn from U[0, 1) for each."""
    drawn = torch.rand_like(labels)
    real, learnt = in_full(judge(torch.cat([drawn, labels]))).chunk(2)  # (N, 1) each
    return (functional.softplus(-real) + functional.softplus(learnt)).mean()


def derangement(count: int, device: torch.device) -> Tensor:
    """(count,): another one for each, drawn at random: all stand in a ring, and each has the one before."""
    ring = torch.randperm(count, device=device)
    others = torch.empty_like(ring)
    others[ring] = ring.roll(1)
    return others
