"""TextRCNN: padding changes nothing, a loop over documents and tokens gives the same, words have their vectors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from torch import Tensor

from hitin.encoders import build_encoder, encoder_config, numbers_of, restore_encoder
from hitin.encoders.interface import Encoded
from hitin.encoders.textrcnn import TextRCNN, TextRCNNSettings
from hitin.errors import InputError
from hitin.tokens import PAD, UNKNOWN, encode
from tests.conftest import Write

TEXTS = ["a b c d", "b", "c c a", "d a b c a d b", "zebra b"]
SMALL: dict[str, Any] = {"embedding": 6, "hidden": 5, "filters": 4, "kernels": (1, 2, 3, 4, 5), "min_count": 1}


def textrcnn(vocabulary: int = 12, **options: Any) -> TextRCNN:
    torch.manual_seed(0)
    return TextRCNN(vocabulary, TextRCNNSettings(**SMALL | options)).double()


def batch(documents: list[list[int]], padding: int = PAD) -> tuple[Tensor, Tensor]:
    """Token numbers side by side, and lengths."""
    longest = max(map(len, documents))
    ids = torch.tensor([document + [padding] * (longest - len(document)) for document in documents])
    return ids, torch.tensor([len(document) for document in documents])


DOCUMENTS = [[3, 4, 5, 6, 7, 8, 9], [5], [11, 2], [1, 1, 1, 10], [9, 8, 7]]


def slow_gru(encoder: TextRCNN, words: Tensor, layer: int, suffix: str) -> Tensor:
    """One direction of one layer, token by token."""
    weights = {
        name: getattr(encoder.gru, f"{name}_l{layer}{suffix}")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    }
    state = words.new_zeros(encoder.gru.hidden_size)
    states = []
    for word in words if not suffix else words.flip(0):
        reset, update, new = (weights["weight_ih"] @ word + weights["bias_ih"]).chunk(3)
        old_reset, old_update, old_new = (weights["weight_hh"] @ state + weights["bias_hh"]).chunk(3)
        gate = torch.sigmoid(update + old_update)
        state = (1 - gate) * torch.tanh(new + torch.sigmoid(reset + old_reset) * old_new) + gate * state
        states.append(state)
    return torch.stack(states if not suffix else states[::-1])


def slow_document(encoder: TextRCNN, document: list[int]) -> tuple[Tensor, Tensor]:
    """Eq. 1-2 for one document: its vector and its tokens."""
    tokens = torch.stack([encoder.embedding.weight[word] for word in document])
    for layer in range(encoder.gru.num_layers):
        ways = [slow_gru(encoder, tokens, layer, suffix) for suffix in ("", "_reverse")]
        tokens = torch.cat(ways, dim=1)
    features = []
    for convolution in encoder.convolutions:
        assert isinstance(convolution, torch.nn.Conv1d)
        assert convolution.bias is not None
        width = convolution.kernel_size[0]
        edge = tokens.new_zeros(width // 2, tokens.shape[1])
        padded = torch.cat([edge, tokens, edge])
        found = [
            torch.einsum("oik,ki->o", convolution.weight, padded[start : start + width]) + convolution.bias
            for start in range(len(padded) - width + 1)
        ]
        features.append(torch.stack(found).relu().amax(dim=0))
    return torch.cat(features), tokens


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("gradients", [True, False])  # without them documents are read packed
def test_textrcnn_is_what_a_loop_over_documents_and_tokens_gives(layers: int, gradients: bool) -> None:
    encoder = textrcnn(layers=layers).eval()
    with torch.set_grad_enabled(gradients):
        encoded: Encoded = encoder(*batch(DOCUMENTS))
    assert encoded.vector.shape == (len(DOCUMENTS), encoder.width)
    assert encoded.tokens.shape == (len(DOCUMENTS), 7, encoder.widths.token)
    for row, document in enumerate(DOCUMENTS):
        vector, tokens = slow_document(encoder, document)
        torch.testing.assert_close(encoded.vector[row], vector, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(encoded.tokens[row, : len(document)], tokens, rtol=1e-12, atol=1e-12)
        assert encoded.mask[row].tolist() == [place < len(document) for place in range(7)]


@pytest.mark.parametrize("gradients", [True, False])
def test_padding_never_changes_the_vector_of_a_document(gradients: bool) -> None:
    encoder = textrcnn().eval()
    together = encoder(*batch(DOCUMENTS))
    for row, document in enumerate(DOCUMENTS):
        for longer in (0, 3, 50):
            ids, lengths = batch([document])
            with torch.set_grad_enabled(gradients):
                alone = encoder(torch.nn.functional.pad(ids, (0, longer), value=PAD), lengths)
            torch.testing.assert_close(alone.vector[0], together.vector[row], rtol=1e-12, atol=1e-12)
            tokens = alone.tokens[0][alone.mask[0]]
            torch.testing.assert_close(tokens, together.tokens[row, : len(document)], rtol=1e-12, atol=1e-12)


def test_the_gru_is_not_trained_in_half_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = textrcnn(hidden=4).float()
    seen: list[bool] = []
    gru = torch.gru

    def looked_at(*arguments: Any) -> Any:
        seen.append(torch.is_autocast_enabled("cpu"))
        return gru(*arguments)

    monkeypatch.setattr(torch, "gru", looked_at)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        encoded: Encoded = encoder(*batch(DOCUMENTS))
    assert set(seen) == {False}
    assert encoded.tokens.dtype == torch.float32
    assert encoded.vector.dtype == torch.bfloat16  # the convolutions are


def test_words_are_dropped_in_training_alone() -> None:
    still: dict[str, Any] = {"embedding_dropout": 0.0, "token_dropout": 0.0}
    encoder = textrcnn(word_dropout=1 - 1e-12, **still)
    unknown = [[UNKNOWN] * len(document) for document in DOCUMENTS]
    torch.testing.assert_close(encoder(*batch(DOCUMENTS)).vector, encoder(*batch(unknown)).vector)
    encoder.eval()
    plain = textrcnn(**still).eval()
    torch.testing.assert_close(encoder(*batch(DOCUMENTS)).vector, plain(*batch(DOCUMENTS)).vector)
    ids, _ = batch(DOCUMENTS)
    half = textrcnn(word_dropout=0.5)._with_unknown_words(ids)
    assert torch.equal(half == PAD, ids == PAD)
    assert set(half[half != ids].tolist()) == {UNKNOWN}


@pytest.mark.parametrize(("hidden", "layers"), [(64, 1), (128, 2)])
def test_textrcnn_has_the_parameters_of_its_sizes(hidden: int, layers: int) -> None:
    encoder = TextRCNN(102, TextRCNNSettings(hidden=hidden, layers=layers))
    gru = sum(2 * 3 * hidden * (below + hidden + 2) for below in [300, *[2 * hidden] * (layers - 1)])
    convolutions = sum(100 * (2 * hidden * kernel + 1) for kernel in (2, 3, 4))
    assert sum(parameter.numel() for parameter in encoder.parameters()) == 102 * 300 + gru + convolutions
    assert (encoder.width, encoder.widths.token) == (300, 2 * hidden)


@pytest.mark.parametrize(
    "wrong", [{"hidden": 0}, {"vocabulary": 0}, {"kernels": ()}, {"kernels": (0,)}, {"word_dropout": 1.0}]
)
def test_sizes_that_make_no_encoder_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        TextRCNNSettings(**wrong)


def test_words_begin_with_the_vectors_of_a_file(write: Write) -> None:
    path = write("vectors.txt", "b 1 2 3\na 4 5 6\nneverseen 7 8 9\n")
    torch.manual_seed(0)
    encoder, tokenizer, covered = build_encoder(TextRCNNSettings(vectors=str(path), min_count=1), TEXTS)
    assert isinstance(encoder, TextRCNN)
    assert isinstance(tokenizer, Tokenizer)
    table = {word: encoder.embedding.weight[number] for word, number in tokenizer.get_vocab().items()}
    assert set(table) == {"[PAD]", "[UNK]", "a", "b", "c", "d", "zebra"}
    assert table["b"].tolist() == [1, 2, 3]
    assert table["a"].tolist() == [4, 5, 6]
    assert table["[PAD]"].tolist() == [0, 0, 0]
    for word in ("[UNK]", "c", "d", "zebra"):
        assert 0 < table[word].abs().max() <= 0.25
    assert str(covered) == "vectors for 2 of 5 words (40.0 %), 52.9 % of running words"


def test_vectors_of_words_are_refused_for_pieces_of_words() -> None:
    with pytest.raises(InputError, match="vectors are of whole words, and tokens is subword"):
        TextRCNNSettings(vectors="glove.txt", tokens="subword")


def test_rare_words_are_unknown_and_so_are_words_of_other_texts() -> None:
    encoder, tokenizer, covered = build_encoder(TextRCNNSettings(**SMALL | {"min_count": 2}), TEXTS)
    assert covered is None
    assert isinstance(tokenizer, Tokenizer)
    assert sorted(tokenizer.get_vocab()) == ["[PAD]", "[UNK]", "a", "b", "c", "d"]
    assert encode(tokenizer, ["zebra a other"], 9)[0].tolist() == [UNKNOWN, tokenizer.token_to_id("a"), UNKNOWN]
    assert isinstance(encoder, TextRCNN)
    assert not encoder.embedding.weight[PAD].any()


@pytest.mark.parametrize("vectors", [False, True])
def test_a_textrcnn_is_restored_with_the_width_of_its_words(vectors: bool, write: Write) -> None:
    path = str(write("vectors.txt", "a 1 2 3\n")) if vectors else ""
    chosen = TextRCNNSettings(**SMALL | {"vectors": path})
    encoder, tokenizer, _ = build_encoder(chosen, TEXTS)
    assert encoder_config(encoder) is None
    (Path(path).unlink if vectors else str)()
    again = restore_encoder(chosen, tokenizer, None, 3 if vectors else 6)
    again.load_state_dict(encoder.state_dict())
    documents = numbers_of(tokenizer, TEXTS, 9)
    ids, lengths = torch.from_numpy(documents.padded(np.arange(5))), torch.from_numpy(documents.lengths)
    assert torch.equal(again.eval()(ids, lengths).vector, encoder.eval()(ids, lengths).vector)
