"""ICD-10-CM: its labels, its splits, the files and the command that writes them."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from hitin import Document, InputError, LabelReader, MissingExtraError, Taxonomy, read_documents
from hitin.datasets.files import DataFiles
from hitin.datasets.icd10 import Icd10, icd10, split_of, write_icd10
from tests.conftest import Run

NAMES = ["taxonomy.tsv", "test.jsonl", "train.jsonl", "val.jsonl"]


@pytest.fixture(scope="module")
def data() -> Icd10:
    return icd10()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> DataFiles:
    return write_icd10(tmp_path_factory.mktemp("data") / "new" / "icd10")


def texts(documents: Iterable[Document]) -> list[str]:
    return [document.text for document in documents]


def test_there_are_as_many_labels_as_the_tabular_list_has(data: Icd10) -> None:
    taxonomy = data.taxonomy
    assert taxonomy.is_tree
    assert taxonomy.level_sizes == (22, 246 + 39, 1_918 - 39)  # 39 categories are a block as well
    categories = [label for label in taxonomy.labels if len(label.split()[0]) == 3]
    assert len(categories) == 1_918
    assert {taxonomy.index(label) for label in categories} == set(taxonomy.leaves.tolist())


def test_labels_read_as_people_write_them(data: Icd10) -> None:
    taxonomy = data.taxonomy
    above = taxonomy.ancestors(taxonomy.index("E11 Type 2 diabetes mellitus"))
    assert [taxonomy.labels[label] for label in above] == [
        "04 Endocrine, nutritional and metabolic diseases",
        "E08-E13 Diabetes mellitus",
    ]
    assert "M32 Systemic lupus erythematosus (SLE)" in taxonomy
    assert not any(mark in label for label in taxonomy.labels for mark in (">", "--", "|", "→", "»", "\t"))


def test_a_block_of_one_category_is_one_label_with_it(data: Icd10) -> None:
    assert [label for label in data.taxonomy.labels if "C50" in label] == ["C50 Malignant neoplasm of breast"]
    (document,) = (document for document in data.train if document.id == "C50.01")
    assert document.labels == ("02 Neoplasms", "C50 Malignant neoplasm of breast")


def test_there_are_as_many_documents_as_codes_and_terms(data: Icd10) -> None:
    assert len(data.train) == len({document.id for document in data.train}) == 46_701
    assert max(len((document.id or "").replace(".", "")) for document in data.train) == 6
    assert {document.labels[-1] for document in data.train} == {data.taxonomy.labels[at] for at in data.taxonomy.leaves}
    assert len(data.val) + len(data.test) == 12_497
    assert abs(len(data.val) - len(data.test)) < 300


def test_the_labels_of_every_document_are_a_path(data: Icd10) -> None:
    reader = LabelReader(data.taxonomy)
    for document in (*data.train, *data.val, *data.test):
        found = reader.read(document.labels)
        assert found.unknown == ()
        assert found.is_complete
        assert len(found.deepest) == 1
        assert document.labels[-1].startswith((document.id or "")[:3])


@pytest.mark.parametrize(("characters", "labels", "documents"), [(4, 12_282, 46_701), (6, 46_969, 46_701)])
def test_labels_may_go_down_to_the_codes(characters: int, labels: int, documents: int) -> None:
    found = icd10(characters)
    taxonomy = found.taxonomy
    assert (len(taxonomy), len(found.train), taxonomy.is_tree) == (labels, documents, True)
    assert not any(mark in label for label in taxonomy.labels for mark in (" > ", "--", "|", "\t"))
    for document in found.train[::50]:
        code = str(document.id)
        end = document.labels[-1].split()[0]
        assert end == (code if len(code.replace(".", "")) <= characters else code[: characters + 1])
        above = taxonomy.ancestors(taxonomy.index(document.labels[-1]))
        assert [taxonomy.labels[label] for label in above] == list(document.labels[:-1])


@pytest.mark.parametrize("characters", [2, 8])
def test_codes_have_from_three_to_seven_characters(characters: int, run: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"up to {characters} characters"):
        icd10(characters)
    assert run("data", "icd10", "--out", tmp_path, "--characters", characters).exit_code == 2


def test_no_text_is_in_two_splits_nor_twice_among_the_terms(data: Icd10) -> None:
    terms = [*texts(data.val), *texts(data.test)]
    assert len(terms) == len(set(terms))
    assert set(terms).isdisjoint(texts(data.train))
    assert all(text == " ".join(text.split()) for text in (*terms, *texts(data.train)))


def test_a_term_that_is_a_description_is_left_out_and_one_of_two_categories_counts_where_it_is_first(
    data: Icd10,
) -> None:
    terms = {document.text: document.id for document in (*data.val, *data.test)}
    assert "Viral pericarditis" not in terms  # an inclusion term of I30.1, and the description of B33.23
    assert terms["Eosinophilic granuloma"] == "C96.6"  # and K13.4
    assert terms["Classical cholera"] == "A00.0"


def test_a_term_goes_where_its_text_says_whatever_the_order(data: Icd10, monkeypatch: pytest.MonkeyPatch) -> None:
    package = sys.modules["simple_icd_10_cm"]
    codes = package.get_all_codes()
    monkeypatch.setattr(package, "get_all_codes", lambda: codes[::-1])
    backwards = icd10()
    assert texts(backwards.test) != texts(data.test)
    assert sorted(texts(backwards.test)) == sorted(texts(data.test))
    assert sorted(texts(backwards.val)) == sorted(texts(data.val))
    for text, split in (("Classical cholera", "test"), ("HER2+", "val"), ("Größe", "test")):  # for good
        assert split_of(text) == split


def test_the_files_hold_what_there_is_in_memory(data: Icd10, files: DataFiles) -> None:
    assert Taxonomy.read(files.taxonomy) == data.taxonomy
    for path, documents in ((files.train, data.train), (files.val, data.val), (files.test, data.test)):
        assert tuple(document._replace(file=None, line=None) for document in read_documents(path)) == documents
    assert files.labels == data.taxonomy.level_sizes
    assert files.documents == (len(data.train), len(data.val), len(data.test))
    first = files.train.read_text(encoding="utf-8").splitlines()[0]
    chapter = "01 Certain infectious and parasitic diseases"
    labels = [chapter, "A00-A09 Intestinal infectious diseases", "A00 Cholera"]
    assert json.loads(first) == {"id": "A00", "text": "Cholera", "label": labels}
    assert "Ménière's disease" in files.train.read_text(encoding="utf-8")


def test_the_command_writes_the_same_files_and_says_what_to_do_next(files: DataFiles, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "my data"
    folder.mkdir()
    (folder / "train.jsonl").write_text("of an earlier time\n")
    refused = run("data", "icd10", "--out", folder)
    assert refused.exit_code == 2
    assert f"{folder / 'train.jsonl'}: there is a file of this name" in refused.stderr
    assert (folder / "train.jsonl").read_text() == "of an earlier time\n"
    result = run("data", "icd10", "--out", folder, "--overwrite")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in folder.iterdir()) == NAMES
    for name in NAMES:
        assert (folder / name).read_bytes() == files.taxonomy.with_name(name).read_bytes()
    for words in ("2,186 labels, 22 > 285 > 1,879 by level", "46,701 documents", f"{files.documents[2]:,} documents"):
        assert words in result.stdout
    assert f"hitin check '{folder}/taxonomy.tsv' '{folder}/train.jsonl'" in result.stdout
    assert f"--val '{folder}/val.jsonl' --preset icd10 --out '{folder}/model'" in result.stdout


def test_the_doctor_finds_it_fit_to_train_on(files: DataFiles, run: Run) -> None:
    result = run("check", files.taxonomy, files.train, files.val, files.test, "--json")
    assert result.exit_code == 0, result.output
    assert [split["documents"] for split in json.loads(result.stdout)["splits"]] == list(files.documents)


def test_a_missing_package_is_told_with_its_extra(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simple_icd_10_cm", None)
    with pytest.raises(MissingExtraError, match="ICD-10-CM needs simple_icd_10_cm"):
        icd10()
    result = run("data", "icd10", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "pip install 'hitin[demo]'" in result.stderr
    monkeypatch.setitem(sys.modules, "sklearn", None)  # which the demo needs, too
    assert "pip install 'hitin[demo]'" in run("demo", "--out", tmp_path / "out").stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_told_in_one_screen(tmp_path: Path, run: Run) -> None:
    (tmp_path / "file").write_text("")
    result = run("data", "icd10", "--out", tmp_path / "file")
    assert result.exit_code == 2
    assert "this file is not a directory" in result.stderr
    assert "Traceback" not in result.stderr


def test_the_package_loads_without_a_warning() -> None:
    script = "from hitin.datasets.icd10 import icd10; print(len(icd10().train))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("46701", "")


def test_help_shows_examples(run: Run) -> None:
    assert "hitin data icd10 --out" in run("data", "icd10", "--help").stdout
    assert "icd10" in run("data", "-h").stdout
