"""A model as a folder: it comes back as it was, and whatever is wrong with it is said."""

import json
import pickle
import re
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitin import HierarchicalTextClassifier, InputError, Taxonomy
from hitin.decisions import Decisions
from hitin.model_folder import DECISIONS, HISTORY, MANIFEST, RUN, TAXONOMY, TRAINING, WEIGHTS
from hitin.neural import ENCODER, TOKENIZER
from tests.conftest import REPOSITORY
from tests.training_harness import (
    BERT,
    TINY,
    are_equal,
    classifier,
    documents,
    fitted,
    leftovers,
    network_of,
    tiny_bert,
    weights,
)

TEXTS = documents(30, seed=3)[0]
FILES = (WEIGHTS, RUN, TAXONOMY, TOKENIZER, HISTORY, DECISIONS, MANIFEST, "README.md")


@pytest.fixture(scope="module")
def trained() -> HierarchicalTextClassifier:
    return fitted()


@pytest.fixture(scope="module")
def original(trained: HierarchicalTextClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    trained.save(folder)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return shutil.copytree(original, tmp_path / "model")


def load(folder: Path) -> HierarchicalTextClassifier:
    return HierarchicalTextClassifier.load(folder, device="cpu")


def refused(folder: Path, kind: str = "damaged-model") -> InputError:
    """The error that loading gives, which always names a file and says what to do."""
    with pytest.raises(InputError) as caught:
        load(folder)
    assert caught.value.kind == kind, str(caught.value)
    assert caught.value.file is not None
    assert caught.value.file.startswith(str(folder))
    assert caught.value.remedy
    return caught.value


# As it was.


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "flat"},
        {"leaves": "mixed", "pooling": "max", "height": 3, "norm": "layer"},
        {"tokens": "subword", "pooling": "root", "precision": "bf16"},
        {"tree": "random", "tree_seed": 5, "width": 0},
    ],
)
def test_a_model_comes_back_as_it_was(options: dict[str, Any], tmp_path: Path) -> None:
    trained = fitted(val=10, **options)
    trained.decisions_ = Decisions("raw", 0.3)
    trained.save(tmp_path)
    loaded = load(tmp_path)
    assert np.array_equal(loaded.predict_proba(TEXTS), trained.predict_proba(TEXTS))
    assert are_equal(weights(loaded), weights(trained))
    assert loaded.predict(TEXTS) == trained.predict(TEXTS)
    assert loaded.decisions_ == Decisions("raw", 0.3)
    assert loaded.taxonomy_ == trained.taxonomy_
    assert loaded.model_.run == trained.model_.run
    assert (loaded.history_, loaded.sizes_) == (trained.history_, {"train": 40, "validation": 10})
    assert not network_of(loaded).training


def test_a_transformer_comes_back_without_the_folder_it_came_from(tmp_path: Path) -> None:
    bert = tiny_bert(tmp_path / "bert")
    trained = classifier(**dict.fromkeys(TINY) | BERT, encoder=bert).fit(*documents(16))
    trained.save(tmp_path / "model")
    shutil.rmtree(bert)
    assert np.array_equal(load(tmp_path / "model").predict_proba(TEXTS), trained.predict_proba(TEXTS))
    (tmp_path / "model" / ENCODER).unlink()
    assert refused(tmp_path / "model").file == str(tmp_path / "model" / ENCODER)


def test_saving_what_was_loaded_gives_the_same_files(original: Path, tmp_path: Path) -> None:
    load(original).save(tmp_path)
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (original / name).read_bytes(), name


def test_a_model_saved_without_its_history_can_be_used_and_saved_over_another(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    del manifest["files"][HISTORY]
    (folder / MANIFEST).write_text(json.dumps(manifest))
    loaded = load(folder)
    assert not hasattr(loaded, "history_")
    loaded.save(folder)
    assert not (folder / HISTORY).exists()
    assert "Trained on" not in (folder / "README.md").read_text()
    assert np.array_equal(load(folder).predict_proba(TEXTS), loaded.predict_proba(TEXTS))


def test_names_and_numbers_of_every_kind_come_back(tmp_path: Path) -> None:
    taxonomy = Taxonomy.from_edges(
        [("Root", "a > b"), ("Root", "ü\t😀"), ("a > b", "ü\t😀"), ("a > b", '"quoted"\\ | x')], root=None
    )
    trained = classifier(epochs=1).set_params(taxonomy=taxonomy)
    trained.fit(["x", "y"], [["ü\t😀"], ['"quoted"\\ | x']])
    trained.save(tmp_path)
    assert load(tmp_path).taxonomy_ == taxonomy


def test_the_list_names_the_files_of_a_network_as_ever(original: Path) -> None:
    """Models of earlier versions must load."""
    manifest = json.loads((original / MANIFEST).read_text())
    assert manifest["format"] == 1
    assert set(manifest["files"]) == {
        "run.toml", "taxonomy.json", "tokenizer.json", "model.safetensors", "history.json"
    }  # fmt: skip


# What may be changed, and what may be missing.


def test_decisions_may_be_changed_or_missing_and_the_readme_is_free(folder: Path) -> None:
    (folder / "README.md").unlink()
    (folder / DECISIONS).write_text('{"policy": "raw", "threshold": 0.9}')
    assert load(folder).decisions_ == Decisions("raw", 0.9)
    (folder / DECISIONS).unlink()
    assert load(folder).decisions_ == Decisions("consistent", 0.5)
    (folder / "notes.txt").write_text("mine")
    load(folder)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "3", "null", '{"policy": "loud", "threshold": 0.5}', '{"policy": "raw", "threshold": 2}',
        '{"policy": "raw", "threshold": NaN}', '{"policy": "raw", "threshold": true}', '{"policy": "raw", "more": 1}',
        '{"policy": ["raw"], "threshold": 0.5}', '{"policy": "raw", "threshold": "0.5"}', "[" * 100_000, "\x00",
        '{"policy": "raw", "threshold": 1' + "0" * 5000 + "}",
    ],
)  # fmt: skip
def test_damaged_decisions_are_told(text: str, folder: Path) -> None:
    (folder / DECISIONS).write_text(text)
    assert refused(folder).file == str(folder / DECISIONS)
    (folder / DECISIONS).write_bytes(b"\xff\xfe")
    assert refused(folder).file == str(folder / DECISIONS)


# Damage.


@pytest.mark.parametrize("name", [WEIGHTS, RUN, TAXONOMY, TOKENIZER])
def test_a_missing_swapped_or_changed_file_is_told(name: str, folder: Path, tmp_path: Path) -> None:
    fitted(seed=1, height=3, tokens="subword").save(tmp_path / "other")
    path, good = folder / name, (folder / name).read_bytes()
    for bad in (b"", good[: len(good) // 2], good[:-1], good + b"\n", (tmp_path / "other" / name).read_bytes()):
        if bad != good:  # the taxonomy is the same
            path.write_bytes(bad)
            assert refused(folder).file == str(path)
    path.unlink()
    assert refused(folder).file == str(path)
    path.mkdir()
    assert refused(folder).file == str(path)


def test_the_list_of_files_of_another_model_does_not_pass(folder: Path, tmp_path: Path) -> None:
    fitted(seed=1).save(tmp_path / "other")
    shutil.copy(tmp_path / "other" / MANIFEST, folder / MANIFEST)
    refused(folder)


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"format": 1}', '{"format": 1, "files": {}}', '{"format": 1, "files": []}',
        '{"format": 1, "files": {"../x": "0"}}', '{"format": 1, "files": 7}', '{"format": 1, "files": {"a": []}}',
        "[" * 100_000, '{"format": 1, "files": {"\\ud800": "0"}}',
    ],
)  # fmt: skip
def test_a_damaged_list_of_files_is_told(text: str, folder: Path) -> None:
    (folder / MANIFEST).write_text(text)
    assert refused(folder).file == str(folder / MANIFEST)


def test_every_file_must_be_in_the_list(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    del manifest["files"][WEIGHTS]
    (folder / MANIFEST).write_text(json.dumps(manifest))
    refused(folder)


def test_a_format_of_the_future_is_told_with_who_wrote_it(folder: Path) -> None:
    manifest = json.loads((folder / MANIFEST).read_text()) | {"format": 2, "hitin": "9.1"}
    (folder / MANIFEST).write_text(json.dumps(manifest))
    assert "9.1" in str(refused(folder, "other-format"))


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(name=st.sampled_from(FILES), data=st.data())
def test_no_damage_is_silent(name: str, data: st.DataObject, original: Path, trained: Any, tmp_path: Path) -> None:
    """One byte is changed, some are cut out or put in: the model is refused, or is still the same."""
    good = (original / name).read_bytes()
    start = data.draw(st.integers(0, len(good) - 1))
    end = data.draw(st.integers(start, min(start + 9, len(good))))
    bad = good[:start] + data.draw(st.binary(max_size=9)) + good[end:]
    copy = tmp_path / "copy"
    shutil.copytree(original, copy, dirs_exist_ok=True)
    (copy / name).write_bytes(bad)
    try:
        loaded = load(copy)
    except InputError as error:
        assert error.kind in ("damaged-model", "other-format")
        assert error.file is not None
        assert error.remedy
        assert str(copy) in error.file
    else:
        assert name in (DECISIONS, MANIFEST, "README.md") or bad == good
        assert np.array_equal(loaded.predict_proba(TEXTS[:3]), trained.predict_proba(TEXTS[:3]))


def resigned(folder: Path) -> Path:
    """As if a hand that knows the format had changed files: with right checksums."""
    manifest = json.loads((folder / MANIFEST).read_text())
    for name in manifest["files"]:
        manifest["files"][name] = sha256((folder / name).read_bytes()).hexdigest()
    (folder / MANIFEST).write_text(json.dumps(manifest))
    return folder


def _with(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        (folder / name).write_text(change((folder / name).read_text()))

    return apply


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: Taxonomy.from_edges([("A", "B")]).write(folder / TAXONOMY),
        _with(RUN, lambda text: text.replace("height = 2", "height = 5")),
        _with(RUN, lambda text: text.replace("hidden = 4", "hidden = 9")),
        _with(RUN, lambda text: text.replace('method = "hitin"', 'method = "flat"')),
        _with(RUN, lambda text: text.replace('encoder = "textrcnn"', 'encoder = "bert-base-uncased"')),
        _with(RUN, lambda text: text.replace("epochs", "epoches")),
        _with(RUN, lambda _: "not TOML"),
        _with(TOKENIZER, lambda _: "{}"),
        _with(TOKENIZER, lambda text: text.replace('"mew"', '"meow meow"', 1).replace('"gill":', '"gill2":1,"gill":')),
        _with(TAXONOMY, lambda _: "{"),
    ],
)
def test_files_that_do_not_fit_together_are_told_even_with_right_checksums(
    spoil: Callable[[Path], None], folder: Path
) -> None:
    before = (folder / RUN).read_bytes(), (folder / TOKENIZER).read_bytes(), (folder / TAXONOMY).read_bytes()
    spoil(folder)
    assert before != ((folder / RUN).read_bytes(), (folder / TOKENIZER).read_bytes(), (folder / TAXONOMY).read_bytes())
    with pytest.raises(InputError) as caught:
        load(resigned(folder))
    assert caught.value.file is not None
    assert caught.value.file.startswith(str(folder))
    assert caught.value.remedy


# What is no model, or not yet.


def test_what_is_no_model_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "no-model")
    refused(tmp_path / "nothing", "missing-file")
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "no-model")


def test_a_folder_in_training_or_half_saved_says_so(folder: Path, tmp_path: Path) -> None:
    (folder / MANIFEST).unlink()
    assert "saving" in refused(folder, "unfinished-model").message
    (tmp_path / "new" / TRAINING).mkdir(parents=True)
    assert "training" in refused(tmp_path / "new", "unfinished-model").message


def test_a_save_that_is_killed_over_an_older_model_leaves_none_that_loads(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At whichever file: never a mixture of the old and the new."""
    newer = fitted(seed=1)
    for file in range(7):
        folder = shutil.copytree(original, tmp_path / str(file))
        left = iter(range(file))

        def replace(part: Path, target: Path, left: Iterator[int] = left) -> Path:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return Path(shutil.move(part, target))

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", replace)
            with pytest.raises(KeyboardInterrupt):
                newer.save(folder)
        refused(folder, "unfinished-model")
        assert not leftovers(folder)
        newer.save(folder)
        assert np.array_equal(load(folder).predict_proba(TEXTS), newer.predict_proba(TEXTS))


def test_a_folder_that_cannot_be_written_to_is_told(trained: HierarchicalTextClassifier, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/model")):
        with pytest.raises(InputError) as caught:
            trained.save(path)
        assert caught.value.kind == "unwritable"
        assert caught.value.remedy


def test_a_full_disk_is_told(trained: HierarchicalTextClassifier, tmp_path: Path) -> None:
    from safetensors import SafetensorError

    def full(*_: object) -> None:
        raise SafetensorError("I/O error: No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hitin.tensor_files.save_file", full)
        with pytest.raises(InputError, match="No space left") as caught:
            trained.save(tmp_path)
    assert caught.value.kind == "unwritable"
    assert not leftovers(tmp_path)


def test_files_can_be_read_by_whoever_may_read_the_users_files(original: Path, tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    assert {path.stat().st_mode for path in original.iterdir()} == {(tmp_path / "usual").stat().st_mode}


# No pickles.


def test_no_file_of_a_model_can_be_unpickled(original: Path) -> None:
    for path in original.iterdir():
        with pytest.raises(Exception, match=r"."):
            pickle.loads(path.read_bytes())


def test_the_package_never_unpickles() -> None:
    forbidden = re.compile(
        r"torch\.load\b|\bimport pickle|from pickle|joblib|\bdill\b|allow_pickle\s*=\s*True|read_pickle"
    )
    for path in (REPOSITORY / "src").rglob("*.py"):
        assert not forbidden.search(path.read_text()), path
