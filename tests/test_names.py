"""Names of labels: however their letters are stored, they are the same everywhere names are read."""

import json
import unicodedata

import numpy as np
import pandas as pd
import pytest

from hitin import HierarchicalTextClassifier, LabelReader, Taxonomy, check
from hitin.decisions import Decisions
from hitin.label_paths import LabelPaths
from hitin.names import folded, label_name
from tests.conftest import Run, Write

ONE = "École"
TWO = unicodedata.normalize("NFD", ONE)
TREE = Taxonomy.from_paths([["X", ONE], ["X", "Y"]])


def test_a_letter_and_its_accent_are_one_character_of_a_name() -> None:
    assert (len(ONE), len(TWO)) == (5, 6)
    assert label_name(f" {TWO} ") == ONE
    assert folded(TWO) == folded(ONE) == "école"


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("t.tsv", f"Root\tX\nX\t{ONE}\tY\nX\t{TWO}\n"),
        ("edges.csv", f"parent,child\nX,{TWO}\nX,{ONE}\nX,Y\n"),
        ("t.txt", f"X > {TWO}\nX > {ONE}\nX > Y\n"),
        ("t.json", json.dumps({"X": [TWO, ONE, "Y"]})),
        ("pairs.json", json.dumps([{"parent": "X", "child": name} for name in (TWO, ONE, "Y")])),
        (
            "table.json",
            json.dumps([{"name": "X", "parent": 0}, *({"name": each, "parent": "X"} for each in (TWO, ONE, "Y"))]),
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::hitin.InputWarning")
def test_every_taxonomy_file_reads_both_ways_of_writing_a_letter_as_one_label(
    file: str, content: str, write: Write
) -> None:
    assert Taxonomy.read(write(file, content)) == TREE


def test_labels_are_found_by_either_way_of_writing_them() -> None:
    built = Taxonomy.from_edges([("X", TWO), ("X", ONE), ("X", "Y")])
    assert built == TREE
    assert (TWO in built, built.index(TWO)) == (True, built.index(ONE))
    reader = LabelReader(built, root=None)
    texts = (TWO, f"X > {TWO}", f"Y|{TWO}", json.dumps([TWO]))  # the last one escapes the accent
    assert [reader.read(text).unknown for text in texts] == [()] * 4
    assert reader.read(["No " + TWO]).unknown == ("No " + ONE,)


def test_a_root_is_the_same_however_its_letters_are_stored(write: Write) -> None:
    path = write("t.tsv", f"{TWO}\tX\nX\tY\n")
    assert Taxonomy.read(path, root=ONE) == Taxonomy.read(path, root=TWO) == Taxonomy.from_edges([("X", "Y")])
    assert LabelReader(TREE, root=TWO).read([ONE]).ids == (0, 1)
    assert LabelReader(Taxonomy.from_edges([("X", "Y")]), root=TWO).read([f"{ONE} > X"]).ids == (0,)


def test_documents_of_both_kinds_make_one_label_and_fit_a_tree_of_either(run: Run, write: Write) -> None:
    rows = f"text,label\na,X > {ONE}\nb,X > {TWO}\nc,X > Y\n"
    documents, out = write("documents.csv", rows), write("tree.tsv", f"X\t{TWO}\tY\n")
    assert check(out, documents).exit_code == 0
    told = json.loads(run("taxonomy", documents, "--out", out.with_name("new.tsv"), "--json").stdout)
    assert (told["labels"], told["homonyms"]) == (3, [])
    assert Taxonomy.read(out.with_name("new.tsv")) == TREE
    paths = LabelPaths(root=TWO)
    paths.add([f"{ONE} > X > Y", f"{TWO} > X > {TWO}"])
    assert set(paths.taxonomy()) == {"X", "Y", ONE}


def test_thresholds_and_columns_are_called_by_either_name() -> None:
    thresholds = Decisions(threshold={"X": 0.5, TWO: 0.25, "Y": 0.75}).thresholds(TREE)
    assert thresholds.tolist() == [0.5, 0.25, 0.75]
    table = pd.DataFrame([[1, 1, 0], [1, 0, 1]] * 4, columns=["X", TWO, "Y"])
    classifier = HierarchicalTextClassifier(TREE, method="linear", validation=0)
    fitted = classifier.fit(["one day", "another night"] * 4, table)
    np.testing.assert_array_equal(fitted.classes_, TREE.labels)
