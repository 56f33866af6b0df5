"""Real taxonomies and documents, where they are at hand."""

import time
from pathlib import Path

import pytest

from hitin import Taxonomy, check


@pytest.mark.parametrize(
    ("name", "labels", "depth"),
    [("wos.taxonomy", 141, 2), ("rcv1.taxonomy", 103, 4), ("nyt.taxonomy", 166, 8), ("bgc.taxonomy", 146, 4)],
)
def test_the_hierarchies_of_the_papers_have_their_labels(name: str, labels: int, depth: int, shared: Path) -> None:
    taxonomy = Taxonomy.read(shared / "hierarchies" / name)
    assert (len(taxonomy), taxonomy.depth, taxonomy.is_tree) == (labels, depth, True)


@pytest.mark.parametrize(
    ("name", "labels", "several_parents"),
    [("google_product", 5_595, 0), ("icd10cm", 47_200, 0), ("wordnet31_noun", 82_192, 2_214)],
)
def test_large_taxonomies_load_and_validate_in_two_seconds(
    name: str, labels: int, several_parents: int, shared: Path
) -> None:
    start = time.process_time()
    facts = check(shared / "hierarchies" / f"{name}.edges.tsv.xz").taxonomy
    assert time.process_time() - start < 2
    assert (facts.labels, facts.several_parents) == (labels, several_parents)


def test_wordnet_survives_every_format(shared: Path, tmp_path: Path) -> None:
    wordnet = Taxonomy.read(shared / "hierarchies" / "wordnet31_noun.edges.tsv.xz")
    for name in ("t.tsv", "t.csv", "t.json"):
        wordnet.write(tmp_path / name)
        assert Taxonomy.read(tmp_path / name) == wordnet


def test_goemotions_is_found_to_leak_between_its_splits(shared: Path) -> None:
    folder = shared / "goemotions"
    found = check(folder / "taxonomy.tsv", [folder / f"{split}.jsonl.xz" for split in ("train", "val", "test")])
    train, _, test = found.splits
    assert (train.documents, test.documents) == (43_410, 5_427)
    assert test.leaks[train.name] == 32
    assert round(train.several_paths, 2) == 0.16
    assert found.exit_code == 1


@pytest.mark.parametrize(
    ("name", "documents", "levels"),
    [("arxiv46985", 7_518, [10, 115]), ("arxiv-multi", 2_316, [8, 117, 42]), ("debtags-topic", 1_725, [18, 273, 46])],
)
def test_real_documents_fit_their_taxonomies(name: str, documents: int, levels: list[int], shared: Path) -> None:
    found = check(shared / name / "taxonomy.tsv", [shared / name / "val.jsonl.xz"])
    assert found.taxonomy.levels == levels
    assert found.splits[0].documents == documents
    assert not {problem.kind for problem in found.problems if problem.severity > 0}
