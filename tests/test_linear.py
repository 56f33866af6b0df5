"""The linear method: margins as scikit-learn has them, a folder that comes back, and what is wrong with either."""

import json
import shutil
import signal
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from hitin import HierarchicalTextClassifier, InputError, Taxonomy
from hitin.errors import MissingExtraError
from hitin.inputs import Documents
from hitin.methods.linear import VOCABULARY, LinearModel
from hitin.methods.margins import SCALE, LinearSettings, Margins, fit_margins
from hitin.model import Advance
from hitin.model_card import model_card
from hitin.model_folder import MANIFEST, TRAINING, WEIGHTS
from hitin.neural import TOKENIZER
from hitin.tensor_files import load_tensors, save_tensors
from hitin.tokens import Ragged
from hitin.training.checkpoint import CHECKPOINT
from hitin.training.log import LOG
from hitin.watcher import Watcher
from tests.conftest import REPOSITORY, Run
from tests.training_harness import TAXONOMY, documents, fitted, leftovers

TEXTS, LABELS = documents(60)
OTHERS = [*documents(30, seed=3)[0], "", "no word of this is known"]
TICKETS = REPOSITORY / "examples" / "tickets"


def linear(**options: Any) -> HierarchicalTextClassifier:
    return HierarchicalTextClassifier(TAXONOMY, method="linear", **{"validation": 0} | options)


def load(folder: Path) -> HierarchicalTextClassifier:
    return HierarchicalTextClassifier.load(folder, device="cpu")


def parts(classifier: HierarchicalTextClassifier) -> LinearModel:
    assert isinstance(classifier.model_, LinearModel)
    return classifier.model_


@pytest.fixture(scope="module")
def trained() -> HierarchicalTextClassifier:
    return linear().fit(TEXTS, LABELS, documents(20, seed=1))


@pytest.fixture
def folder(trained: HierarchicalTextClassifier, tmp_path: Path) -> Path:
    trained.save(tmp_path / "model")
    return tmp_path / "model"


# Margins.


@pytest.mark.parametrize(
    ("options", "theirs"),
    [
        ({}, {}),
        ({"cost": 3.0, "ngrams": 1, "min_df": 1}, {"ngram_range": (1, 1), "min_df": 1}),
        ({"sublinear": False, "max_features": 9}, {"sublinear_tf": False, "max_features": 9}),
        ({"single_letters": False, "lower_case": False, "strip_accents": False},
         {"token_pattern": r"\b\w\w+\b", "lowercase": False, "strip_accents": None}),
    ],
)  # fmt: skip
def test_margins_are_those_of_scikit_learn(options: dict[str, Any], theirs: dict[str, Any]) -> None:
    texts = [f"{text} É a 7" if number % 3 else f"{text} Mew e" for number, text in enumerate(TEXTS)]
    found = linear(prune=0, **options).fit(texts, LABELS).model_.logits(OTHERS)
    usual = {"ngram_range": (1, 2), "min_df": 2, "sublinear_tf": True, "strip_accents": "unicode"}
    vectorizer = TfidfVectorizer(**usual | {"token_pattern": r"\b\w+\b"} | theirs)
    rows, truth = vectorizer.fit_transform(texts), np.zeros((len(texts), len(TAXONOMY)), dtype=int)
    for row, names in enumerate(LABELS):
        truth[row, list(TAXONOMY.closure(map(TAXONOMY.index, names)))] = 1
    for dual, near in ((False, 1e-5), (True, 1e-3)):
        machines = LinearSVC(C=options.get("cost", LinearSettings().cost), dual=dual, tol=1e-4, random_state=0)
        margins = OneVsRestClassifier(machines).fit(rows, truth).decision_function(vectorizer.transform(OTHERS))
        assert np.allclose(found / SCALE, margins, atol=near)


def test_any_number_of_threads_gives_the_same_weights() -> None:
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 3, 3):
            torch.set_num_threads(threads)
            found.append(parts(linear(prune=0).fit(TEXTS, LABELS)).margins.arrays())
    finally:
        torch.set_num_threads(before)
    for name, array in found[0].items():
        assert all(np.array_equal(array, other[name]) for other in found[1:])


def test_documents_that_can_be_learnt_are_learnt(trained: HierarchicalTextClassifier) -> None:
    assert trained.history_.chosen["micro_f1"] > 0.8
    assert trained.score(*documents(40, seed=5)) > 0.8


def test_what_is_pruned_is_small() -> None:
    whole, pruned = (parts(linear(prune=prune).fit(TEXTS, LABELS)) for prune in (0, 0.2))
    assert 0 < len(pruned.margins.values) < len(whole.margins.values)
    assert np.abs(pruned.margins.values).min() >= np.float32(0.2 * SCALE)
    longest = np.sqrt(np.diff(whole.tfidf.rows(OTHERS).indptr).max())  # the most that a row of length 1 can add up to
    assert np.abs(whole.logits(OTHERS) - pruned.logits(OTHERS)).max() <= 0.2 * SCALE * longest


def test_a_label_on_no_document_or_on_all_of_them_has_a_finite_margin_far_from_0() -> None:
    taxonomy = Taxonomy.from_nested({"All": ["Some", "Others", "None"]})
    ids: list[tuple[int, ...]] = [(0, 1) if number % 2 else (0, 2) for number in range(len(TEXTS))]
    classifier = HierarchicalTextClassifier(taxonomy, method="linear").fit_documents(Documents(TEXTS, ids), None)
    logits = classifier.model_.logits(OTHERS)
    assert np.isfinite(logits).all()
    assert (logits[:, 0] > 10).all()
    assert (logits[:, 3] < -10).all()
    assert all("None" not in found for found in classifier.predict(OTHERS))


def test_documents_without_words_or_labels_are_no_trouble(tmp_path: Path) -> None:
    texts, ids = ["", "   ", *TEXTS], [(), (), *(TAXONOMY.closure(map(TAXONOMY.index, names)) for names in LABELS)]
    held = Documents(["", "purr"], [(), (0,)])
    classifier = linear().fit_documents(Documents(texts, ids), held, out=tmp_path)
    model = parts(classifier)
    assert np.array_equal(model.logits(["", "!"]), np.stack([model.margins.intercepts] * 2))
    assert model.logits([]).shape == (0, len(TAXONOMY))
    assert load(tmp_path).predict([]) == []
    assert classifier.history_.documents == {"train": len(texts), "validation": 2}


def test_documents_without_any_words_are_told() -> None:
    for texts in (["", "!"], ["one", "two"]):
        with pytest.raises(InputError, match="no words to learn from") as caught:
            linear().fit(texts, ["Cat", "Dog"])
        assert "min_df" in str(caught.value)


def test_many_documents_at_once_are_as_one_by_one(trained: HierarchicalTextClassifier) -> None:
    texts = OTHERS * 50
    assert np.array_equal(
        trained.model_.logits(texts)[:32], np.concatenate([trained.model_.logits([t]) for t in OTHERS])
    )


@settings(max_examples=20)
@given(st.lists(st.sets(st.integers(0, 3)).map(sorted), min_size=2, max_size=8))
def test_labels_stay_in_their_places(ids: list[list[int]]) -> None:
    """Each label is learnt as if it were the only one."""
    rows = TfidfVectorizer(dtype=np.float32).fit_transform(
        [f"w{number % 3} v{number % 2}" for number in range(len(ids))]
    )
    together, _ = fit_margins(rows, Ragged.of(ids), 4, LinearSettings(), lambda _: None)
    for label in range(4):
        alone = [[0] if label in each else [] for each in ids]
        single, _ = fit_margins(rows, Ragged.of(alone), 1, LinearSettings(), lambda _: None)
        assert np.array_equal(together.of(rows)[:, label], single.of(rows)[:, 0])


# What is kept.


def test_a_linear_model_comes_back_as_it_was(trained: HierarchicalTextClassifier, folder: Path, tmp_path: Path) -> None:
    loaded = load(folder)
    assert np.array_equal(loaded.model_.logits(OTHERS), trained.model_.logits(OTHERS))
    assert np.array_equal(loaded.predict_proba(OTHERS), trained.predict_proba(OTHERS))
    assert loaded.predict(OTHERS) == trained.predict(OTHERS)
    assert loaded.model_.run == trained.model_.run
    assert loaded.history_ == trained.history_
    loaded.save(tmp_path / "again")
    names = {path.name for path in folder.iterdir()}
    assert {VOCABULARY, WEIGHTS, MANIFEST} <= names
    names -= {"validation.safetensors"}  # which goes with a model when it is trained
    assert TOKENIZER not in names
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes(), name


def test_words_of_every_script_come_back(tmp_path: Path) -> None:
    texts = ["naïve ЁЖ 漢字 ß", "İstanbul ｆｕｌｌ x\u2028y ª", "naïve ЁЖ", "İstanbul ｆｕｌｌ"] * 4
    for options in ({}, {"lower_case": False, "strip_accents": False}):
        classifier = linear(min_df=1, ngrams=3, **options).fit(texts, ["Cat", "Dog", "Fish", "Tree"] * 4)
        classifier.save(tmp_path)
        assert np.array_equal(load(tmp_path).model_.logits(texts), classifier.model_.logits(texts))


def test_one_kind_of_model_can_be_saved_over_another(trained: HierarchicalTextClassifier, tmp_path: Path) -> None:
    network = fitted(8, epochs=1)
    for one, file, other in ((network, TOKENIZER, VOCABULARY), (trained, VOCABULARY, TOKENIZER)) * 2:
        one.save(tmp_path)
        assert (tmp_path / file).exists()
        assert not (tmp_path / other).exists()
        assert np.array_equal(load(tmp_path).predict_proba(OTHERS), one.predict_proba(OTHERS))


def test_the_card_claims_no_epochs(trained: HierarchicalTextClassifier) -> None:
    card = model_card(trained)
    assert "Trained on 60 documents. On 20 documents held for validation" in card
    assert f"| {trained.history_.chosen['micro_f1']:.4f} | {trained.history_.chosen['macro_f1']:.4f} |" in card
    assert "text encoder `tfidf`, the whole of a text." in card
    without = model_card(linear().fit(TEXTS, LABELS))
    assert "its scores are not known" in without
    for words in ("poch", "network", "base_model"):
        assert words not in card + without


# Damage.


def resigned(folder: Path) -> Path:
    """As if a hand that knows the format had changed files: with right checksums."""
    manifest = json.loads((folder / MANIFEST).read_text())
    manifest["files"] = {name: sha256((folder / name).read_bytes()).hexdigest() for name in manifest["files"]}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


def refused(folder: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        load(folder)
    assert caught.value.kind == "damaged-model"
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize(
    "change",
    [
        lambda _: "", lambda text: text[:-1], lambda text: text + "one more\n", lambda text: text.split("\n", 1)[1],
        lambda text: "a\n" * text.count("\n"), lambda text: text.replace("\n", "\r\n", 1) + "x",
    ],
)  # fmt: skip
def test_a_damaged_vocabulary_is_told(change: Callable[[str], str], folder: Path) -> None:
    path = folder / VOCABULARY
    path.write_text(change(path.read_text()))
    assert refused(folder).file == str(path)  # by its checksum
    if path.read_text().count("\n") != len(load_tensors(folder / WEIGHTS)[0]["idf"]) or "a\na\n" in path.read_text():
        assert refused(resigned(folder)).file == str(path)
    path.write_bytes(b"\xff\n")
    assert refused(resigned(folder)).file == str(path)
    path.unlink()
    assert refused(folder).file == str(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("values", lambda values: values[:-1]), ("values", lambda values: values.double()),
        ("values", lambda values: values * float("nan")), ("columns", lambda columns: columns + 10**6),
        ("columns", lambda columns: columns - 10**6), ("columns", lambda columns: columns[:-1]),
        ("starts", lambda starts: starts.flip(0)), ("starts", lambda starts: starts[:-1]),
        ("starts", lambda starts: starts + 1), ("intercepts", lambda values: values[1:]),
        ("intercepts", lambda values: values / 0), ("idf", lambda idf: idf[1:]), ("values", None), ("idf", None),
    ],
)  # fmt: skip
def test_weights_that_do_not_fit_are_told(name: str, change: Callable[[Any], Any] | None, folder: Path) -> None:
    tensors, metadata = load_tensors(folder / WEIGHTS)
    tensor = tensors.pop(name)
    if change is not None:
        tensors[name] = change(tensor)
    save_tensors(folder / WEIGHTS, tensors, metadata)
    error = refused(resigned(folder))
    assert error.file in (str(folder / WEIGHTS), str(folder / VOCABULARY))


def test_the_files_of_one_kind_with_the_settings_of_another_are_told(folder: Path, tmp_path: Path) -> None:
    fitted(8, epochs=1).save(tmp_path / "network")
    shutil.copy(tmp_path / "network" / "run.toml", folder)
    assert refused(resigned(folder)).file == str(folder / MANIFEST)


# Without scikit-learn.


def test_the_missing_library_is_told_before_training_and_before_use(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(name: str) -> types.ModuleType:
        if name.startswith(("sklearn", "scipy")):
            raise ImportError(name)
        return import_module(name)

    monkeypatch.setattr("hitin.extras.import_module", without)
    with pytest.raises(MissingExtraError, match=r"hitin\[linear\]"):
        linear().fit(TEXTS, LABELS)
    with pytest.raises(MissingExtraError, match=r"to be used as well as to be trained.*(\n.*)*hitin\[linear\]"):
        load(folder)


def test_other_methods_do_not_import_it() -> None:
    code = "import sys, hitin.estimator, hitin.cli; assert not {'sklearn', 'scipy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# Interruptions, and folders that hold something.


class Interrupting(Watcher):
    """Presses Ctrl-C while something is counted."""

    def __init__(self, what: str) -> None:
        self.what = what

    @contextmanager
    def counting(self, what: str, total: int, unit: str = "documents") -> Iterator[Advance]:  # noqa: ARG002
        yield (lambda _: signal.raise_signal(signal.SIGINT)) if what == self.what else lambda _: None


@pytest.mark.parametrize("what", ["reading", "fitting", "validating"])
def test_ctrl_c_leaves_no_model_and_nothing_half_written(what: str, folder: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for out in (tmp_path / "new", folder):
        classifier = linear(cost=9.0)
        with pytest.raises(KeyboardInterrupt):
            classifier.fit(TEXTS, LABELS, (TEXTS, LABELS), out=out, watcher=Interrupting(what))
        assert not hasattr(classifier, "model_")
    assert not (tmp_path / "new").exists()
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert not leftovers(tmp_path)


def test_the_unfinished_training_of_a_network_is_not_thrown_away(tmp_path: Path) -> None:
    (tmp_path / TRAINING).mkdir()
    for name in (CHECKPOINT, LOG, "epoch-3.safetensors", "best-micro.safetensors"):
        (tmp_path / TRAINING / name).write_text("hours of work")
    with pytest.raises(InputError, match="unfinished training") as caught:
        linear().fit(TEXTS, LABELS, out=tmp_path)
    assert caught.value.kind == "other-run"
    assert len(list((tmp_path / TRAINING).iterdir())) == 4
    linear().fit(TEXTS, LABELS, out=tmp_path, resume="never")
    assert not list((tmp_path / TRAINING).iterdir())
    assert load(tmp_path).predict(["purr mew"])


# The command.


def test_the_command_trains_predicts_and_evaluates(run: Run, tmp_path: Path) -> None:
    out, data = tmp_path / "model", (TICKETS / "taxonomy.tsv", TICKETS / "train.jsonl")
    result = run("train", *data, "--val", TICKETS / "test.csv", "--out", out, "--method", "linear", "--set", "min_df=1")
    assert result.exit_code == 0, result.output
    assert "micro-F1" in result.stdout
    assert run("evaluate", out, TICKETS / "test.csv").exit_code == 0
    (tmp_path / "texts.txt").write_text("I was charged twice\n")
    predicted = run("predict", out, tmp_path / "texts.txt")
    assert predicted.exit_code == 0, predicted.output
    assert json.loads(predicted.stdout)["labels"]
    report = json.loads(run("train", *data, "--out", tmp_path / "b", "--method", "linear", "--json").stdout)
    assert report["documents"]["train"] + report["documents"]["validation"] == 30


def test_the_command_refuses_what_means_nothing_to_it(run: Run, tmp_path: Path) -> None:
    data = (TICKETS / "taxonomy.tsv", TICKETS / "train.jsonl")
    for options in (("--epochs", 3), ("--encoder", "textrcnn"), ("--preset", "icd10")):
        result = run("train", *data, "--out", tmp_path / "model", "--method", "linear", *options)
        assert result.exit_code == 2
        assert "linear" in result.stderr
    assert not (tmp_path / "model").exists()


def test_weights_can_be_checked_without_a_folder() -> None:
    margins = Margins(
        np.ones(1, np.float32), np.zeros(1, np.int32), np.array([0, 1, 1]), np.zeros(2, np.float32), words=3
    )
    again = Margins.from_arrays(margins.arrays(), labels=2, words=3)
    assert all(np.array_equal(array, again.arrays()[name]) for name, array in margins.arrays().items())
    with pytest.raises(ValueError, match="labels"):
        Margins.from_arrays(margins.arrays(), labels=3, words=3)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.int8])
def test_numbers_alone_in_a_table_are_saved_as_they_are(kind: torch.dtype, tmp_path: Path) -> None:
    table = torch.arange(12).reshape(3, 4).to(kind)
    strange = {"alone": table[1:2, :1].t(), "column": table[:, 1], "turned": table.t(), "none": table[:0]}
    save_tensors(tmp_path / "tensors", strange, {})
    again, _ = load_tensors(tmp_path / "tensors")
    for name, tensor in strange.items():
        assert torch.equal(again[name], tensor)


def test_a_vocabulary_of_one_word_is_enough(tmp_path: Path) -> None:
    taxonomy = Taxonomy.from_paths([("A",), ("B",)])
    classifier = HierarchicalTextClassifier(taxonomy, method="linear", validation=0.0)
    classifier.fit(["hello", "hello"], [["A"], ["B"]], out=tmp_path / "model")
    again = HierarchicalTextClassifier.load(tmp_path / "model")
    assert np.allclose(again.predict_proba(["hello"]), classifier.predict_proba(["hello"]))
