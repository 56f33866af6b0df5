"""RCV1-v2: discs and token files of the same shape, with invented stories; wrong, partial and re-ordered ones."""

import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

import pytest
from sklearn.model_selection import train_test_split

from hitin import InputError, Taxonomy, read_documents
from hitin.datasets import rcv1, reuters
from hitin.datasets.rcv1 import TRAINING_STORIES, read_hierarchy, read_list, split_stories, write_rcv1
from hitin.datasets.rcv1_folder import HIERARCHY, TEST, TOPICS, TRAINING
from tests.conftest import Run

EDGES = [("Root", "CCAT"), ("Root", "MCAT"), ("CCAT", "C15"), ("C15", "C151"), ("MCAT", "M14"), ("M14", "M141")]
STORIES = {  # the topics of each story, as Reuters gave them
    2286: ("C151", "C15", "CCAT"),
    2287: ("M141",),
    2290: ("C15", "M14"),
    2291: ("CCAT",),
    26151: ("M14", "MCAT"),
    26160: ("C151",),
    30001: ("MCAT",),
    810596: ("M141", "C15"),
}
TRAIN = [2286, 2287, 2290, 2291]
CLOSED = {  # with those above, in the order of the taxonomy
    2286: ["CCAT", "C15", "C151"],
    2287: ["MCAT", "M14", "M141"],
    2290: ["CCAT", "MCAT", "C15", "M14"],
    2291: ["CCAT"],
    26151: ["MCAT", "M14"],
    26160: ["CCAT", "C15", "C151"],
    30001: ["MCAT"],
    810596: ["CCAT", "MCAT", "C15", "M14", "M141"],
}


def hierarchy() -> str:
    lines = ["parent: None        child: Root        child-description: Root"]
    lines += [f"parent: {a:<12}child: {b:<12}child-description: OF {b}/AND MORE" for a, b in EDGES]
    return "\n".join(lines) + "\n"


def qrels() -> str:
    return "".join(f"{topic} {number} 1\n" for number, topics in CLOSED.items() for topic in topics)


def tokens(numbers: list[int]) -> str:
    return "".join(f".I {number}\n.W\nstem{number} trad\nbank rate\n\n" for number in numbers)


def news(number: int, topics: tuple[str, ...], region: str = "UTOPIA") -> bytes:
    codes = "".join(f'<code code="{topic}"><editdetail attribution="x"/></code>' for topic in topics)
    countries = f'<codes class="bip:countries:1.0"><code code="{region}"/></codes>' if region else ""
    return f"""<?xml version="1.0" encoding="iso-8859-1" ?>
<newsitem itemid="{number}" id="root" date="1996-08-20" xml:lang="en">
<title>UTOPIA: Caf\xe9s of
 Utopia &amp; others, {number}.</title>
<headline>Not read.</headline><dateline>NOWHERE</dateline>
<text>
<p>A first  paragraph &eacute;crit.</p>
<p>The <b>second</b> one.</p><p/>
</text>
<copyright>(c) no one</copyright>
<metadata>{countries}<codes class="bip:industries:1.0"><code code="I1"/></codes>
<codes class="bip:topics:1.0">{codes}</codes><dc element="dc.date.created" value="1996-08-20"/></metadata>
</newsitem>
""".encode("latin-1")


def appendices(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / HIERARCHY).write_text(hierarchy())
    (folder / TOPICS).write_text(qrels())
    return folder


def token_files(folder: Path) -> Path:
    appendices(folder)
    (folder / TRAINING).write_text(tokens(TRAIN))
    for name, number in zip(TEST, [*STORIES][4:], strict=True):
        (folder / name).write_text(tokens([number]))
    return folder


def discs(folder: Path) -> Path:
    """Two discs of zips, with what else lies on them."""
    appendices(folder)
    (folder / TRAINING).write_text(tokens(TRAIN))
    for disc, day, numbers in (("disc1", "19960820", [*STORIES][:5]), ("disc2", "19970819", [*STORIES][5:])):
        (folder / disc).mkdir()
        with ZipFile(folder / disc / f"{day}.zip", "w") as archive:
            for number in reversed(numbers):
                archive.writestr(f"{number}newsML.xml", news(number, STORIES[number]))
        with ZipFile(folder / disc / "codes.zip", "w") as archive:
            archive.writestr("topic_codes.txt", "no stories")
    return folder


def found(out: Path) -> dict[str, dict[str, list[str]]]:
    """The labels of each story of each split."""
    return {
        split: {str(document.id): list(document.labels) for document in read_documents(out / f"{split}.jsonl")}
        for split in ("train", "val", "test")
    }


def expected() -> dict[str, dict[str, list[str]]]:
    train, val = train_test_split(TRAIN, test_size=0.1, random_state=0)
    splits = {"train": sorted(train), "val": val, "test": [*STORIES][4:]}
    return {split: {str(number): CLOSED[number] for number in numbers} for split, numbers in splits.items()}


def refused(source: Path, out: Path, ids: Path | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        write_rcv1(source, out, ids=ids)
    assert not [*out.rglob("*")]  # the folder at most
    return caught.value


@pytest.mark.parametrize("make", [token_files, discs])
def test_stories_go_where_the_paper_has_them_with_all_topics_above(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    written = write_rcv1(make(tmp_path / "in"), tmp_path / "out")
    assert found(tmp_path / "out") == expected()
    assert written.documents == (3, 1, 4)
    assert Taxonomy.read(tmp_path / "out" / "taxonomy.tsv") == Taxonomy.from_edges(EDGES)


def test_a_story_of_the_discs_is_its_paragraphs(tmp_path: Path) -> None:
    write_rcv1(discs(tmp_path / "in"), tmp_path / "out")
    first = next(iter(read_documents(tmp_path / "out" / "test.jsonl")))
    assert first.text == "A first paragraph écrit.\nThe second one."


def test_a_story_without_paragraphs_is_its_title(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    with ZipFile(folder / "disc2" / "19970819.zip", "w") as archive:
        for number in [*STORIES][5:]:
            story = news(number, STORIES[number])
            text = story[story.index(b"<text>") : story.index(b"</text>")]
            archive.writestr(f"{number}newsML.xml", story.replace(text, b"<text>\n<p> </p><p/>"))
    write_rcv1(folder, tmp_path / "out")
    *_, last = read_documents(tmp_path / "out" / "test.jsonl")
    assert last.text == "UTOPIA: Cafés of Utopia & others, 810596."


def test_a_story_of_the_token_files_is_its_stems(tmp_path: Path) -> None:
    write_rcv1(token_files(tmp_path / "in"), tmp_path / "out")
    first = next(iter(read_documents(tmp_path / "out" / "test.jsonl")))
    assert first.text == "stem26151 trad bank rate"


def test_unpacked_days_and_packed_appendices_are_the_same(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    for archive in [*folder.glob("disc*/1*.zip")]:
        with ZipFile(archive) as zipped:
            zipped.extractall(archive.with_suffix(""))
        archive.unlink()
    for name in (HIERARCHY, TOPICS, TRAINING):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
        (folder / name).unlink()
    write_rcv1(folder, tmp_path / "out")
    assert found(tmp_path / "out") == expected()


def test_folders_behind_links_are_read_and_links_in_a_circle_are_not(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    (folder / "disc1").rename(tmp_path / "elsewhere")
    (folder / "first").symlink_to(tmp_path / "elsewhere")
    (folder / "again").symlink_to(tmp_path / "elsewhere")  # and no story comes twice
    (tmp_path / "elsewhere" / "circle").symlink_to(folder)
    (tmp_path / "elsewhere" / "above").symlink_to(tmp_path)
    write_rcv1(folder, tmp_path / "out")
    assert found(tmp_path / "out") == expected()


@pytest.mark.parametrize("name", ["rcv1.tar.xz", "RCV1.tar.gz", "rcv1.tgz", "reuters-rcv1.tar.xz"])
def test_the_archive_of_all_days_is_read_as_it_is(name: str, tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    mode = "w:xz" if name.endswith("xz") else "w:gz"
    with tarfile.open(folder / name, mode) as packed:  # type: ignore[call-overload]
        packed.add(folder / "disc1" / "codes.zip", "rcv1/codes/codes.zip")
        for number, topics in STORIES.items():
            story = tarfile.TarInfo(f"rcv1/19960820/{number}newsML.xml")
            content = news(number, topics)
            story.size = len(content)
            packed.addfile(story, io.BytesIO(content))
    write_rcv1(folder, tmp_path / "beside")  # what was unpacked is taken, and no story comes twice
    shutil.rmtree(folder / "disc1")
    shutil.rmtree(folder / "disc2")
    with tarfile.open(folder / "a-rcv1-appendices.tar.gz", "w:gz") as packed:
        packed.add(folder / TOPICS, TOPICS)
    write_rcv1(folder, tmp_path / "out")
    assert found(tmp_path / "out") == found(tmp_path / "beside") == expected()
    whole = (folder / name).read_bytes()
    for damaged in (whole[:400], whole[:-4], whole[:-6] + b"damage"):
        (folder / name).write_bytes(damaged)
        error = refused(folder, tmp_path / "other")
        assert "archive is damaged or cut short" in error.message
        assert error.file == str(folder / name)


def test_without_the_list_of_topics_they_are_those_of_the_stories(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    (folder / TOPICS).unlink()
    with ZipFile(folder / "disc2" / "19970818.zip", "w") as archive:
        archive.writestr("30000newsML.xml", news(30000, ()))
        archive.writestr("30002newsML.xml", news(30002, ("M14",), region=""))
    notes: list[str] = []
    write_rcv1(folder, tmp_path / "out", note=notes.append)
    assert found(tmp_path / "out") == expected()
    assert "without a topic or a region: 2" in notes[-1]


def test_stories_that_are_not_of_version_2_are_left_out_and_counted(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    with ZipFile(folder / "disc2" / "19970818.zip", "w") as archive:
        archive.writestr("30000newsML.xml", news(30000, ("M14",)))
    notes: list[str] = []
    write_rcv1(folder, tmp_path / "out", note=notes.append)
    assert found(tmp_path / "out") == expected()
    assert notes[-1].endswith(f"not in {TOPICS}: 1")


def test_topics_of_a_part_of_the_stories_are_told(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    (folder / TOPICS).write_text("".join(qrels().splitlines(keepends=True)[:-5]))
    notes: list[str] = []
    write_rcv1(folder, tmp_path / "out", note=notes.append)
    assert f"{folder / TOPICS}: topics of 7 stories, where RCV1-v2 has 804,414" in notes[1]
    assert notes[-1].endswith(f"not in {TOPICS}: 1")
    assert "as they are of RCV1-v2" not in notes[-1]


def test_topics_that_training_stories_are_not_among_are_refused(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    (folder / TOPICS).write_text("CCAT 2286 1\nMCAT 26151 1\n")
    error = refused(folder, tmp_path / "out")
    assert error.message == "3 of the 4 stories for training have no topics in it: 2287, 2290, 2291"
    assert error.file == str(folder / TOPICS)
    assert "Download it again" in str(error)


@pytest.mark.parametrize("entry", ["{}\n", "{}newsML.xml\r\n", "/any/19960820/{}newsML.xml\n", "disc1\\{}newsML.xml\n"])
@pytest.mark.parametrize("name", ["rcv1v2-ids.dat", "rcv1v2-ids.dat.txt", "training.txt"])
def test_the_stories_for_training_may_come_as_a_list(name: str, entry: str, tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    (folder / TRAINING).unlink()
    (folder / name).write_text("".join(entry.format(number) for number in TRAIN))
    write_rcv1(folder, tmp_path / "out", ids=folder / name if name == "training.txt" else None)
    assert found(tmp_path / "out") == expected()


def test_of_a_list_of_all_stories_the_first_are_for_training_and_the_paper_holds_2316_of_them(tmp_path: Path) -> None:
    numbers = list(range(2286, 2286 + TRAINING_STORIES + 50))
    (tmp_path / "ids").write_text("\n".join(map(str, numbers)))
    notes: list[str] = []
    assert read_list(tmp_path / "ids", notes.append) == numbers
    assert "the first 23,149 of 23,199" in notes[0]
    training = numbers[:TRAINING_STORIES]
    splits = split_stories(training)
    val = {number for number, split in splits.items() if split == "val"}
    assert (len(splits) - len(val), len(val)) == (20_833, 2_316)
    _, tenth = train_test_split(training, test_size=0.1, random_state=0)
    assert len(tenth) == 2_315  # scikit-learn's tenth is the paper's less one story
    assert val > set(tenth)


def test_stories_in_another_order_are_split_alike_and_that_is_told(tmp_path: Path) -> None:
    folder = token_files(tmp_path / "in")
    (folder / TRAINING).write_text(tokens(TRAIN[::-1]))
    notes: list[str] = []
    write_rcv1(folder, tmp_path / "out", note=notes.append)
    assert found(tmp_path / "out") == expected()
    assert "not in the order of the distribution" in notes[0]
    assert "4 stories for training, where LYRL2004 has 23,149" in notes[1]


def test_a_list_of_others_than_the_lowest_numbers_is_told(tmp_path: Path) -> None:
    folder, ids = discs(tmp_path / "in"), tmp_path / "ids"
    ids.write_text("2287\n30001\n")
    notes: list[str] = []
    write_rcv1(folder, tmp_path / "out", ids=ids, note=notes.append)
    assert notes[-1].startswith(f"{ids}: 30001 is for training and 2286 for test, where LYRL2004 has the lowest")
    notes.clear()
    write_rcv1(folder, tmp_path / "out", note=notes.append)
    assert not [note for note in notes if "lowest" in note]


@pytest.mark.parametrize("content", ["\n", " \n\r\n\n"])
def test_a_list_of_no_stories_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text(content)
    error = refused(discs(tmp_path / "in"), tmp_path / "out", tmp_path / "ids")
    assert error.message == "there is no story in this list"
    assert error.file == str(tmp_path / "ids")


@pytest.mark.parametrize("name", [HIERARCHY, TOPICS, *TEST])
def test_a_missing_file_is_named_and_where_it_belongs(name: str, tmp_path: Path) -> None:
    folder = token_files(tmp_path / "in")
    (folder / name).unlink()
    error = refused(folder, tmp_path / "out")
    assert error.message == f"{name} is missing"
    assert error.file == str(folder)
    assert "Put it into this folder" in str(error)


def test_a_list_in_utf_16_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("2286\n2287\n", encoding="utf-16-le")
    assert "save it as UTF-8" in str(refused(discs(tmp_path / "in"), tmp_path / "out", tmp_path / "ids"))


@pytest.mark.parametrize("entry", ["2286 2287", "story", "9" * 5000])
def test_a_list_that_has_no_numbers_is_told_what_it_should_have(entry: str, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text(entry)
    error = refused(discs(tmp_path / "in"), tmp_path / "out", tmp_path / "ids")
    assert "the number of a story on each line" in str(error)
    assert (error.file, error.line) == (str(tmp_path / "ids"), 1)


def test_a_list_of_a_single_story_leaves_none_to_train_on_and_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("2286\n")
    error = refused(discs(tmp_path / "in"), tmp_path / "out", tmp_path / "ids")
    assert "all of them would be held for validation" in error.message
    assert error.file == str(tmp_path / "ids")


def test_a_missing_list_of_training_stories_is_named(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    (folder / TRAINING).unlink()
    error = refused(folder, tmp_path / "out")
    assert TRAINING in str(error)
    assert "--ids" in str(error)


def test_a_folder_without_stories_says_what_it_should_hold(tmp_path: Path) -> None:
    assert "19960820.zip" in str(refused(appendices(tmp_path / "in"), tmp_path / "out"))
    assert "no such folder" in str(refused(tmp_path / "nowhere", tmp_path / "out"))
    assert "a file, not a folder" in str(refused(tmp_path / "in" / TOPICS, tmp_path / "out"))


def test_a_folder_with_the_training_stories_alone_says_which_archives_were_not_read(tmp_path: Path) -> None:
    folder = appendices(tmp_path / "in")
    (folder / TRAINING).write_text(tokens(TRAIN))
    (folder / "news.tar.xz").write_bytes(b"")
    error = refused(folder, tmp_path / "out")
    assert "neither stories of Reuters nor the token files of those for test" in error.message
    assert "Not read: news.tar.xz; a tar archive of all days needs rcv1 in its name." in str(error)


def test_a_part_of_the_stories_is_told_by_how_many_are_missing(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    shutil.rmtree(folder / "disc2")
    error = refused(folder, tmp_path / "out")
    assert error.message == "stories that it names and that are not there: 3 (26160, 30001, 810596)"
    (tmp_path / "ids").write_text("2286\n2287\n999999\n")
    error = refused(discs(tmp_path / "whole"), tmp_path / "out", tmp_path / "ids")
    assert error.message == "stories that it names and that are not there: 1 (999999)"
    assert error.file == str(tmp_path / "ids")  # not that of the topics
    folder = token_files(tmp_path / "tokens")
    (folder / TEST[3]).write_text(tokens([26151]))
    told = str(refused(folder, tmp_path / "out"))
    assert "the story 26151 comes twice" in told
    assert "Is one of the token files a copy of another?" in told


def test_without_the_list_of_topics_a_part_of_the_stories_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rcv1, "TRAINING_STORIES", len(TRAIN))
    monkeypatch.setattr(rcv1, "VALIDATION_STORIES", 1)
    folder = discs(tmp_path / "in")
    (folder / TOPICS).unlink()
    shutil.rmtree(folder / "disc2")
    notes: list[str] = []
    write_rcv1(folder, tmp_path / "part", note=notes.append)
    assert "5 stories with topics, where RCV1-v2 has 804,414: a part of them?" in notes
    (folder / TRAINING).unlink()
    (folder / "rcv1v2-ids.dat").write_text("\n".join(map(str, STORIES)))
    error = refused(folder, tmp_path / "out")
    assert error.message == "stories that it names and that are not there: 3 (26160, 30001, 810596)"
    assert error.file == str(folder / "rcv1v2-ids.dat")


def test_an_archive_that_is_passed_over_is_told_where_stories_are_missing(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    shutil.rmtree(folder / "disc2")
    with tarfile.open(folder / "rcv1.tar.xz", "w:xz"):
        pass
    (folder / "._rcv1.tar.xz").write_bytes(b"of a Macintosh")
    assert f"{folder / 'rcv1.tar.xz'} was not read" in str(refused(folder, tmp_path / "out"))


def test_an_archive_of_zips_is_told_to_be_unpacked(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    with tarfile.open(folder / "rcv1.tar.gz", "w:gz") as packed:
        for disc in ("disc1", "disc2"):
            packed.add(folder / disc, disc)
            shutil.rmtree(folder / disc)
    error = refused(folder, tmp_path / "out")
    assert error.message == "there is no story (such as 2286newsML.xml) in this archive"
    assert error.file == str(folder / "rcv1.tar.gz")
    assert "Unpack it; the zips" in str(error)


def test_zips_beside_what_was_in_them_are_told(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    with ZipFile(folder / "disc1" / "19960820.zip") as zipped:
        zipped.extractall(folder / "disc1" / "19960820")
    assert "comes twice" in str(refused(folder, tmp_path / "out"))


DAMAGE: dict[str, tuple[str, str | bytes, str, int | None]] = {
    "a line that is no edge": (HIERARCHY, "CCAT\tC15\n", "no line of the hierarchy", 1),
    "a cycle": (HIERARCHY, "parent: C15 child: C16\nparent: C16 child: C15\n", "cycle", None),
    "an unknown topic": (TOPICS, "CCAT 2286 1\nZZZ 2286 1\n", "does not have the topic 'ZZZ'", 2),
    "a topic without a story": (TOPICS, "CCAT 1\n", "is no topic", 1),
    "a topic of no number": (TOPICS, "CCAT x1 1\n", "not the number of a story", 1),
    "tokens without a story": (TEST[0], "trad bank\n", "no token file", 1),
    "a story without tokens": (TEST[0], ".I 26151\n.W\na\n\n.I 7\n", "story 7 has no .W", 5),
    "a story of no number": (TEST[0], ".I a1\n.W\n", "not the number of a story", 1),
    "a story without topics": (TEST[0], ".I 77\n.W\na\n", f"is not in {TOPICS}", 1),
    "an empty file": (TEST[0], "", "empty", None),
    "a packed file that is cut short": (TEST[0], gzip.compress(tokens([26151]).encode())[:30], "damaged or cut", None),
    "a training story twice": (TRAINING, tokens([2286, 2286]), "comes twice", None),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_damage_is_named_with_its_file_and_line(what: str, tmp_path: Path) -> None:
    name, content, message, line = DAMAGE[what]
    folder = token_files(tmp_path / "in")
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    error = refused(folder, tmp_path / "out")
    assert message in error.message
    assert error.file == str(folder / name)
    assert error.line == line or line is None


BAD_NEWS: dict[str, tuple[bytes, str]] = {
    "half a story": (news(26160, ("C15",))[:-30], "damaged or cut short"),
    "another kind of XML": (b"<rss/>", "no story of Reuters"),
    "a bomb": (b'<!DOCTYPE newsitem [<!ENTITY a "aaaa">]><newsitem itemid="26160">&a;</newsitem>', "defines entities"),
    "a name that no one knows": (b'<newsitem itemid="1">&zzz;</newsitem>', "undefined entity"),
    "a topic that no one knows": (news(26160, ("ZZZ",)), "'ZZZ', which the hierarchy has not"),
}


@pytest.mark.parametrize("what", BAD_NEWS)
def test_a_bad_story_is_named_with_the_zip_that_it_is_in(what: str, tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    (folder / TOPICS).unlink()
    content, message = BAD_NEWS[what]
    with ZipFile(folder / "disc2" / "19970819.zip", "w") as archive:
        archive.writestr("26160newsML.xml", content)
    error = refused(folder, tmp_path / "out")
    assert message in error.message
    assert error.file == f"{folder}/disc2/19970819.zip/26160newsML.xml"


def test_a_zip_that_is_cut_short_is_named(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    archive = folder / "disc2" / "19970819.zip"
    archive.write_bytes(archive.read_bytes()[:-40])
    error = refused(folder, tmp_path / "out")
    assert "archive is damaged" in error.message
    assert error.file == str(archive)


def test_a_story_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    story = folder / "disc1" / "19960821" / "2292newsML.xml"
    story.parent.mkdir()
    story.symlink_to("nowhere")
    error = refused(folder, tmp_path / "out")
    assert "cannot be read" in error.message
    assert error.file == str(story.parent)


def test_a_story_that_is_far_too_long_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reuters, "LARGEST", 100)
    assert "MiB" in str(refused(discs(tmp_path / "in"), tmp_path / "out"))


def test_the_command_writes_and_compares_with_the_paper(run: Run, tmp_path: Path) -> None:
    folder = discs(tmp_path / "in")
    result = run("data", "rcv1", folder, "--out", tmp_path / "out", "--check")
    assert result.exit_code == 1
    assert "6 labels, 2 > 2 > 2 by level" in result.stdout
    assert "Not what the paper describes: labels," in result.stdout
    assert "note: " in result.stderr
    result = run("data", "rcv1", folder, "--out", tmp_path / "out", "--json", "--overwrite")
    assert result.exit_code == 0
    told = json.loads(result.stdout)
    assert told["documents"] == {"train": 3, "val": 1, "test": 4}
    assert [f"note: {note}" for note in told["notes"]] == result.stderr.splitlines()
    (folder / HIERARCHY).unlink()
    before = (tmp_path / "out" / "train.jsonl").read_bytes()
    result = run("data", "rcv1", folder, "--out", tmp_path / "out", "--overwrite")
    assert result.exit_code == 2
    assert f"{HIERARCHY} is missing" in result.stderr
    assert (tmp_path / "out" / "train.jsonl").read_bytes() == before


@contextmanager
def waiting(folder: Path, out: Path, on_kill: signal.Handlers) -> Iterator["subprocess.Popen[bytes]"]:
    """The command, once it has written a part and waits for more."""
    (folder / TEST[3]).unlink()
    os.mkfifo(folder / TEST[3])
    process = subprocess.Popen(
        [sys.executable, "-m", "hitin", "data", "rcv1", folder, "--out", out],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGTERM, on_kill),
    )
    try:
        while process.poll() is None and not [*out.glob(".*.part")]:
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_polite_kill_leaves_nothing_behind(tmp_path: Path) -> None:
    with waiting(token_files(tmp_path / "in"), tmp_path / "new" / "out", signal.SIG_DFL) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 128 + signal.SIGTERM
    assert not (tmp_path / "new").exists()


def test_a_kill_that_is_ignored_stays_so(tmp_path: Path) -> None:
    folder = token_files(tmp_path / "in")
    with waiting(folder, tmp_path / "out", signal.SIG_IGN) as process:
        process.send_signal(signal.SIGTERM)
        (folder / TEST[3]).write_text(tokens([810596]))
        assert process.wait(60) == 0
    assert found(tmp_path / "out") == expected()


@pytest.mark.parametrize("make", [token_files, discs])
def test_progress_goes_from_the_first_to_the_last_file(make: Callable[[Path], Path], tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    write_rcv1(make(tmp_path / "in"), tmp_path / "out", advance=lambda *told: seen.append(told))
    assert len({(name, whole) for name, _, whole in seen}) == 1
    done = [count for _, count, _ in seen]
    assert done == sorted(done)
    assert done[-1] <= seen[0][2]


def test_the_topics_of_the_paper_are_103_in_4_levels(shared: Path, tmp_path: Path) -> None:
    lines = ["parent: None child: Root child-description: Root"]
    for line in (shared / "hierarchies" / "rcv1.taxonomy").read_text().splitlines():
        parent, *children = line.split("\t")
        lines += [f"parent: {parent} child: {child} child-description: INVENTED" for child in children]
    (tmp_path / HIERARCHY).write_text("\n".join(lines))
    taxonomy = read_hierarchy(tmp_path / HIERARCHY)
    assert (len(taxonomy), taxonomy.depth) == (103, 4)
