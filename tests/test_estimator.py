"""`HierarchicalTextClassifier`: with scikit-learn, with labels in every shape, with odd texts."""

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors.torch import load_file
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from hitin import HierarchicalTextClassifier, InputError, InputWarning, Taxonomy
from hitin.decisions import Decisions
from hitin.inputs import Documents, chunks, documents_of, hold_out
from tests.training_harness import TAXONOMY, are_equal, classifier, documents, fitted, weights

TEXTS, NAMES = documents(40)


@pytest.fixture(scope="module")
def trained() -> HierarchicalTextClassifier:
    found = fitted(60, epochs=6)
    found.decisions_ = Decisions(threshold=0.3)
    return found


def indicators(names: list[Any]) -> NDArray[np.int64]:
    """The matrix of 0 and 1, ancestors included."""
    table = np.zeros((len(names), len(TAXONOMY)), dtype=np.int64)
    for row, labels in enumerate(names):
        table[row, list(TAXONOMY.closure([TAXONOMY.index(label) for label in labels]))] = 1
    return table


# scikit-learn.


def test_a_clone_has_the_same_parameters_and_has_learnt_nothing(trained: HierarchicalTextClassifier) -> None:
    twin = clone(trained)
    assert twin.get_params() == trained.get_params()
    assert not hasattr(twin, "model_")
    check_is_fitted(trained)
    with pytest.raises(NotFittedError):
        check_is_fitted(twin)


def test_parameters_can_be_set_and_are_shown() -> None:
    made = HierarchicalTextClassifier(TAXONOMY, height=3).set_params(method="flat", seed=2, height=4)
    assert made.get_params()["seed"] == 2
    assert made.method == "flat"
    assert "height=4" in repr(made)
    assert "encoder" not in repr(made)
    assert "array" in repr(made.set_params(kernels=np.array([1, 2])))


def test_settings_are_attributes_and_copies_have_their_own() -> None:
    one = classifier(epochs=3)
    other = copy.copy(one)
    other.epochs = 1
    other.height = 3
    assert (one.epochs, other.epochs) == (3, 1)
    assert one.get_params() == classifier(epochs=3).get_params()
    assert len(other.fit(TEXTS, NAMES).history_.epochs) == 1
    assert other.model_.run.to_dict()["method"]["height"] == 3
    with pytest.raises(AttributeError, match="no attribute 'hieght'"):
        _ = other.hieght


class _Own(HierarchicalTextClassifier):
    def __init__(self, taxonomy: Taxonomy | None = None, *, extra: int = 1, **options: Any) -> None:
        super().__init__(taxonomy, **options)
        self.extra = extra


def test_a_class_derived_from_it_keeps_its_own_parameters() -> None:
    one = clone(_Own(TAXONOMY, extra=5, method="flat", epochs=2))
    assert (one.extra, one.method, one.epochs) == (5, "flat", 2)
    assert one.set_params(extra=6).extra == 6


def test_scores_by_cross_validation() -> None:
    scores = cross_val_score(classifier(epochs=1), TEXTS, NAMES, cv=2)
    assert scores.shape == (2,)
    assert ((scores >= 0) & (scores <= 1)).all()


def test_a_grid_of_settings_is_searched() -> None:
    grid = {"height": [2, 3], "learning_rate": [1e-3, 5e-2]}
    search = GridSearchCV(classifier(epochs=2), grid, cv=2, error_score="raise")
    search.fit(TEXTS, NAMES)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_estimator_.model_.run.method.height == search.best_params_["height"]
    assert len(search.predict(TEXTS)) == 40


def test_it_is_the_last_step_of_a_pipeline() -> None:
    pipeline = Pipeline(
        [("lower", FunctionTransformer(lambda texts: [text.lower() for text in texts])), ("hitin", classifier())]
    )
    pipeline.set_params(hitin__epochs=1)
    pipeline.fit([text.upper() for text in TEXTS], NAMES, hitin__validation=documents(5, seed=1))
    assert pipeline.predict_proba(["BARK"]).shape == (1, len(TAXONOMY))
    assert pipeline[-1].sizes_ == {"train": 40, "validation": 5}


def test_it_can_be_pickled_and_copied_for_other_processes(trained: HierarchicalTextClassifier) -> None:
    for twin in (pickle.loads(pickle.dumps(trained)), copy.deepcopy(trained)):
        assert np.array_equal(twin.predict_proba(TEXTS), trained.predict_proba(TEXTS))


def test_the_score_is_the_micro_f1_of_scikit_learn(trained: HierarchicalTextClassifier) -> None:
    texts, names = documents(50, seed=5)
    found = indicators([sorted(labels) for labels in trained.predict(texts)])
    truth = indicators(names)
    assert trained.score(texts, names) == pytest.approx(f1_score(truth, found, average="micro"))
    scores = trained.evaluate(texts, names)
    assert scores.macro_f1 == pytest.approx(f1_score(truth, found, average="macro", zero_division=0))
    assert scores.documents == 50


# Labels in every shape.


def shapes() -> dict[str, Any]:
    table = indicators(NAMES)
    closed = [[TAXONOMY.labels[label] for label in np.flatnonzero(row)] for row in table]
    frame = pd.DataFrame(table, columns=TAXONOMY.labels)
    return {
        "lists": NAMES,
        "names": [labels[0] for labels in NAMES],
        "paths": [" > ".join(labels) for labels in closed],
        "with ancestors": closed,
        "sets": [set(labels) for labels in closed],
        "tuples": tuple(tuple(labels) for labels in closed),
        "array of names": np.array([labels[0] for labels in NAMES]),
        "two-dimensional array of names": np.array(NAMES),
        "series": pd.Series([labels[0] for labels in NAMES], index=range(100, 140)),
        "series of lists": pd.Series(NAMES),
        "generator": (labels for labels in NAMES),
        "matrix": table,
        "matrix of booleans": table.astype(bool),
        "matrix of floats": table.astype(float),
        "matrix without ancestors": indicators(NAMES) * (TAXONOMY.child_counts == 0),
        "sparse matrix": scipy.sparse.csr_matrix(table),
        "sparse array by columns": scipy.sparse.csc_array(table.astype(np.float32)),
        "matrix of objects": table.astype(object),
        "tensor": torch.tensor(table),
        "frame in another order": frame[sorted(frame.columns)],
        "frame that may have gaps": frame.astype("Int64"),
        "frame of several kinds": frame.astype({TAXONOMY.labels[0]: bool}),
        "blanks around names": [f" {labels[0]} " for labels in NAMES],
    }


@pytest.mark.parametrize("shape", list(shapes()))
def test_labels_may_have_any_shape(shape: str) -> None:
    texts: Any = pd.Series(TEXTS) if shape == "series" else TEXTS
    found = documents_of(TAXONOMY, texts, shapes()[shape], "training")
    assert found == documents_of(TAXONOMY, TEXTS, NAMES, "training")


def test_a_model_does_not_depend_on_the_shape_of_its_labels() -> None:
    one = classifier(epochs=1).fit(TEXTS, NAMES)
    two = classifier(epochs=1).fit(pd.Series(TEXTS), scipy.sparse.csr_matrix(indicators(NAMES)))
    assert are_equal(weights(one), weights(two))


def test_numbers_can_be_names() -> None:
    taxonomy = Taxonomy.from_edges([(1, 10), (1, 11)])
    assert documents_of(taxonomy, ["a", "b"], np.array([10, 11]), "training").labels == [(0, 1), (0, 2)]
    assert documents_of(taxonomy, ["a"], [[10, 11.0]], "training").labels == [(0, 1, 2)]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["Catt"]], "document 1: the training label 'Catt' is not in the taxonomy\nDid you mean 'Cat'?"),
        ([["Zeppelin"]], "Add it to the taxonomy"),
        (["Cat", "Dgo"], "document 2: the training label 'Dgo'"),
        ([None], "document 1: a label must be text or a number"),
        ([float("nan")], "document 1: a label must be text or a number"),
        ([[True]], "a label must be text"),
        ("Cat", "a list is expected"),
        (5, "A list is expected"),
        (None, "A list is expected"),
        ([], "0 training sets of labels but more texts"),
        (["Cat", "Dog", "Dog"], "2 training texts but more sets of labels"),
        ([[], []], "no training document has a label"),
        (np.zeros((2, 8)), "no training document has a label"),
        (np.zeros((2, 3)), "has 3 columns, the taxonomy 8 labels"),
        (np.full((2, 8), 2), "holds 2"),
        (np.full((2, 8), np.nan), "holds nan"),
        (scipy.sparse.csr_matrix(np.full((2, 8), -1.0)), "holds -1.0"),
        (pd.DataFrame(np.zeros((2, 8))), "missing: Animal"),
        (pd.DataFrame(np.full((2, 8), "Cat"), columns=TAXONOMY.labels), "cells without a number"),
        (pd.DataFrame([[None] * 8] * 2, columns=TAXONOMY.labels), "cells without a number"),
        ([{"Cat": 1}, {"Cat": 0}], "document 1: the labels of a document are"),
        ([b"Cat", b"Dog"], "document 1: the labels of a document are"),
        ({"Cat": 1, "Dog": 1}, "a whole dict"),
        (pd.DataFrame(np.zeros((2, 9)), columns=[*TAXONOMY.labels, "More"]), "unknown: More"),
    ],
)
def test_wrong_labels_are_told(labels: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        classifier().fit(["one", "two"], labels)
    assert message in str(caught.value)


def test_wrong_texts_are_told() -> None:
    for texts, message in (
        ("bark", r"Write \[text\]"),
        (5, "A list is expected"),
        (["a", None], "document 2: a text is None"),
        (pd.DataFrame({"text": ["mew", "bark"]}), r"a whole DataFrame(.|\n)*df\[\"text\"\]"),
        ({"mew": 1, "bark": 2}, "a whole dict"),
        ({"mew", "bark"}, "a set, which has no order"),
    ):
        with pytest.raises(InputError, match=message):
            classifier().fit(texts, ["Cat", "Dog"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no training documents"):
        classifier().fit([], [])


def test_without_validation_documents_the_policy_is_the_one_asked_for_and_the_rest_is_told() -> None:
    usual: dict[str, Any] = {"method": "linear", "validation": 0}
    asked = HierarchicalTextClassifier(TAXONOMY, **usual, policy="raw", thresholds="fixed", calibration="none")
    assert asked.fit(TEXTS, NAMES).decisions_ == Decisions("raw")
    assert HierarchicalTextClassifier(TAXONOMY, **usual).fit(TEXTS, NAMES).decisions_ == Decisions()
    asked = HierarchicalTextClassifier(TAXONOMY, **usual, policy="top-down", thresholds="one", wished_precision=0.9)
    with pytest.warns(InputWarning, match="nothing comes of thresholds=one, wished_precision=0.9: there are no valid"):
        asked.fit(TEXTS, NAMES)
    assert asked.decisions_ == Decisions("top-down")


@pytest.mark.parametrize("validation", [["mew"], (["mew"], None), ["mew", "bark", "fin"], "mew", 5])
def test_validation_without_labels_is_told(validation: Any) -> None:
    with pytest.raises(InputError, match="validation is no pair of texts and labels"):
        classifier().fit(TEXTS, NAMES, validation)


def test_validation_documents_are_checked_like_the_others() -> None:
    with pytest.raises(InputError, match="the validation label 'Catt'"):
        classifier().fit(TEXTS, NAMES, (["mew"], ["Catt"]))
    with pytest.raises(InputError, match="no validation documents"):
        classifier().fit(TEXTS, NAMES, ([], []))


def test_an_unknown_option_is_told_at_fit_as_scikit_learn_does() -> None:
    made = classifier(hieght=3)
    with pytest.raises(InputError, match="Did you mean height"):
        made.fit(TEXTS, NAMES)


def test_without_a_taxonomy_there_is_nothing_to_learn(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no taxonomy"):
        HierarchicalTextClassifier().fit(TEXTS, NAMES)
    TAXONOMY.write(tmp_path / "taxonomy.tsv")
    made = classifier(epochs=1).set_params(taxonomy=str(tmp_path / "taxonomy.tsv")).fit(TEXTS, NAMES)
    assert made.taxonomy_ == TAXONOMY


@pytest.mark.parametrize("given", [{"Health": ["Injury"]}, [["Health", "Injury"]], 7])
def test_a_taxonomy_that_is_none_is_told_what_makes_one(given: Any) -> None:
    with pytest.raises(InputError, match="neither a Taxonomy nor a file") as caught:
        HierarchicalTextClassifier(given).fit(TEXTS, NAMES)
    assert all(f"Taxonomy.from_{made} of" in str(caught.value) for made in ("nested", "edges", "paths"))


def test_what_has_not_been_trained_says_so(tmp_path: Path) -> None:
    made = classifier()
    for use in (
        made.predict,
        made.predict_proba,
        lambda texts: made.evaluate(texts, NAMES),
        lambda _: made.save(tmp_path),
    ):
        with pytest.raises(InputError, match="not been trained") as caught:
            use(TEXTS)
        assert caught.value.kind == "not-fitted"


# Documents held out.


def test_a_part_is_held_out_and_equal_texts_stay_together() -> None:
    texts = [f"text {number % 50}" for number in range(100)]
    given = documents_of(TAXONOMY, texts, ["Cat"] * 100, "training")
    rest, held = hold_out(given, 0.2, 0)
    assert held is not None
    assert (len(rest.texts), len(held.texts)) == (80, 20)
    assert not set(rest.texts) & set(held.texts)
    assert hold_out(given, 0.2, 0) == (rest, held)
    assert hold_out(given, 0.2, 1) != (rest, held)


@pytest.mark.parametrize("seed", range(20))
def test_a_text_that_very_many_documents_have_is_not_held_out(seed: int) -> None:
    given = Documents([*(f"text {number}" for number in range(70)), *[""] * 30], [(0,)] * 100)
    rest, held = hold_out(given, 0.2, seed)
    assert held is not None
    assert len(held.texts) == 14  # of 71 texts
    assert rest.texts.count("") == 30


def test_nothing_is_held_out_where_there_is_too_little() -> None:
    for labels in (["Cat"], ["Cat", []]):
        given = documents_of(TAXONOMY, ["a", "b"][: len(labels)], labels, "training")
        assert hold_out(given, 0.5, 0) == (given, None)
    made = classifier(validation=0.25, epochs=1).fit([f"mew {number}" for number in range(40)], ["Cat"] * 40)
    assert made.sizes_ == {"train": 30, "validation": 10}


# Use.


def test_probabilities_have_a_column_for_each_label(trained: HierarchicalTextClassifier) -> None:
    found = trained.predict_proba(TEXTS)
    assert found.shape == (40, len(TAXONOMY))
    assert found.dtype == np.float32
    assert tuple(trained.classes_) == TAXONOMY.labels
    chosen = [{str(trained.classes_[label]) for label in np.flatnonzero(row > 0.3)} for row in found]
    for labels, likely in zip(trained.predict(TEXTS), chosen, strict=True):
        assert labels == {TAXONOMY.labels[each] for each in TAXONOMY.closure([TAXONOMY.index(name) for name in likely])}


ODD = ["", " \n\t", "😀🦊", "\x00\x01", "bark " * 200_000, "ǅ" * 100_000, "naïve \u202e‮", "\ud83d"]


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_any_text_gets_an_answer(text: str, trained: HierarchicalTextClassifier) -> None:
    assert np.isfinite(trained.predict_proba([text])).all()
    assert len(trained.predict([text])) == 1


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(max_size=40), max_size=5))
def test_predictions_are_consistent(texts: list[str], trained: HierarchicalTextClassifier) -> None:
    found = trained.predict(texts)
    assert len(found) == len(texts)
    for labels in found:
        assert all(
            TAXONOMY.labels[parent] in labels for name in labels for parent in TAXONOMY.parents(TAXONOMY.index(name))
        )


def test_no_text_gets_no_answer(trained: HierarchicalTextClassifier) -> None:
    assert trained.predict([]) == []
    assert trained.predict_proba([]).shape == (0, len(TAXONOMY))
    assert trained.predict_proba(iter(["bark"])).shape == (1, len(TAXONOMY))
    with pytest.raises(InputError, match=r"Write \[text\]"):
        trained.predict("bark")
    with pytest.raises(InputError, match="no test documents"):
        trained.evaluate([], [])


def test_the_order_of_texts_does_not_matter(trained: HierarchicalTextClassifier) -> None:
    texts = documents(30, seed=8)[0]
    assert np.allclose(trained.predict_proba(texts[::-1])[::-1], trained.predict_proba(texts), atol=1e-6)


def test_documents_are_scored_as_they_come(
    trained: HierarchicalTextClassifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are, only a few are held at a time."""
    monkeypatch.setattr("hitin.estimator.documents_at_once", lambda _: 16)
    waiting = [0]

    def stream() -> Iterator[str]:
        for text in documents(200, seed=4)[0]:
            waiting[0] += 1
            yield text

    def labels() -> Iterator[list[str]]:
        for number, each in enumerate(documents(200, seed=4)[1]):
            assert waiting[0] - number <= 17
            yield each

    streamed = trained.evaluate(stream(), labels())
    monkeypatch.undo()
    assert streamed == trained.evaluate(*documents(200, seed=4))
    assert list(chunks(range(5), 2)) == [[0, 1], [2, 3], [4]]


def test_what_was_loaded_can_be_cloned_and_trained_again(trained: HierarchicalTextClassifier, tmp_path: Path) -> None:
    trained.save(tmp_path)
    loaded = HierarchicalTextClassifier.load(tmp_path, device="cpu")
    assert loaded.get_params()["epochs"] == 6
    assert loaded.get_params()["method"] == "hitin"
    again = clone(loaded).fit(*documents(60))
    assert are_equal(weights(again), weights(trained))
    assert again.get_params() == loaded.get_params()
    with pytest.raises(InputError, match="no device"):
        HierarchicalTextClassifier.load(tmp_path, device="cuda:42")


def test_the_scores_of_validation_documents_are_saved_again_from_wherever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted(40, epochs=1, validation=0.3).save(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    loaded = HierarchicalTextClassifier.load("model", device="cpu")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    loaded.save("copy")
    name = "validation.safetensors"
    assert are_equal(*(load_file(folder / name) for folder in (tmp_path / "below" / "copy", tmp_path / "model")))
    (tmp_path / "model" / name).unlink()
    with pytest.warns(InputWarning, match="scores of validation documents are lost"):
        loaded.save("other")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Documents([], []), "no training documents"),
        (Documents(["mew"], [(0, 1), (0, 2)]), "1 training texts and 2 sets of labels"),
        (Documents(["mew"], [(0, 99)]), "has the labels"),
        (Documents(["mew"], [(-1,)]), "has the labels"),
        (Documents(["mew"], [(TAXONOMY.index("Cat"),)]), "all ancestors included"),
    ],
)
def test_numbers_of_labels_are_checked_before_training(given: Documents, message: str) -> None:
    with pytest.raises(InputError, match=message):
        classifier().fit_documents(given, None)
    with pytest.raises(InputError, match=message.replace("training", "validation")):
        classifier().fit_documents(Documents(["mew"], [(0, 1)]), given)


def test_texts_to_score_are_checked(trained: HierarchicalTextClassifier) -> None:
    with pytest.raises(InputError, match=r"Write \[text\]"):
        trained.scored("mew")
    with pytest.raises(InputError, match="a text is None"):
        trained.scored([None])  # type: ignore[list-item]
    assert np.array_equal(trained.scored(iter(["mew"])).given, trained.scored(["mew"]).given)


# Decisions.


def test_decisions_are_tuned_again_by_name_and_wrong_options_are_told() -> None:
    trained = fitted(40, epochs=1)
    texts, labels = documents(30, seed=1)
    tuned = trained.tune(texts, labels, policy="top-down", tune_for="micro")
    assert trained.decisions_ == tuned.decisions
    assert trained.decisions_.policy == "top-down"
    with pytest.raises(InputError, match="no option 'polcy'") as caught:
        trained.tune(texts, labels, polcy="raw")
    assert caught.value.remedy == "Did you mean policy?"
    with pytest.raises(InputError, match="policy cannot be 'loud'"):
        trained.tune(texts, labels, policy="loud")
    assert trained.decisions_ == tuned.decisions


def test_under_raw_the_deepest_labels_are_the_ends_of_whole_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    trained = fitted(40, epochs=1)
    taxonomy = trained.taxonomy_
    trained.decisions_ = Decisions("raw")
    given = ["Animal", "Cat", "Tree"]
    logits = np.array([[1.0 if name in given else -1.0 for name in taxonomy.labels]], dtype=np.float32)
    monkeypatch.setattr(type(trained.model_), "logits", lambda *_: logits)
    assert trained.predict(["a text"]) == [set(given)]
    assert trained.predict(["a text"], deepest=True) == [{"Cat", "Tree"}]
