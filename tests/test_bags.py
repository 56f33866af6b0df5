"""The bag encoder: what of a text it sees, the sum it makes of it, and that it learns and comes back."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hitin import HierarchicalTextClassifier, InputError
from hitin.bags import Bags, Shape
from hitin.encoders.bag import Bag, BagSettings
from hitin.settings import Run
from hitin.tokens import PAD, UNKNOWN, Ragged
from tests.training_harness import TAXONOMY, documents

SHAPE = Shape(2, (3, 4))
TINY = {"encoder": "bag", "embedding": 16, "width": 8, "epochs": 6, "batch_size": 8, "min_count": 1}


def bags(*texts: str, shape: Shape = SHAPE, size: int = 1000, min_count: int = 1) -> Bags:
    return Bags.learnt(texts, shape, size=size, min_count=min_count, max_length=50)


def test_features_are_words_runs_of_words_and_pieces_of_words() -> None:
    assert list(SHAPE.features("The gut, the", 50)) == [
        *("the", "gut", "the"),
        *("the gut", "gut the"),
        *("#<th", "#the", "#he>", "#<the", "#the>"),
        *("#<gu", "#gut", "#ut>", "#<gut", "#gut>"),
    ]
    assert list(Shape(1, (0, 0)).features("a b c d", 3)) == ["a", "b", "c"]
    assert list(Shape(3, (0, 0)).features("a b c", 9)) == ["a", "b", "c", "a b", "b c", "a b c"]


def test_the_most_frequent_features_are_known_and_rare_ones_weigh_more() -> None:
    found = bags("cat dog", "cat", "cat fish", shape=Shape(1, (0, 0)), size=2)
    assert found.terms == ("cat", "dog")
    assert found.weights[0] < found.weights[1]
    assert found.weights[1] == pytest.approx(np.log(4 / 2) + 1)
    assert bags("cat dog", "cat", shape=Shape(1, (0, 0)), min_count=2).terms == ("cat",)


@given(st.lists(st.text("ab c", max_size=20), max_size=6), st.integers(1, 3), st.sampled_from([(0, 0), (2, 3)]))
def test_numbers_stand_in_the_order_in_which_features_come_first(
    texts: list[str], runs: int, pieces: tuple[int, int]
) -> None:
    found = bags(*texts, shape=Shape(runs, pieces), size=12)
    known = {term: number for number, term in enumerate(found.terms, start=2)}
    for _ in range(2):  # words that were seen before, too
        for text, row in zip(texts, (numbers.tolist() for numbers in iter_rows(found.encode(texts, 50))), strict=True):
            first: list[int] = []
            for feature in found.shape.features(text, 50):
                if feature in known and known[feature] not in first:
                    first.append(known[feature])
            assert row == (first or [UNKNOWN])


def test_no_more_words_are_remembered_than_was_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitin.bags._WORDS_KEPT", 3)
    texts = ["one two three four five", "five six one"]
    found = bags(*texts)
    wanted = [row.tolist() for row in iter_rows(found.encode(texts, 50))]
    assert [row.tolist() for row in iter_rows(found.encode(texts, 50))] == wanted
    assert len(found._pieces) <= 3


def test_encoding_tells_how_far_it_is() -> None:
    told: list[int] = []
    bags("cat").encode(["cat"] * 2500, 50, told.append)
    assert told == [1024, 1024, 452]


def iter_rows(ragged: Ragged) -> Iterator[NDArray[np.int32]]:
    return (ragged[row] for row in range(len(ragged)))


def test_a_text_is_the_numbers_of_its_features_once_each() -> None:
    found = bags("cat dog", shape=Shape(1, (0, 0)))
    numbers = found.encode(["dog cat dog", "", "cow"], 50)
    assert sorted(numbers[0].tolist()) == [2, 3]
    assert numbers[1].tolist() == numbers[2].tolist() == [UNKNOWN]


def test_a_word_that_was_never_seen_is_known_by_its_pieces() -> None:
    found = bags("gastritis", "hepatic")
    known = set(found.encode(["hepatitis"], 50)[0].tolist())
    assert known & set(found.encode(["gastritis"], 50)[0].tolist())
    assert known & set(found.encode(["hepatic"], 50)[0].tolist())


@given(st.lists(st.text(st.characters(), max_size=60), min_size=1, max_size=5))
def test_any_text_is_read_and_bags_come_back_from_json(texts: list[str]) -> None:
    found = bags(*texts)
    written = found.to_str().encode("utf-8").decode("utf-8")
    assert Bags.from_str(written) == found
    assert found.get_vocab_size() == len(found.all_weights())
    for text, row in zip(texts, range(len(texts)), strict=True):
        numbers = found.encode([text], 50)[0]
        assert len(numbers) >= 1
        assert len(set(numbers.tolist())) == len(numbers)
        assert np.array_equal(numbers, found.encode(texts, 50)[row])


def test_the_vector_is_the_weighted_sum_of_the_features_whatever_the_padding() -> None:
    torch.manual_seed(0)
    weights = np.array([0, 1, 2, 3, 4], dtype=np.float32)
    bag = Bag(5, BagSettings(embedding=6), weights).eval()
    ids, lengths = torch.tensor([[2, 3, PAD], [4, PAD, PAD]]), torch.tensor([2, 1])
    found = bag(ids, lengths)
    table = bag.embedding.weight
    for row, shares in enumerate(({2: 2 / 13**0.5, 3: 3 / 13**0.5}, {4: 1.0})):
        total = sum(share * table[number] for number, share in shares.items())
        assert torch.allclose(found.vector[row], torch.relu(bag.norm(total)), atol=1e-6)
    wider = bag(torch.nn.functional.pad(ids, (0, 4)), lengths)
    assert torch.equal(wider.vector, found.vector)
    assert found.tokens.shape == (2, 1, 6)
    assert found.mask.all()


def test_some_features_are_left_out_in_training_and_a_document_without_any_is_no_accident() -> None:
    torch.manual_seed(0)
    bag = Bag(50, BagSettings(embedding=6, word_dropout=0.9), np.ones(50, dtype=np.float32))
    ids, lengths = torch.arange(2, 50)[None], torch.tensor([48])
    assert not torch.equal(bag(ids, lengths).vector, bag(ids, lengths).vector)
    few = bag(ids[:, :1].repeat(64, 1), torch.ones(64, dtype=torch.long)).vector
    assert few.isfinite().all()
    bag.eval()
    assert torch.equal(bag(ids, lengths).vector, bag(ids, lengths).vector)


@pytest.mark.parametrize("method", ["hitin", "flat"])
def test_a_bag_learns_and_comes_back_from_its_folder(method: str, tmp_path: Path) -> None:
    texts, labels = documents(60)
    options = {name: value for name, value in TINY.items() if name != "width" or method == "hitin"}
    classifier = HierarchicalTextClassifier(TAXONOMY, method=method, seed=3, **options)  # type: ignore[arg-type]
    classifier.fit(texts, labels, documents(30, seed=1), out=tmp_path / "model")
    assert classifier.score(*documents(40, seed=2)) > 0.6
    again = HierarchicalTextClassifier.load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(texts), classifier.predict_proba(texts))
    twin = HierarchicalTextClassifier(TAXONOMY, method=method, seed=3, **options)  # type: ignore[arg-type]
    twin.fit(texts, labels, documents(30, seed=1))
    assert np.array_equal(twin.predict_proba(texts), classifier.predict_proba(texts))


def test_a_damaged_vocabulary_is_told(tmp_path: Path) -> None:
    texts, labels = documents(20)
    classifier = HierarchicalTextClassifier(TAXONOMY, **TINY | {"epochs": 1})  # type: ignore[arg-type]
    classifier.fit(texts, labels, out=tmp_path)
    bags_file = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    with pytest.raises(ValueError, match="do not fit"):
        Bags.from_str(json.dumps(bags_file | {"terms": bags_file["terms"][1:]}))


def test_settings_that_make_no_sense_are_refused() -> None:
    for name, values in {"runs": [0], "pieces": [[3], [5, 3], [0, 3]], "word_dropout": [1.0], "embedding": [0]}.items():
        for value in values:  # type: ignore[attr-defined]
            with pytest.raises(InputError):
                Run.of(encoder="bag", **{name: value})


def test_the_run_of_a_bag_comes_back_from_toml(tmp_path: Path) -> None:
    run = Run.of(encoder="bag", pieces=[], runs=3)
    (tmp_path / "run.toml").write_text(run.to_toml(), encoding="utf-8")
    assert Run.of(preset=tmp_path / "run.toml") == run
    assert run.encoder_name == "bag"
    with pytest.raises(InputError, match="bag"):
        Run.of(encoder="textrcnn", runs=2)
