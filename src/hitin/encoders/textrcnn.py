"""TextRCNN: word vectors, a bidirectional GRU, convolutions over it, the maximum over time (Eq. 1-2)."""

import warnings
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from hitin.cleaning import Clean
from hitin.encoders.interface import Encoded, Sight, TextEncoder, Widths, mean_of_tokens, token_mask
from hitin.errors import InputError
from hitin.option_values import bad_option
from hitin.tokens import PAD, UNKNOWN


@dataclass(frozen=True)
class TextRCNNSettings:
    """The encoder's sizes as in the paper, and what it reads."""

    SIGHTS: ClassVar[tuple[Sight, ...]] = ("document", "tokens")
    tokens: Literal["word", "subword"] = "word"
    """Whole words; or pieces of words, for short texts of rare words."""
    clean: Clean = ""
    """How English texts are cleaned: as the paper's are (hiagm), without stop words; empty: as little as may be."""
    vocabulary: int = 50_000
    """The most words, or pieces of words."""
    min_count: int = 2
    """A word must occur so often in the training documents."""
    max_length: int = 256
    """Tokens of a document; what comes after is cut off."""
    vectors: str = ""
    """A file of vectors of whole words to begin with; empty: they are learnt from nothing."""
    embedding: int = 300
    """The width of a word vector, unless a file says it."""
    hidden: int = 128
    """The width of the GRU, each way."""
    layers: int = 2
    filters: int = 100
    """Of each width of convolution."""
    kernels: tuple[int, ...] = (2, 3, 4)
    embedding_dropout: float = 0.5
    token_dropout: float = 0.1
    """Dropout on what the GRU makes of each token."""
    word_dropout: float = 0.0
    """How many words of a training document are replaced by the unknown word."""

    def __post_init__(self) -> None:
        sizes = (
            self.vocabulary,
            self.min_count,
            self.max_length,
            self.embedding,
            self.hidden,
            self.layers,
            self.filters,
        )
        if min(sizes) < 1 or not self.kernels or min(self.kernels) < 1:
            raise InputError("the sizes of TextRCNN are whole numbers from 1 on", kind="bad-option")
        if self.clean and self.tokens == "subword":
            raise bad_option(
                f"clean is {self.clean}, which leaves words out, and tokens is subword",
                "Clean with tokens = word, or read pieces of words without cleaning.",
            )
        if self.vectors and self.tokens == "subword":
            raise bad_option(
                "vectors are of whole words, and tokens is subword",
                "Begin with vectors where tokens = word, or leave them out.",
            )
        if not all(0 <= rate < 1 for rate in (self.embedding_dropout, self.token_dropout, self.word_dropout)):
            raise InputError("a dropout is a number from 0 to below 1", kind="bad-option")

    @staticmethod
    def usual() -> dict[str, object]:
        """What suits it (benchmarks/results/recipe.md)."""
        return {"epochs": 20, "consistency": 3.0}


class TextRCNN(TextEncoder):
    """H = concat over kernels of max over time of ReLU(conv(GRU(words)))."""

    repeats = True  # on a GPU, where it does not pack

    def __init__(self, vocabulary: int, settings: TextRCNNSettings, vectors: Tensor | None = None) -> None:
        """`vectors` (vocabulary, width) are where the word vectors begin."""
        super().__init__()
        width = settings.embedding if vectors is None else vectors.shape[1]
        self.embedding = nn.Embedding(vocabulary, width, padding_idx=PAD)
        if vectors is not None:
            with torch.no_grad():
                self.embedding.weight.copy_(vectors)
                self.embedding.weight[PAD] = 0
        self.gru = nn.GRU(width, settings.hidden, settings.layers, batch_first=True, bidirectional=True)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(2 * settings.hidden, settings.filters, kernel, padding=kernel // 2) for kernel in settings.kernels
        )
        self.embedding_dropout = nn.Dropout(settings.embedding_dropout)
        self.token_dropout = nn.Dropout(settings.token_dropout)
        self.word_dropout = settings.word_dropout
        self.widths = Widths(settings.filters * len(settings.kernels), 2 * settings.hidden, width)
        self.makes_vector = True
        self.packs = True

    def forward(self, ids: Tensor, lengths: Tensor, words: Tensor | None = None) -> Encoded:
        if words is None:
            words = self.words_of(self._with_unknown_words(ids) if self.training and self.word_dropout else ids)
        words = self.embedding_dropout(words)  # (B, L, e)
        tokens = self.token_dropout(self._read(words, lengths))  # (B, L, 2h), zero at padding
        mask = token_mask(lengths, words.shape[1], ids.device)
        if not self.makes_vector:
            return Encoded(mean_of_tokens(tokens, mask), tokens, mask)
        by_time = tokens.transpose(1, 2)  # (B, 2h, L)
        features = [self._over_time(convolution, by_time, lengths) for convolution in self.convolutions]
        return Encoded(torch.cat(features, dim=1), tokens, mask)

    def words_of(self, ids: Tensor) -> Tensor:
        words: Tensor = self.embedding(ids)
        return words

    def leave_out_vector(self, *, keep: bool = False) -> None:
        self.makes_vector = False
        self.widths = self.widths._replace(document=self.widths.token)
        if keep:
            self.convolutions.requires_grad_(False)
        else:
            self.convolutions = nn.ModuleList()

    def for_export(self) -> None:
        self.packs = False

    def _read(self, words: Tensor, lengths: Tensor) -> Tensor:
        """What the GRU makes of each word, always in full precision.

        Mixed precision of whatever kind lets cuDNN's GRU run in fp16, where small gradients vanish: with bf16 nothing
        scales them up, and at thousands of labels all of them are small.
        """
        with torch.autocast(words.device.type, enabled=False):
            if not self.packs or words.is_cuda or torch.is_grad_enabled():
                return self._read_padded(words, lengths)
            packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
            tokens, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=words.shape[1])
        return tokens

    def _read_padded(self, words: Tensor, lengths: Tensor) -> Tensor:
        """The same without packing: each way reads to the end of the batch, the way back from a document's last word.

        What is read at padding comes after all words and so reaches none of them. On a GPU it is several times
        faster: a packed batch is a different piece of work for each step in time, and each time anew. With gradients
        it is twice as fast on a CPU: those of a packed batch are as large as the batch, once more for each step.
        """
        places = torch.arange(words.shape[1], device=words.device)
        mask = token_mask(lengths, words.shape[1], words.device)
        back = torch.where(mask, lengths.to(words.device)[:, None] - 1 - places, places)[:, :, None]  # (B, L, 1)
        for layer in range(self.gru.num_layers):
            there = self._one_way(words, f"l{layer}")
            turned = words.gather(1, back.expand_as(words))
            and_back = self._one_way(turned, f"l{layer}_reverse")
            words = torch.cat([there, and_back.gather(1, back.expand_as(and_back))], dim=2)  # (B, L, 2h)
        return words * mask[:, :, None]

    def _one_way(self, words: Tensor, name: str) -> Tensor:
        """(B, L, h): what one layer of the GRU makes of words, read from the left."""
        weights = [getattr(self.gru, f"{kind}_{name}") for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        start = words.new_zeros(1, words.shape[0], self.gru.hidden_size)
        with_gradients = self.training or words.requires_grad  # for which cuDNN has to keep more; there is no dropout
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message="RNN module weights are not part"
            )  # they are copied, which is quick
            tokens, _ = torch.gru(words, start, weights, True, 1, 0.0, with_gradients, False, True)
        return tokens

    def _over_time(self, convolution: nn.Module, by_time: Tensor, lengths: Tensor) -> Tensor:
        """The maximum over the places that the document has when it is alone: padding adds none. (B, filters)"""
        found = torch.relu(convolution(by_time))  # (B, filters, L + extra)
        extra = found.shape[2] - by_time.shape[2]
        inside = token_mask(lengths + extra, found.shape[2], found.device)
        return found.masked_fill(~inside[:, None], 0).amax(dim=2)  # nothing is below the 0 of the ReLU

    def _with_unknown_words(self, ids: Tensor) -> Tensor:
        dropped = torch.rand(ids.shape, device=ids.device) < self.word_dropout
        return ids.masked_fill(dropped & (ids != PAD), UNKNOWN)
