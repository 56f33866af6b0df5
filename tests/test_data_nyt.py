"""NYTimes: an archive of the same shape with invented articles; wrong folders, lists and labels."""

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from hitin import InputError, Taxonomy, read_documents
from hitin.datasets import xml_files
from hitin.datasets.id_lists import read_lists
from hitin.datasets.nyt import find_months, frequent_labels, read_labels, taxonomy_of, write_nyt
from tests.conftest import Run

SPORTS, FOOTBALL, WORLD = "Top/News/Sports", "Top/News/Sports/Football", "Top/News/World"
ARTICLES: dict[str, tuple[str, ...]] = {  # the paths of each
    "1987/01/01/0000001.xml": (FOOTBALL, "Top/Features"),
    "1987/01/02/0000002.xml": (WORLD, SPORTS),
    "1987/02/11/0000203.xml": (SPORTS, "Top/Features/Books"),
    "2007/06/19/1855670.xml": (FOOTBALL, "Top/News"),
    "2007/06/19/1855671.xml": ("Top/News", "Elsewhere/News/Sports"),  # in no list
}
LISTS = {
    "train": ["1987/01/01/0000001.xml", "1987/01/02/0000002.xml"],
    "val": ["1987/02/11/0000203.xml"],
    "test": ["2007/06/19/1855670.xml"],
}
BEGINNINGS = {
    "0000001": ["Top/News", SPORTS, FOOTBALL],
    "0000002": ["Top/News", WORLD, SPORTS],
    "0000203": ["Top/News", SPORTS, "Top/Features", "Top/Features/Books"],
    "1855670": ["Top/News", SPORTS, FOOTBALL],
}


def article(paths: tuple[str, ...], paragraphs: tuple[str, ...] = ("First.", "LEAD: One", "two.")) -> bytes:
    classified = "".join(
        f'<classifier class="online_producer" type="taxonomic_classifier">{path}</classifier>' for path in paths
    )
    lead, *rest = (f"<p>{paragraph}</p>" for paragraph in paragraphs) if paragraphs else ("",)
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE nitf SYSTEM "http://www.nitf.org/IPTC/NITF/3.3/specification/dtd/nitf-3-3.dtd">
<nitf change.date="June 10, 2005" version="-//IPTC//DTD NITF 3.3//EN">
<head><title>An Invented Caf\u00e9</title><docdata><identified-content>
<classifier class="indexing_service" type="descriptor">SPORTS</classifier>{classified}
<classifier class="online_producer" type="general_descriptor">Sports</classifier>
</identified-content></docdata></head>
<body><body.head><hedline><hl1>An Invented Caf\u00e9</hl1></hedline></body.head>
<body.content><block class="lead_paragraph">{lead}</block>
<block class="full_text">{"".join(rest)}</block></body.content>
</body></nitf>
""".encode()


def archive(folder: Path) -> Path:
    """As it comes out of the LDC's discs: the months packed."""
    for month in sorted({name[:7] for name in ARTICLES}):
        path = folder / "data" / f"{month}.tgz"
        path.parent.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w:gz") as packed:
            for name, paths in ARTICLES.items():
                if name.startswith(month):
                    file = folder / Path(name).name
                    file.write_bytes(article(paths))
                    packed.add(file, name[5:])  # 01/02/0000002.xml
                    file.unlink()
    return folder


def lists(folder: Path, entry: str = "{}") -> Path:
    folder.mkdir()
    for split, names in LISTS.items():
        (folder / f"nyt_{split}.txt").write_text("".join(entry.format(name) + "\n" for name in names))
    return folder


def found(out: Path) -> dict[str, dict[str, list[str]]]:
    return {
        split: {str(document.id): list(document.labels) for document in read_documents(out / f"{split}.jsonl")}
        for split in LISTS
    }


def expected(known: set[str]) -> dict[str, dict[str, list[str]]]:
    return {
        split: {name[11:18]: [label for label in BEGINNINGS[name[11:18]] if label in known] for name in names}
        for split, names in LISTS.items()
    }


def refused(source: Path, ids: Path, out: Path, labels: Path | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        write_nyt(source, ids, out, labels=labels)
    assert not [*out.rglob("*")]  # the folder at most
    return caught.value


def test_listed_articles_have_the_beginnings_of_their_paths_that_are_labels(tmp_path: Path) -> None:
    known = {"Top/News", SPORTS, FOOTBALL, WORLD}
    (tmp_path / "labels").write_text(f"Root\tTop/News\nTop/News\t{SPORTS}\t{WORLD}\n{SPORTS}\t{FOOTBALL}\n")
    written = write_nyt(archive(tmp_path / "in"), lists(tmp_path / "ids"), tmp_path / "out", labels=tmp_path / "labels")
    assert found(tmp_path / "out") == expected(known)
    assert (written.labels, written.documents) == ((1, 2, 1), (2, 1, 1))
    edges = [("Top/News", SPORTS), ("Top/News", WORLD), (SPORTS, FOOTBALL)]
    assert Taxonomy.read(tmp_path / "out" / "taxonomy.tsv") == Taxonomy.from_edges(edges)


def test_a_list_of_other_labels_than_the_paper_has_is_told(tmp_path: Path) -> None:
    (tmp_path / "labels").write_text(f"{FOOTBALL}\n")
    notes: list[str] = []
    folder, ids = archive(tmp_path / "in"), lists(tmp_path / "ids")
    write_nyt(folder, ids, tmp_path / "out", labels=tmp_path / "labels", note=notes.append)
    assert notes[0].startswith(f"{tmp_path / 'labels'}: 3 labels, those above them included, where the paper has 166")


def test_a_label_that_no_training_article_has_is_told(tmp_path: Path) -> None:
    (tmp_path / "labels").write_text(f"{SPORTS}\n{WORLD}\nTop/News/Sport\nTop/Features/Books\n")
    notes: list[str] = []
    folder, ids = archive(tmp_path / "in"), lists(tmp_path / "ids")
    write_nyt(folder, ids, tmp_path / "out", labels=tmp_path / "labels", note=notes.append)
    told = "labels that no training article has: 3 (Top/Features, Top/Features/Books, Top/News/Sport)"
    assert notes[-1].startswith(told)
    notes.clear()
    write_nyt(folder, ids, tmp_path / "out", note=notes.append)
    assert not [note for note in notes if "no training article" in note]


def test_labels_of_which_training_articles_have_none_are_refused(tmp_path: Path) -> None:
    folder, ids = archive(tmp_path / "in"), lists(tmp_path / "ids")
    (tmp_path / "labels").write_text("Top/Features/Books\nTop/Nonsense\n")  # the first for validation alone
    error = refused(folder, ids, tmp_path / "out", tmp_path / "labels")
    assert error.message == "no training article has any label"
    assert error.file == str(tmp_path / "labels")
    assert "such as Top/News/Sports" in str(error)
    (ids / "nyt_train.txt").write_text("2007/06/19/1855671.xml")
    error = refused(folder, ids, tmp_path / "out")
    assert (error.message, error.file) == ("no training article has any label", str(ids))


@pytest.mark.parametrize(
    "line", ["Top/News/", "Top//Sports", "Top/", "ROOT Top/News Top/Features", f"{SPORTS} {WORLD}"]
)
def test_a_label_that_is_no_path_is_refused_with_its_line(line: str, tmp_path: Path) -> None:
    (tmp_path / "labels").write_text(f"Root\tTop/News\n{line}\n")
    with pytest.raises(InputError, match=r"has blanks where tabs|has a step without a name") as caught:
        read_labels(tmp_path / "labels")
    assert caught.value.place == f"{tmp_path / 'labels'}:2"


def test_a_text_is_all_paragraphs_but_the_first(tmp_path: Path) -> None:
    write_nyt(archive(tmp_path / "in"), lists(tmp_path / "ids"), tmp_path / "out")
    assert {document.text for document in read_documents(tmp_path / "out" / "train.jsonl")} == {"LEAD: One\ntwo."}


@pytest.mark.parametrize(
    ("paragraphs", "text"),
    [
        (("Only.",), "Only."),
        (("Only.", " "), "Only."),
        ((), "An Invented Café"),
        ((" ", ""), "An Invented Café"),
    ],
)
def test_of_a_very_short_article_there_is_what_it_has(paragraphs: tuple[str, ...], text: str, tmp_path: Path) -> None:
    folder = archive(tmp_path / "in")
    day = folder / "data" / "1987" / "02" / "11"
    day.mkdir(parents=True)  # over the archive of the month
    (day / "0000203.xml").write_bytes(article((SPORTS,), paragraphs))
    write_nyt(folder, lists(tmp_path / "ids"), tmp_path / "out")
    (document,) = read_documents(tmp_path / "out" / "val.jsonl")
    assert document.text == text


def test_unpacked_months_are_the_same_and_so_is_the_folder_data(tmp_path: Path) -> None:
    folder = archive(tmp_path / "in")
    for path in [*folder.rglob("*.tgz")]:
        with tarfile.open(path) as packed:
            packed.extractall(path.parent, filter="data")
        path.unlink()
    write_nyt(folder / "data", lists(tmp_path / "ids"), tmp_path / "out")
    assert found(tmp_path / "out") == expected(
        {label for labels in BEGINNINGS.values() for label in labels} - {"Top/Features", "Top/Features/Books"}
    )


def test_lists_of_hiagm_have_the_year_alone_and_only_its_months_are_read(tmp_path: Path) -> None:
    folder, ids = archive(tmp_path / "in"), tmp_path / "ids"
    (folder / "data" / "1999").mkdir()
    (folder / "data" / "1999" / "03.tgz").write_bytes(b"no archive")
    ids.mkdir()
    for split, names in LISTS.items():
        paths = [f"Nytimes/{name[:5]}{name[11:]}\n" for name in names]
        (ids / f"idnewnyt_{split}.json").write_text("".join(paths))
    assert {one.when for one in read_lists(ids).values()} == {"1987", "2007"}
    write_nyt(folder, ids, tmp_path / "out")
    assert [*found(tmp_path / "out")["val"]] == ["0000203"]
    shutil.rmtree(folder / "data" / "2007")
    assert "years are not there at all: 2007" in str(refused(folder, ids, tmp_path / "other"))


@pytest.mark.parametrize("entry", ["1987-01-25", "article7", "12345678901", "7.xml.gz", "1987/01/25/", "x7.xml"])
def test_what_ends_in_digits_is_no_article_for_that(entry: str, tmp_path: Path) -> None:
    ids = lists(tmp_path / "ids")
    (ids / "nyt_val.txt").write_text(entry)
    with pytest.raises(InputError, match="names no article"):
        read_lists(ids)


@pytest.mark.parametrize("entry", ['"{}",', "/any/where/data/{}", ".\\data\\{}"])
def test_lists_may_have_paths_of_any_kind(entry: str, tmp_path: Path) -> None:
    articles = read_lists(lists(tmp_path / "ids", entry))
    assert [(number, one.splits, one.when) for number, one in articles.items()] == [
        (1, ("train",), "1987/01"),
        (2, ("train",), "1987/01"),
        (203, ("val",), "1987/02"),
        (1855670, ("test",), "2007/06"),
    ]


def test_lists_of_names_alone_are_looked_for_in_all_months(tmp_path: Path) -> None:
    folder = tmp_path / "ids"
    folder.mkdir()
    (folder / "idnewnyt_train.json").write_text(json.dumps([name[11:] for name in LISTS["train"]]))
    (folder / "idnewnyt_val.json").write_text("0000203\n")
    (folder / "idnewnyt_test.json").write_text("1855670.xml\n")
    write_nyt(archive(tmp_path / "in"), folder, tmp_path / "out")
    assert [*found(tmp_path / "out")["test"]] == ["1855670"]


def test_an_article_of_several_lists_is_in_each_and_that_is_told(tmp_path: Path) -> None:
    """As in the published lists, which the paper's counts are of."""
    folder, ids = archive(tmp_path / "in"), lists(tmp_path / "ids")
    with (ids / "nyt_test.txt").open("a") as file:
        file.write("Nytimes/1987/0000001.xml\n1987/02/11/0000203.xml\n1855670\n")
    notes: list[str] = []
    written = write_nyt(folder, ids, tmp_path / "out", note=notes.append)
    assert written.documents == (2, 1, 4)
    numbers = [document.id for document in read_documents(tmp_path / "out" / "test.jsonl")]
    assert numbers == ["0000001", "0000203", "1855670", "1855670"]
    assert found(tmp_path / "out")["train"] == expected({"Top/News", SPORTS, FOOTBALL, WORLD})["train"]
    assert notes[0].startswith("articles that are listed more than once, and written as often: 3 (first 1987/01/01/00")
    assert "0000001.xml, for train and test). Of those in the test list, 2 are not unseen" in notes[0]


def test_months_that_no_list_names_are_not_read(tmp_path: Path) -> None:
    folder = archive(tmp_path / "in")
    (folder / "data" / "1987" / "03.tgz").write_bytes(b"no archive")
    write_nyt(folder, lists(tmp_path / "ids"), tmp_path / "out")


def test_without_a_list_labels_are_those_that_most_training_articles_have() -> None:
    counted = [["Top/A", "Top/A/B"], ["Top/A", "Top/A/C"], ["Top/A", "Top/A/C", "Top/A/C/D"], ["Top/E"]]
    assert frequent_labels(counted, 2) == {"Top/A", "Top/A/C"}
    assert frequent_labels(counted, 3) == {"Top/A", "Top/A/C", "Top/E"}
    for most in range(1, 7):
        labels = frequent_labels(counted, most)
        assert len(labels) == min(most, 5)
        assert all(label.rpartition("/")[0] in {*labels, "Top"} for label in labels)


def test_the_labels_of_the_paper_are_166_in_8_levels(shared: Path) -> None:
    taxonomy = taxonomy_of(read_labels(shared / "hierarchies" / "nyt.taxonomy"))
    assert (len(taxonomy), taxonomy.depth) == (166, 8)
    published = Taxonomy.read(shared / "hierarchies" / "nyt.taxonomy")
    parents = {taxonomy.labels[label]: taxonomy.parents(label).tolist() for label in range(166)}
    for label, name in enumerate(published.labels):
        above = [published.labels[parent] for parent in published.parents(label)]
        assert above == [taxonomy.labels[parent] for parent in parents[name]]


def test_missing_articles_and_months_are_named(tmp_path: Path) -> None:
    folder = archive(tmp_path / "in")
    (folder / "data" / "1987" / "01.tgz").unlink()
    error = refused(folder, lists(tmp_path / "ids"), tmp_path / "out")
    assert error.message.startswith("listed articles that are not in the archive: 2 (1987/01/01/0000001.xml, 1987")
    assert "months or years are not there at all: 1987/01" in str(error)


def test_a_month_that_was_unpacked_in_part_is_told_with_its_archive(tmp_path: Path) -> None:
    folder = archive(tmp_path / "in")
    day = folder / "data" / "1987" / "01" / "01"
    day.mkdir(parents=True)
    (day / "0000001.XML").write_bytes(article((SPORTS,)))
    (folder / "data" / "1987" / "02").mkdir()
    error = refused(folder, lists(tmp_path / "ids"), tmp_path / "out")
    assert "listed articles that are not in the archive: 2 (" in error.message
    assert f"{day.parent} was read, although 01.tgz lies beside it" in str(error)


def test_articles_may_lie_in_the_folders_of_their_years(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    for name, paths in ARTICLES.items():
        (folder / name[:4]).mkdir(parents=True, exist_ok=True)
        (folder / name[:4] / name[11:]).write_bytes(article(paths))
    ids = lists(tmp_path / "ids")
    write_nyt(folder, ids, tmp_path / "out")
    assert [*found(tmp_path / "out")["test"]] == ["1855670"]
    (folder / "1987" / "0000203.xml").unlink()
    error = refused(folder, ids, tmp_path / "other")
    assert error.message == "listed articles that are not in the archive: 1 (1987/02/11/0000203.xml)"
    assert "not there at all" not in str(error)


def test_archives_may_be_named_in_capitals(tmp_path: Path) -> None:
    folder = archive(tmp_path / "in")
    for path in [*folder.rglob("*.tgz")]:
        path.rename(path.with_suffix(".TGZ"))
    write_nyt(folder, lists(tmp_path / "ids"), tmp_path / "out")
    assert [*found(tmp_path / "out")["val"]] == ["0000203"]


def test_a_wrong_folder_is_told_what_it_looks_like(tmp_path: Path) -> None:
    folder = archive(tmp_path / "above" / "nyt_corpus")
    ids = lists(tmp_path / "ids")
    packed = tmp_path / "disc"
    packed.mkdir()
    (packed / "LDC2008T19.tgz").write_bytes(b"")
    for source, said in (
        (tmp_path / "above", f"folder above that of the archive\nGive {folder}."),
        (folder / "data" / "1987", "one year of the archive"),
        (packed, "LDC2008T19.tgz, and no data/1987"),
        (packed / "LDC2008T19.tgz", "still packed"),
        (ids, "not the archive"),
        (ids / "nyt_train.txt", "a file, not the folder"),
        (tmp_path / "nowhere", "no such folder"),
    ):
        assert said in str(refused(source, ids, tmp_path / "out"))


def test_a_list_that_is_missing_or_may_be_two_is_named(tmp_path: Path) -> None:
    folder, ids = archive(tmp_path / "in"), lists(tmp_path / "ids")
    shutil.copy(ids / "nyt_val.txt", ids / "nyt_dev.txt")
    assert "for val may be any of nyt_dev.txt, nyt_val.txt" in str(refused(folder, ids, tmp_path / "out"))
    (ids / "nyt_val.txt").unlink()
    (ids / "nyt_test.txt").unlink()
    assert "for test is missing" in str(refused(folder, ids, tmp_path / "out"))
    assert "no folder" in str(refused(folder, ids / "nyt_train.txt", tmp_path / "out"))


@pytest.mark.parametrize(
    ("content", "said", "line"),
    [
        ("1987/02/11/0000203.xml\nno article\n", "'no article' names no article", 2),
        ('["0000203.xml"', "no list of JSON", None),
        ('["0000203.xml",\n"oops"]', "'oops' names no article", None),
        ("\n \n", "names no article", None),
        ("[]", "names no article", None),
    ],
)
def test_a_bad_list_is_named_with_its_line(content: str, said: str, line: int | None, tmp_path: Path) -> None:
    folder, ids = archive(tmp_path / "in"), lists(tmp_path / "ids")
    (ids / "nyt_val.txt").write_text(content)
    error = refused(folder, ids, tmp_path / "out")
    assert said in error.message
    assert (error.file, error.line) == (str(ids / "nyt_val.txt"), line)


def test_no_encoding_is_advised_that_cannot_be_named(tmp_path: Path) -> None:
    folder, ids = archive(tmp_path / "in"), lists(tmp_path / "ids")
    (tmp_path / "labels").write_text(FOOTBALL, encoding="utf-16-le")
    said = str(refused(folder, ids, tmp_path / "out", tmp_path / "labels"))
    assert "looks like UTF-16" in said
    (ids / "nyt_val.txt").write_bytes("caf\u00e9/0000203.xml".encode("latin-1"))
    also = str(refused(folder, ids, tmp_path / "out"))
    assert "the bytes are not UTF-8" in also
    assert "--encoding" not in said + also


def test_damaged_archives_articles_and_labels_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, ids = archive(tmp_path / "in"), lists(tmp_path / "ids")
    (tmp_path / "labels").write_text("Sports\nNews\n")
    assert "no label in this file" in str(refused(folder, ids, tmp_path / "out", tmp_path / "labels"))
    month = folder / "data" / "1987" / "02.tgz"
    whole = month.read_bytes()
    other = bytes([whole[-8] ^ 1])  # of the checksum
    for damaged in (whole[:-60], whole[:-8], whole[:-8] + other + whole[-7:]):
        month.write_bytes(damaged)
        error = refused(folder, ids, tmp_path / "out")
        assert "archive of this month is damaged" in error.message
        assert error.file == str(month)
    month.write_bytes(b"\x1f\x8b\x08\x04\0\0\0\0\0\x03")  # the head of a .gz, cut short
    assert "archive of this month is damaged" in refused(folder, ids, tmp_path / "out").message
    day = month.with_suffix("") / "11"
    day.mkdir(parents=True)
    for content, said in ((article((SPORTS,))[:-20], "damaged or cut"), (b"<html/>", "begins with <html>")):
        (day / "0000203.xml").write_bytes(content)
        error = refused(folder, ids, tmp_path / "out")
        assert said in error.message
        assert error.file == str(day / "0000203.xml")
    monkeypatch.setattr(xml_files, "LARGEST", 5)
    assert "MiB" in str(refused(folder, ids, tmp_path / "out"))


def test_the_command_writes_and_says_how_labels_were_chosen(run: Run, tmp_path: Path) -> None:
    folder, ids = archive(tmp_path / "in"), lists(tmp_path / "ids")
    result = run("data", "nyt", folder, "--ids", ids, "--out", tmp_path / "out", "--check")
    assert result.exit_code == 1
    assert "note: labels: the 4 that most training articles have" in result.stderr
    assert "Not what the paper describes: labels," in result.stdout
    result = run("data", "nyt", folder, "--ids", ids, "--out", tmp_path / "out", "--json", "--overwrite")
    told = json.loads(result.stdout)
    assert told["documents"] == {"train": 2, "val": 1, "test": 1}
    assert "labels: the 4 that most training articles have" in told["notes"][0]
    assert run("data", "nyt", ids, "--ids", ids, "--out", tmp_path / "other").exit_code == 2
    assert not (tmp_path / "other").exists()
    result = run("data", "nyt", folder, "--out", tmp_path / "other")
    assert result.exit_code == 2
    assert "the lists of the articles for train, val and test are missing" in result.stderr
    assert "with --ids" in result.stderr


def test_the_command_takes_a_list_of_labels(run: Run, tmp_path: Path) -> None:
    (tmp_path / "labels").write_text(f"{FOOTBALL}\n")
    words = "data", "nyt", archive(tmp_path / "in"), "--ids", lists(tmp_path / "ids"), "--out", tmp_path / "out"
    result = run(*words, "--labels", tmp_path / "labels")
    assert result.exit_code == 0, result.output
    assert found(tmp_path / "out") == expected({"Top/News", SPORTS, FOOTBALL})
    assert "3 labels, those above them included, where the paper has 166" in result.stderr.replace("\n", " ")


def test_months_come_in_their_order(tmp_path: Path) -> None:
    assert [month.name for month in find_months(archive(tmp_path / "in"))] == ["1987/01", "1987/02", "2007/06"]
