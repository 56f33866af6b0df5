"""HGCLR: the hierarchy is taught to the text encoder by contrast (Wang et al. 2022).

Of each training document a second, positive view is made: the words that its labels pay attention to, all others
wiped out. Both views must be classified alike, and their vectors be nearer to each other than to those of other
documents. The labels, their attention and the contrast are needed in training alone: what is left is the encoder with
a plain classifier.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hitin.encoders.interface import Encoded, Sight, TextEncoder, Widths, mean_of_tokens, token_mask
from hitin.methods.interface import Facts, Fidelity, Method, Seen
from hitin.methods.path_bias import PathBias
from hitin.methods.quadratic import GIGABYTE
from hitin.option_values import bad_option, check_choices, check_counts, check_parts
from hitin.taxonomy import Taxonomy

_START = 0.02  # the deviation of the labels' own vectors at the start
_COPIES = 4  # of the attention between labels, which training holds at a time


@dataclass(frozen=True)
class HGCLRSettings:
    contrast: float = 0.1
    """Lambda: how much the contrast counts beside the classification of both views; 0: none."""
    keep: float = 0.02
    """Gamma: a word stays in the positive view if its document's labels have more than this share of it."""
    gumbel_temperature: float = 1.0
    """How evenly chance shares a word out to labels."""
    contrast_temperature: float = 1.0
    """The higher, the less the nearest other documents are stressed."""
    heads: int = 12
    """Of the attention between labels."""
    attention_heads: int = 8
    """Of the attention of words to labels."""
    dropout: float = 0.1
    fidelity: Fidelity = "clean"
    """`upstream` has the numbers of the published program that are never learnt, and cuts long paths."""

    def __post_init__(self) -> None:
        if not 0 <= self.contrast < float("inf"):
            raise bad_option(f"contrast is {self.contrast}", "It is a number from 0 up, such as 0.1.")
        check_choices(self)
        check_parts(self, "keep", "dropout")
        check_counts(self, "heads", "attention_heads")
        for name in ("gumbel_temperature", "contrast_temperature"):
            if not 0 < getattr(self, name) < float("inf"):
                raise bad_option(f"{name} is {getattr(self, name)}", "It is above 0, such as 1.")


class HGCLR(Method):
    """logits = W dropout(H) + b, learnt from two views of each document."""

    def __init__(
        self, taxonomy: Taxonomy, widths: Widths, settings: HGCLRSettings, *, for_training: bool = True
    ) -> None:
        super().__init__(taxonomy, widths, settings)
        self.settings = settings
        self.dropout = nn.Dropout(settings.dropout)
        self.classifier = nn.Linear(widths.document, len(taxonomy))
        if for_training:
            self.auxiliary = PositiveViews(taxonomy, widths, settings)

    @classmethod
    def sight(cls, settings: HGCLRSettings) -> Sight:  # noqa: ARG003
        return "embedding"

    @classmethod
    def adapt(cls, encoder: TextEncoder, settings: HGCLRSettings) -> None:  # noqa: ARG003
        encoder.check_embedding()

    @classmethod
    def warning(cls, taxonomy: Taxonomy, widths: Widths, settings: HGCLRSettings) -> str | None:  # noqa: ARG003
        size = _COPIES * 4 * settings.heads * len(taxonomy) ** 2
        if size < GIGABYTE:
            return None
        return (
            f"in training, hgclr lets each of {len(taxonomy):,} labels attend to each other, which takes about "
            f"{size / GIGABYTE:,.1f} GB of memory beside the text encoder; choose fewer heads, or the method hitin, "
            "flat or linear"
        )

    @classmethod
    def restored(
        cls,
        taxonomy: Taxonomy,
        widths: Widths,
        settings: HGCLRSettings,
        tensors: Mapping[str, Tensor],  # noqa: ARG003
    ) -> Self:
        return cls(taxonomy, widths, settings, for_training=False)

    def prepare(self, facts: Facts) -> None:
        self._views.labels.prepare(facts)

    def forward(self, text: Encoded) -> Tensor:
        logits: Tensor = self.classifier(self.dropout(text.vector))
        return logits

    def losses(self, seen: Seen) -> dict[str, Tensor]:
        """The classification of the positive view, and the contrast of both with those of other documents."""
        positive = self._views(seen)
        losses = {"positive": seen.classification(self(positive))}
        if self._views.projection is not None:
            one, other = (self._views.projection(text.vector) for text in (seen.text, positive))
            losses["contrast"] = self.settings.contrast * contrast(one, other, self.settings.contrast_temperature)
        return losses

    @property
    def _views(self) -> "PositiveViews":
        assert isinstance(self.auxiliary, PositiveViews)
        return self.auxiliary


class PositiveViews(nn.Module):
    """The labels see each other, the words see the labels, and the encoder sees the words that are kept."""

    def __init__(self, taxonomy: Taxonomy, widths: Widths, settings: HGCLRSettings) -> None:
        super().__init__()
        self.settings = settings
        self.labels = LabelFeatures(taxonomy, widths.word, settings)
        self.graph = GraphLayer(taxonomy, widths.word, settings)
        self.attention = TokenLabelAttention(widths.word, settings)
        width, dropout = widths.document, settings.dropout
        self.projection: nn.Module | None = None
        if settings.contrast:
            first, second = nn.Linear(width, width), nn.Linear(width, width)
            self.projection = nn.Sequential(nn.Dropout(dropout), first, nn.ReLU(), nn.Dropout(dropout), second)

    def forward(self, seen: Seen) -> Encoded:
        ids = seen.batch.ids
        assert ids is not None  # a method that sees the embedding layer is given tokens
        words = seen.encoder.words_of(ids)  # (B, L, e)
        shares = self.attention(words, self.graph(self.labels(seen.encoder)))  # (B, L, N)
        kept = kept_words(shares, seen.targets, self.settings)  # (B, L)
        found: Encoded = seen.encoder(ids, seen.batch.lengths, words=words * kept[:, :, None].to(words.dtype))
        return found


class LabelFeatures(nn.Module):
    """f_k = the mean of the embedding layer over the tokens of the label's name, plus a vector of its own."""

    def __init__(self, taxonomy: Taxonomy, width: int, settings: HGCLRSettings) -> None:
        super().__init__()
        self.register_buffer("names", torch.zeros(len(taxonomy), 1, dtype=torch.int32), persistent=False)
        self.register_buffer("inside", torch.ones(len(taxonomy), 1, dtype=torch.bool), persistent=False)
        rows = len(taxonomy) + (settings.fidelity == "upstream")  # one for no label
        self.own = nn.Parameter(torch.randn(rows, width) * _START)

    def prepare(self, facts: Facts) -> None:
        """Read the names."""
        names = torch.from_numpy(facts.names.padded(np.arange(len(facts.names))))  # (N, T)
        self.names, self.inside = names, token_mask(torch.from_numpy(facts.names.lengths), names.shape[1], names.device)

    def forward(self, encoder: TextEncoder) -> Tensor:
        """(N, e)"""
        names = self.get_buffer("names")
        return mean_of_tokens(encoder.embedded(names), self.get_buffer("inside")) + self.own[: len(names)]


class GraphLayer(nn.Module):
    """G = LayerNorm(F + dropout(MHA(F))), with a bias for each two labels by the path between them.

    A bias of the keys adds the same to all that a softmax compares, and so does one of G, which becomes keys: nothing
    would ever change them. The published program has both.
    """

    def __init__(self, taxonomy: Taxonomy, width: int, settings: HGCLRSettings) -> None:
        super().__init__()
        is_upstream = settings.fidelity == "upstream"
        self.heads = _dividing("heads", settings.heads, width)
        self.scale = 1 / math.sqrt(width // self.heads)
        self.queries, self.values, self.output = (nn.Linear(width, width) for _ in range(3))
        self.keys = nn.Linear(width, width, bias=is_upstream)
        self.bias = PathBias(taxonomy, settings.fidelity)
        self.dropout = nn.Dropout(settings.dropout)
        self.norm = nn.LayerNorm(width, bias=is_upstream)

    def forward(self, labels: Tensor) -> Tensor:
        """(N, e) -> (N, e)"""
        made = (part(labels) for part in (self.queries, self.keys, self.values))
        queries, keys, values = (_by_head(each, self.heads) for each in made)  # (h, N, e / h)
        scores = (queries * self.scale) @ keys.transpose(1, 2)  # (h, N, N)
        shares = (scores.float() + self.bias()).softmax(dim=2)
        seen = shares.to(values.dtype) @ values  # (h, N, e / h)
        found: Tensor = self.norm(labels + self.dropout(self.output(seen.movedim(0, 1).flatten(1))))
        return found


class TokenLabelAttention(nn.Module):
    """How each word is shared out to the labels: a softmax over labels, the mean over heads."""

    def __init__(self, width: int, settings: HGCLRSettings) -> None:
        super().__init__()
        self.heads = _dividing("attention_heads", settings.attention_heads, width)
        self.scale = 1 / math.sqrt(width // self.heads)
        self.queries = nn.Linear(width, width)
        self.keys = nn.Linear(width, width, bias=settings.fidelity == "upstream")

    def forward(self, words: Tensor, labels: Tensor) -> Tensor:
        """(B, L, e), (N, e) -> (B, L, N), in 32 bits"""
        queries = _by_head(self.queries(words) * self.scale, self.heads)  # (h, B, L, e / h)
        keys = _by_head(self.keys(labels), self.heads)  # (h, N, e / h)
        shares = torch.zeros((), device=words.device)
        for query, key in zip(queries, keys, strict=True):
            shares = shares + (query @ key.T).float().softmax(dim=2)
        return shares / self.heads


def kept_words(shares: Tensor, targets: Tensor, settings: HGCLRSettings) -> Tensor:
    """(B, L, N), (B, N) -> (B, L): 1 for words that stay, 0 for others.

    A word is shared out to labels once more, by chance, and what its document's labels get of it decides. They learn
    from the words that stay (straight-through): there the gradient is that of their share.
    """
    drawn = gumbel_softmax(shares.float(), settings.gumbel_temperature)
    own = (drawn * targets[:, None].to(drawn.dtype)).sum(dim=2)  # (B, L)
    return (own + (1 - own).detach()) * (own > settings.keep)


def gumbel_softmax(logits: Tensor, temperature: float) -> Tensor:
    """A soft choice from the last dimension. (Shares are taken as if they were logits, as the paper does.)"""
    chance = torch.empty_like(logits).exponential_().clamp_(min=torch.finfo(logits.dtype).tiny)  # 0 has no logarithm
    return ((logits - chance.log()) / temperature).softmax(dim=-1)


def contrast(one: Tensor, other: Tensor, temperature: float) -> Tensor:
    """NT-Xent of two views (B, d) of documents: each vector must find its other view among all of the batch."""
    with torch.autocast(one.device.type, enabled=False):
        views = functional.normalize(torch.cat([one, other]).float(), dim=1)  # (2B, d)
        near = views @ views.T / temperature  # (2B, 2B)
    itself = torch.eye(len(near), dtype=torch.bool, device=near.device)
    partners = torch.arange(len(near), device=near.device).roll(len(one))
    return functional.cross_entropy(near.masked_fill(itself, -math.inf), partners)


def _by_head(values: Tensor, heads: int) -> Tensor:
    """(..., e) -> (heads, ..., e / heads)"""
    return values.reshape(*values.shape[:-1], heads, -1).movedim(-2, 0)


def _dividing(name: str, heads: int, width: int) -> int:
    """A number of heads that can share the vector of a token."""
    if width % heads:
        able = [str(number) for number in range(1, min(width, 32) + 1) if width % number == 0]
        problem = f"{name} is {heads}, but the {width} numbers of a word cannot be divided by it"
        raise bad_option(problem, f"Choose one of {', '.join(able)}.")
    return heads
