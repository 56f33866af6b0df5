"""The scores of validation documents belong to one model: they go where it goes, and no other takes them."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from hitin import HierarchicalTextClassifier, InputError, InputWarning
from hitin.model_folder import fingerprint_of
from hitin.validation_scores import FILE, ValidationScores, load_validation
from tests.training_harness import TAXONOMY, documents, fitted


@pytest.fixture(scope="module")
def trained() -> HierarchicalTextClassifier:
    return fitted(40, val=25, epochs=1)


@pytest.fixture
def folder(trained: HierarchicalTextClassifier, tmp_path: Path) -> Path:
    trained.save(tmp_path / "model")
    return tmp_path / "model"


def scores(folder: Path) -> ValidationScores:
    return load_validation(folder, TAXONOMY, fingerprint_of(folder))


def test_they_are_those_that_decisions_were_tuned_on(trained: HierarchicalTextClassifier, folder: Path) -> None:
    found = scores(folder)
    texts, labels = documents(25, seed=1)
    assert np.array_equal(found.logits, trained.model_.logits(texts))
    assert [set(np.array(TAXONOMY.labels)[row]) >= set(each) for row, each in zip(found.truth, labels, strict=True)]


def test_a_model_that_is_loaded_takes_them_along(folder: Path, tmp_path: Path) -> None:
    before = scores(folder)
    HierarchicalTextClassifier.load(folder).save(folder)
    HierarchicalTextClassifier.load(folder).save(tmp_path / "other")
    for place in (folder, tmp_path / "other"):
        assert all(map(np.array_equal, scores(place), before))


def test_those_of_another_model_are_refused_with_a_remedy(folder: Path, tmp_path: Path) -> None:
    fitted(40, val=25, epochs=1, seed=3).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / FILE, folder / FILE)
    with pytest.raises(InputError, match="not of this model") as caught:
        scores(folder)
    assert caught.value.file == str(folder / FILE)
    assert "labelled documents to tune on" in str(caught.value.remedy)
    with pytest.warns(InputWarning, match="are lost"):
        HierarchicalTextClassifier.load(folder).save(folder)  # which does not make them its own
    assert not (folder / FILE).exists()


def test_a_training_without_validation_documents_has_none(folder: Path, tmp_path: Path) -> None:
    classifier = fitted(40, val=25, epochs=1)
    classifier.fit(*documents(40))
    assert not hasattr(classifier, "validation_")
    classifier.save(folder)
    assert not (folder / FILE).exists()
    loaded = HierarchicalTextClassifier.load(folder)
    loaded.save(tmp_path / "again")
    assert not (tmp_path / "again" / FILE).exists()


@pytest.mark.parametrize("damage", ["cut", "shape"])
def test_damaged_scores_are_told(damage: str, folder: Path) -> None:
    if damage == "cut":
        (folder / FILE).write_bytes((folder / FILE).read_bytes()[:-9])
        with pytest.raises(InputError, match="damaged"):
            scores(folder)
        return
    from hitin import Taxonomy

    with pytest.raises(InputError, match="not of this model"):
        load_validation(folder, Taxonomy.from_edges([], labels=["a"]), fingerprint_of(folder))
