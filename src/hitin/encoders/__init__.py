"""Text encoders behind one interface: from the settings of a run to an encoder and its tokenizer, and back."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from hitin.bags import Bags, Shape
from hitin.encoders.bag import Bag, BagSettings
from hitin.encoders.interface import TextEncoder
from hitin.encoders.textrcnn import TextRCNN, TextRCNNSettings
from hitin.encoders.tokenizer_check import check_bags, check_claims, check_numbers, check_own
from hitin.encoders.transformer import (
    Transformer,
    TransformerSettings,
    check_folder,
    config_of,
    load_pretrained,
    restore,
)
from hitin.encoders.vectors import Coverage, coverage, read_vectors
from hitin.errors import InputError
from hitin.files import check_there
from hitin.model import Advance
from hitin.token_cache import TokenCache
from hitin.tokens import Ragged, cut_at, encode, subword_tokenizer, word_tokenizer

EncoderSettings = TextRCNNSettings | BagSettings | TransformerSettings
AnyTokenizer = Tokenizer | Bags
"""From a text to numbers: of tokens in a row, or of what is in a bag."""

_MISSING = 0.25  # a word without a vector begins with numbers between this and its negative


def check_files(settings: object) -> None:
    """Refuse what an encoder begins with and is not there, before documents are read."""
    if isinstance(settings, TransformerSettings):
        check_folder(settings.encoder)
    if isinstance(settings, TextRCNNSettings) and settings.vectors:
        check_there(settings.vectors)


def build_encoder(
    settings: EncoderSettings, texts: Sequence[str], cache: TokenCache | None = None
) -> tuple[TextEncoder, AnyTokenizer, Coverage | None]:
    """An encoder to train: its vocabulary from the training texts, or pretrained; and what its word vectors cover."""
    cache = cache or TokenCache(None)
    if isinstance(settings, TransformerSettings):
        return *load_pretrained(settings), None
    if isinstance(settings, BagSettings):
        bags = _bags(settings, texts, cache)
        return Bag(bags.get_vocab_size(), settings, bags.all_weights()), bags, None
    tokenizer = _word_tokenizer(settings, texts, cache)
    vectors, covered = _starting_vectors(settings, tokenizer, texts, cache) if settings.vectors else (None, None)
    return TextRCNN(tokenizer.get_vocab_size(), settings, vectors), tokenizer, covered


def restore_encoder(settings: EncoderSettings, tokenizer: AnyTokenizer, config: str | None, width: int) -> TextEncoder:
    """The encoder of a saved model, before its weights are filled in. `width` is that of its word vectors."""
    if isinstance(settings, TransformerSettings):
        encoder = restore(settings, config or "{}")
        assert isinstance(tokenizer, Tokenizer)
        check_numbers(tokenizer, encoder.model.config.vocab_size)
        return encoder
    if isinstance(settings, BagSettings):
        return Bag(tokenizer.get_vocab_size(), settings)
    return TextRCNN(tokenizer.get_vocab_size(), settings, torch.zeros(tokenizer.get_vocab_size(), width))


def read_tokenizer(settings: EncoderSettings, file: Path) -> AnyTokenizer:
    """What a saved model's encoder reads texts with."""
    if isinstance(settings, BagSettings):
        bags = Bags.from_str(file.read_text(encoding="utf-8"))
        check_bags(bags)
        return bags
    check_claims(file.read_text(encoding="utf-8"))
    tokenizer = Tokenizer.from_file(str(file))
    cut_at(tokenizer, settings.max_length)  # it may claim to pad to any length
    if isinstance(settings, TextRCNNSettings):
        check_own(tokenizer)
    return tokenizer


def numbers_of(
    tokenizer: AnyTokenizer, texts: Sequence[str], max_length: int, advance: Advance | None = None
) -> Ragged:
    """Each text as the numbers that its encoder reads."""
    if isinstance(tokenizer, Bags):
        return tokenizer.encode(texts, max_length, advance)
    try:
        return encode(tokenizer, texts, max_length, advance)
    except BaseException as error:
        if type(error).__name__ == "PanicException":  # no Exception: a pattern of the tokenizer took too long
            raise InputError("the model's tokenizer cannot read one of the texts", kind="damaged-model") from error
        raise


def kept_numbers(cache: TokenCache, tokenizer: AnyTokenizer, texts: Sequence[str], max_length: int) -> Ragged:
    """`numbers_of`, from the cache where they are there."""

    def said() -> object:
        if isinstance(tokenizer, Tokenizer):
            cut_at(tokenizer, max_length)  # part of what it says of itself
        return [tokenizer.to_str(), max_length]

    if isinstance(tokenizer, Bags):
        numbers = tokenizer.get_vocab_size()
    else:
        numbers = 1 + max(tokenizer.get_vocab().values(), default=0)
    return cache.tokens(said, texts, numbers, lambda advance: numbers_of(tokenizer, texts, max_length, advance))


def encoder_config(encoder: TextEncoder) -> str | None:
    """What `restore_encoder` needs beside the settings."""
    return config_of(encoder) if isinstance(encoder, Transformer) else None


def _word_tokenizer(settings: TextRCNNSettings, texts: Sequence[str], cache: TokenCache) -> Tokenizer:
    learn = subword_tokenizer if settings.tokens == "subword" else partial(word_tokenizer, clean=settings.clean)
    return cache.vocabulary(
        lambda: [settings.tokens, settings.vocabulary, settings.min_count, settings.clean],
        texts,
        lambda: learn(texts, size=settings.vocabulary, min_count=settings.min_count),
        Tokenizer.to_str,
        Tokenizer.from_str,
    )


def _bags(settings: BagSettings, texts: Sequence[str], cache: TokenCache) -> Bags:
    shortest, longest = settings.pieces or (0, 0)
    shape = Shape(settings.runs, (shortest, longest))
    sizes = {"size": settings.vocabulary, "min_count": settings.min_count, "max_length": settings.max_length}
    return cache.vocabulary(
        lambda: ["bags", shape.runs, shape.pieces, sizes],
        texts,
        lambda: Bags.learnt(texts, shape, **sizes),
        Bags.to_str,
        Bags.from_str,
    )


def _starting_vectors(
    settings: TextRCNNSettings, tokenizer: Tokenizer, texts: Sequence[str], cache: TokenCache
) -> tuple[Tensor, Coverage]:
    """(vocabulary, width): vectors from a file, and small random ones for words that it does not have."""
    vocabulary = tokenizer.get_vocab_size()
    words = [tokenizer.id_to_token(number) or "" for number in range(vocabulary)]
    found = read_vectors(settings.vectors, wanted=set(words))
    matrix, known = found.matrix_for(words)
    vectors = torch.empty(matrix.shape).uniform_(-_MISSING, _MISSING)
    vectors[torch.from_numpy(known)] = torch.from_numpy(matrix[known])
    counts = np.bincount(kept_numbers(cache, tokenizer, texts, settings.max_length).values, minlength=vocabulary)
    running = {word: int(count) for word, count in zip(words, counts.tolist(), strict=True) if count}
    return vectors, coverage(running, found)
