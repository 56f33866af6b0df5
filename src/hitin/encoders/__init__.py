"""Text encoders behind one interface: from the settings of a run to an encoder and its tokenizer, and back."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from hitin.bags import Bags, Shape
from hitin.encoders.bag import Bag, BagSettings
from hitin.encoders.interface import TextEncoder
from hitin.encoders.textrcnn import TextRCNN, TextRCNNSettings
from hitin.encoders.transformer import Transformer, TransformerSettings, config_of, load_pretrained, restore
from hitin.encoders.vectors import Coverage, coverage, read_vectors
from hitin.tokens import Ragged, encode, subword_tokenizer, word_tokenizer

EncoderSettings = TextRCNNSettings | BagSettings | TransformerSettings
AnyTokenizer = Tokenizer | Bags
"""From a text to numbers: of tokens in a row, or of what is in a bag."""

_MISSING = 0.25  # a word without a vector begins with numbers between this and its negative


def build_encoder(settings: EncoderSettings, texts: Sequence[str]) -> tuple[TextEncoder, AnyTokenizer, Coverage | None]:
    """An encoder to train: its vocabulary from the training texts, or pretrained; and what its word vectors cover."""
    if isinstance(settings, TransformerSettings):
        return *load_pretrained(settings), None
    if isinstance(settings, BagSettings):
        bags = _bags(settings, texts)
        return Bag(bags.get_vocab_size(), settings, bags.all_weights()), bags, None
    learn = subword_tokenizer if settings.tokens == "subword" else word_tokenizer
    tokenizer = learn(texts, size=settings.vocabulary, min_count=settings.min_count)
    vectors, covered = _starting_vectors(settings, tokenizer, texts) if settings.vectors else (None, None)
    return TextRCNN(tokenizer.get_vocab_size(), settings, vectors), tokenizer, covered


def restore_encoder(settings: EncoderSettings, tokenizer: AnyTokenizer, config: str | None, width: int) -> TextEncoder:
    """The encoder of a saved model, before its weights are filled in. `width` is that of its word vectors."""
    if isinstance(settings, TransformerSettings):
        return restore(settings, config or "{}")
    if isinstance(settings, BagSettings):
        return Bag(tokenizer.get_vocab_size(), settings)
    return TextRCNN(tokenizer.get_vocab_size(), settings, torch.zeros(tokenizer.get_vocab_size(), width))


def read_tokenizer(settings: EncoderSettings, file: Path) -> AnyTokenizer:
    """What a saved model's encoder reads texts with."""
    if isinstance(settings, BagSettings):
        return Bags.from_str(file.read_text(encoding="utf-8"))
    return Tokenizer.from_file(str(file))


def numbers_of(tokenizer: AnyTokenizer, texts: Sequence[str], max_length: int) -> Ragged:
    """Each text as the numbers that its encoder reads."""
    if isinstance(tokenizer, Bags):
        return tokenizer.encode(texts, max_length)
    return encode(tokenizer, texts, max_length)


def encoder_config(encoder: TextEncoder) -> str | None:
    """What `restore_encoder` needs beside the settings."""
    return config_of(encoder) if isinstance(encoder, Transformer) else None


def _bags(settings: BagSettings, texts: Sequence[str]) -> Bags:
    shortest, longest = settings.pieces or (0, 0)
    return Bags.learnt(
        texts,
        Shape(settings.runs, (shortest, longest)),
        size=settings.vocabulary,
        min_count=settings.min_count,
        max_length=settings.max_length,
    )


def _starting_vectors(
    settings: TextRCNNSettings, tokenizer: Tokenizer, texts: Sequence[str]
) -> tuple[Tensor, Coverage]:
    """(vocabulary, width): vectors from a file, and small random ones for words that it does not have."""
    vocabulary = tokenizer.get_vocab_size()
    words = [tokenizer.id_to_token(number) or "" for number in range(vocabulary)]
    found = read_vectors(settings.vectors, wanted=set(words))
    matrix, known = found.matrix_for(words)
    vectors = torch.empty(matrix.shape).uniform_(-_MISSING, _MISSING)
    vectors[torch.from_numpy(known)] = torch.from_numpy(matrix[known])
    counts = np.bincount(encode(tokenizer, texts, settings.max_length).values, minlength=vocabulary)
    running = {word: int(count) for word, count in zip(words, counts.tolist(), strict=True) if count}
    return vectors, coverage(running, found)
