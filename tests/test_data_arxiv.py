"""arXiv from snapshots of the same shape, with invented papers."""

import gzip
import io
import json
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin import InputError, Taxonomy, read_documents
from hitin.datasets.arxiv import ArxivSettings, Census, Paper, choose, key_of, read_papers, split_of, write_arxiv
from hitin.datasets.arxiv_categories import NOW_CALLED, archive_path, current, group_path
from hitin.splitting import SPLITS
from tests.conftest import Run

CATEGORIES = (
    "cs.CL cs.LG",
    "math.CO",
    "hep-th",
    "astro-ph.CO gr-qc",
    "cs.CL",
    "physics.optics",
    "cond-mat",
    "alg-geom",
)


def paper_of(number: int) -> dict[str, object]:
    """A line of the snapshot; the real ones have the same keys and more, and lines broken anywhere."""
    return {
        "id": f"{number // 100:04}.{number:05}",
        "submitter": "A. Person",
        "title": f"On the\n  number {number}",
        "abstract": f"  We count to {number}\nand stop.\n",
        "categories": CATEGORIES[number % len(CATEGORIES)],
        "versions": [{"version": "v1", "created": "Mon, 2 Apr 2007 19:18:42 GMT"}],
        "update_date": "2008-11-26",
    }


def snapshot(path: Path, papers: Iterable[object]) -> Path:
    path.write_text("".join(json.dumps(paper) + "\n" for paper in papers), encoding="utf-8")
    return path


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    return snapshot(tmp_path / "arxiv-metadata-oai-snapshot.json", map(paper_of, range(300)))


def test_papers_go_to_the_split_of_their_id_with_every_label(dump: Path, tmp_path: Path) -> None:
    files = write_arxiv(tmp_path / "out", dump, ArxivSettings(least=1))
    assert sum(files.documents) == 300
    by_id = {str(paper["id"]): paper for paper in map(paper_of, range(300))}
    taxonomy = Taxonomy.read(files.taxonomy)
    for split in SPLITS:
        for document in read_documents(tmp_path / "out" / f"{split}.jsonl"):
            paper = by_id.pop(str(document.id))
            assert split_of(str(document.id)) == split
            paths = [group_path(current(category)) for category in str(paper["categories"]).split()]
            assert sorted(document.labels) == sorted({label for path in paths for label in path})
            number = int(str(document.id).split(".")[1])
            assert document.text == f"On the number {number}. We count to {number} and stop."
            ids = [taxonomy.index(label) for label in document.labels]
            assert set(taxonomy.closure(ids)) == set(ids)
    assert not by_id
    assert taxonomy.level_sizes == (3, 9, 2)


def test_too_few_wanted_papers_for_any_category_are_told(dump: Path, tmp_path: Path) -> None:
    for settings, said in (
        (ArxivSettings(documents=3, least=20), "given to 20 of the 3 that are wanted\nLet --documents be higher"),
        (ArxivSettings(documents=0, least=1000), "given to 1,000 of them\nIs this the whole snapshot?"),
    ):
        with pytest.raises(InputError) as caught:
            write_arxiv(tmp_path / "out", dump, settings)
        assert said in str(caught.value)


def test_single_papers_have_an_archive_and_a_category(dump: Path, tmp_path: Path) -> None:
    files = write_arxiv(tmp_path / "out", dump, ArxivSettings(single=True, least=1))
    taxonomy = Taxonomy.read(files.taxonomy)
    labels = {document.labels for path, _ in files.splits for document in read_documents(path)}
    assert labels == {
        ("math", "math.CO"),
        ("math", "math.AG"),  # which alg-geom is called now
        ("physics", "hep-th"),
        ("cs", "cs.CL"),
        ("physics", "physics.optics"),
    }
    assert taxonomy.level_sizes == (3, 5)


def test_labels_look_as_in_the_shared_sets(shared: Path) -> None:
    for name, path_of in (("arxiv46985", archive_path), ("arxiv-multi", group_path)):
        taxonomy = Taxonomy.read(shared / name / "taxonomy.tsv")
        for leaf in taxonomy.leaves.tolist():
            path = (*(taxonomy.labels[above] for above in taxonomy.ancestors(leaf)), taxonomy.labels[leaf])
            assert path_of(taxonomy.labels[leaf]) == path


def test_every_former_archive_is_now_under_one_that_is_known() -> None:
    assert all(len(group_path(now)) == 2 + (now.split(".")[0] not in ("cs", "math")) for now in NOW_CALLED.values())
    assert group_path("new-field.XY") == ("new-field", "new-field.XY")
    assert group_path("q-bio") == ("Quantitative_Biology",)


combinations = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=3, unique=True).map(tuple)


@given(
    papers=st.lists(st.tuples(st.integers(0, 60), combinations), max_size=60),
    documents=st.integers(0, 40),
    least=st.integers(1, 6),
)
def test_papers_are_chosen_as_a_slow_loop_does_it(
    papers: list[tuple[int, tuple[str, ...]]], documents: int, least: int
) -> None:
    census = Census()
    first: dict[str, tuple[str, ...]] = {}
    for number, categories in papers:
        census.add(Paper(str(number), "", "", categories))
        first.setdefault(str(number), categories)

    left_out: set[str] = set()
    while True:
        ids = sorted((id for id in first if set(first[id]) - left_out), key=key_of)
        ids = ids[:documents] if documents else ids
        counts = Counter(category for id in ids for category in first[id])
        rare = {category for category in "abcdef" if counts[category] < least} - left_out
        if not rare:
            break
        left_out |= rare

    found = choose(census, ArxivSettings(documents=documents, least=least))
    assert found.keys.tolist() == sorted(map(key_of, ids))
    assert found.categories == set("abcdef") - left_out


def test_a_larger_snapshot_moves_few_papers_and_none_to_another_split(dump: Path, tmp_path: Path) -> None:
    settings = ArxivSettings(documents=100, least=1)
    more = snapshot(tmp_path / "more.json", map(paper_of, range(330)))
    splits = []
    for number, each in enumerate((dump, more)):
        files = write_arxiv(tmp_path / str(number), each, settings)
        assert sum(files.documents) == 100
        splits.append({document.id: path.stem for path, _ in files.splits for document in read_documents(path)})
    before, after = splits
    stayed = before.keys() & after.keys()
    assert len(stayed) > 80
    assert all(before[id] == after[id] for id in stayed)
    assert {id for id in after.keys() - before.keys() if id is not None} <= {
        str(paper_of(n)["id"]) for n in range(300, 330)
    }


def test_splits_are_64_16_and_20_of_100() -> None:
    counts: Counter[str] = Counter(split_of(f"{number:08}") for number in range(20_000))
    for split, share in (("train", 0.64), ("val", 0.16), ("test", 0.2)):
        assert abs(counts[split] / 20_000 - share) < 0.015
    for id, split in (("0704.0001", "val"), ("hep-th/9901001", "test"), ("2401.12345", "train")):  # for good
        assert split_of(id) == split


def test_a_paper_that_comes_twice_counts_once_where_it_is_first(tmp_path: Path) -> None:
    papers = [*map(paper_of, range(50)), {**paper_of(3), "title": "again", "categories": "math.NT"}]
    files = write_arxiv(tmp_path / "out", snapshot(tmp_path / "dump.json", papers), ArxivSettings(least=1))
    assert sum(files.documents) == 50
    assert "math.NT" not in Taxonomy.read(files.taxonomy)
    assert not any("again" in document.text for path, _ in files.splits for document in read_documents(path))


def test_rare_categories_are_no_labels_and_the_rest_of_a_paper_s_stay(tmp_path: Path) -> None:
    papers = [*map(paper_of, range(80)), {**paper_of(80), "categories": "cs.CL cs.OS"}]
    files = write_arxiv(tmp_path / "out", snapshot(tmp_path / "dump.json", papers), ArxivSettings(least=2))
    assert "cs.OS" not in Taxonomy.read(files.taxonomy)
    (labels,) = (each.labels for path, _ in files.splits for each in read_documents(path) if each.id == "0000.00080")
    assert labels == ("Computer_Science", "cs.CL")


def test_the_command_writes_packed_snapshots_the_same(dump: Path, tmp_path: Path, run: Run) -> None:
    packed = tmp_path / "snapshot.json.gz"
    packed.write_bytes(gzip.compress(dump.read_bytes()))
    for number, each in enumerate((dump, packed)):
        result = run("data", "arxiv", each, "--least", 5, "--documents", 200, "--out", tmp_path / str(number))
        assert result.exit_code == 0, result.output
        assert "hitin train" in result.stdout
    for name in ("taxonomy.tsv", "train.jsonl", "val.jsonl", "test.jsonl"):
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()
    result = run("data", "arxiv", dump, "--least", 5, "--single", "--out", tmp_path / "2", "--json")
    told = json.loads(result.stdout)
    assert told["labels"] == [3, 5]
    assert told["notes"][0].endswith("may be chosen, where 46,985 were asked for")
    assert "papers may be chosen, where 46,985 were asked for" in result.stderr
    result = run(
        "check", *(tmp_path / "0" / name for name in ("taxonomy.tsv", "train.jsonl", "val.jsonl", "test.jsonl"))
    )
    assert result.exit_code == 0, result.output


def test_the_zip_of_kaggle_is_read_as_it_is(dump: Path, tmp_path: Path) -> None:
    packed = tmp_path / "archive.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__MACOSX/._arxiv-metadata-oai-snapshot.json", b"\x00\x05")
        archive.writestr("arxiv/", b"")
        archive.write(dump, "arxiv/arxiv-metadata-oai-snapshot.json")
    places: list[tuple[str, int, int]] = []
    papers = [*read_papers(dump)] * 7
    with zipfile.ZipFile(tmp_path / "more.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("arxiv.json", dump.read_bytes() * 7)
    assert [*read_papers(packed)] == papers[:300]
    assert [*read_papers(tmp_path / "more.zip", lambda *place: places.append(place))] == papers
    name, size = str(tmp_path / "more.zip"), (tmp_path / "more.zip").stat().st_size
    assert [(place[0], place[2]) for place in places] == [(name, size)] * 2
    assert 0 < places[0][1] <= places[1][1] <= size


def test_a_zip_that_cannot_be_read_is_told_and_nothing_is_written(dump: Path, tmp_path: Path, run: Run) -> None:
    def told(content: bytes) -> str:
        (tmp_path / "archive.zip").write_bytes(content)
        result = run("data", "arxiv", tmp_path / "archive.zip", "--out", tmp_path / "out")
        assert result.exit_code == 2
        assert not (tmp_path / "out").exists()
        assert str(tmp_path / "archive.zip") in result.stderr
        return result.stderr

    def packed(*names: str) -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in names:
                archive.write(dump, name)
        return out.getvalue()

    whole = packed("snapshot.json")
    assert "zip data is damaged or cut short" in told(whole[: len(whole) // 2])
    assert "damaged or cut short" in told(whole[:200] + bytes(50) + whole[250:])
    assert "there are 2; it holds: a.json, b.json" in told(packed("a.json", "b.json"))
    assert "there are 0; it holds: readme.txt" in told(packed("readme.txt"))
    locked = bytearray(whole)
    locked[locked.index(b"PK\x01\x02") + 8] |= 1
    locked[6] |= 1
    assert "encrypted" in told(bytes(locked))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"id": "1", "title": "t", "abstract": "a"}', "no 'categories'; its keys are id, title, abstract"),
        ('{"id": "1", "title": null, "abstract": "a", "categories": "cs.CL"}', "its 'title' is None"),
        ('{"id": "1", "title": "t", "abstract": "a", "categories": " "}', "the paper '1' has no category"),
        ('{"id": "1", "title": "t", "abst', "the JSON is broken"),
        ('{"id": "1", "title": "t", "abst', "Is the snapshot whole? Download it again"),
        ("[1, 2]", "not an object"),
    ],
)
def test_a_wrong_line_is_told_with_its_number_and_nothing_is_written(
    line: str, words: str, dump: Path, tmp_path: Path, run: Run
) -> None:
    dump.write_text(dump.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    result = run("data", "arxiv", dump, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert f"{dump}:301: " in result.stderr
    assert words in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_dump_that_cannot_be_used_is_told(dump: Path, tmp_path: Path, run: Run) -> None:
    result = run("data", "arxiv", dump, "--least", 1000, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "no category is given to 1,000 of them" in result.stderr
    result = run("data", "arxiv", "-", "--out", tmp_path / "out")
    assert "read twice" in result.stderr
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(gzip.compress(dump.read_bytes())[:-20])
    assert "damaged or cut short" in run("data", "arxiv", cut, "--out", tmp_path / "out").stderr
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="documents is -1"):
        ArxivSettings(documents=-1)
    with pytest.raises(InputError, match="least is 0"):
        ArxivSettings(least=0)


def test_categories_may_be_a_list_and_texts_hold_half_characters(tmp_path: Path) -> None:
    odd = {**paper_of(1), "categories": ["cs.CL cs.LG", "math.CO"], "abstract": "half \ud800 of it", "title": "Why?"}
    (paper,) = read_papers(snapshot(tmp_path / "dump.json", [odd]))
    assert paper.categories == ("cs.CL", "cs.LG", "math.CO")
    assert paper.text == "Why? half � of it"


def test_help_shows_examples(run: Run) -> None:
    assert "hitin data arxiv arxiv-metadata-oai-snapshot.json" in run("data", "arxiv", "--help").stdout


@pytest.mark.slow
def test_memory_does_not_grow_with_the_snapshot(tmp_path: Path) -> None:
    """Of a snapshot of 100,000 papers and 150 MB little more than twelve bytes a paper is held."""
    path = tmp_path / "big.json"
    filler = "word " * 250
    with path.open("w", encoding="utf-8") as out:
        for number in range(100_000):
            out.write(json.dumps({**paper_of(number), "abstract": filler + str(number)}) + "\n")
    script = (
        "import resource, sys\n"
        "from hitin.datasets.arxiv import ArxivSettings, write_arxiv\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"files = write_arxiv({str(tmp_path / 'out')!r}, {str(path)!r}, ArxivSettings(documents=0))\n"
        "print(sum(files.documents), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    documents, kibibytes = map(int, done.stdout.split())
    assert documents == 100_000
    assert kibibytes < 30 * 1024
    assert np.isclose(path.stat().st_size / 1e6, 150, atol=30)
