"""Tokens kept on disk: the same numbers whatever is kept, damaged or full; and no more than is wanted."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hitin import token_cache
from hitin.encoders import build_encoder, kept_numbers, numbers_of
from hitin.encoders.bag import BagSettings
from hitin.encoders.textrcnn import TextRCNNSettings
from hitin.errors import InputError
from hitin.locking import locked
from hitin.model import Advance
from hitin.tensor_files import load_tensors, save_tensors
from hitin.token_cache import Judged, TokenCache, key_of, tidy, usual_folder
from hitin.tokens import Ragged, word_tokenizer
from hitin.watcher import Watcher
from tests.training_harness import classifier, documents, weights
from tests.waiting import until

TEXTS = ["a cat and a dog", "", "the dog \ud800 barks", "日本語"] * 3
MONTH = 30 * 24 * 3600


class Notes(Watcher):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of any size are worth keeping."""
    monkeypatch.setattr(token_cache, "_FEWEST_CHARACTERS", 1)


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the user says is the cache's."""
    monkeypatch.setenv("HITIN_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tokens"


def never(_: Advance) -> Ragged:
    raise AssertionError("the tokens were found again")


def rows_of(ragged: Ragged) -> list[list[int]]:
    return [ragged[row].tolist() for row in range(len(ragged))]


def kept(cache: TokenCache, rows: list[list[int]], find: Callable[[Advance], Ragged] | None = None) -> Ragged:
    return cache.tokens(lambda: "said", ["text"] * len(rows), 10, find or (lambda _: Ragged.of(rows)))


# Judgements, which take long.


JUDGED = Ragged.of([[0, 2], [1]]), np.array([0.5, 0.25, 1], np.float32)


def judged(cache: TokenCache, find: Callable[[], Judged]) -> Judged:
    return cache.judgements(lambda: "said", ["text", "other"], 3, find)


@pytest.mark.usefixtures("small")
def test_of_those_that_want_the_same_judgement_at_once_one_works_it_out(tmp_path: Path) -> None:
    asked: list[int] = []
    watchers = [Notes() for _ in range(3)]

    def find() -> Judged:
        asked.append(1)
        until(lambda: sum(bool(watcher.notes) for watcher in watchers) == 2)  # both others wait
        return JUDGED

    with ThreadPoolExecutor(3) as pool:
        caches = [TokenCache(tmp_path, watcher) for watcher in watchers]
        found = list(pool.map(lambda cache: judged(cache, find), caches))
    assert len(asked) == 1
    assert [rows_of(labels) for labels, _ in found] == [rows_of(JUDGED[0])] * 3
    assert sorted(note.split()[0] for watcher in watchers for note in watcher.notes) == [
        "the",
        "the",
        "waiting",
        "waiting",
    ]
    assert judged(TokenCache(tmp_path), find)[1].tolist() == JUDGED[1].tolist()
    assert [path.suffix for path in tmp_path.iterdir()] == [".safetensors"]  # nothing of the turns


@pytest.mark.usefixtures("small")
def test_where_nothing_can_be_kept_those_who_waited_work_it_out_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_cache, "_MOST_BYTES", 0)
    watchers, both = [Notes() for _ in range(3)], Barrier(2, timeout=20)

    def judge(watcher: Notes) -> Judged:
        def find() -> Judged:
            if watcher.notes:
                both.wait()  # of two that took turns, the first would wait in vain
            until(lambda: sum(bool(each.notes) for each in watchers) == 2)
            return JUDGED

        return judged(TokenCache(tmp_path, watcher), find)

    with ThreadPoolExecutor(3) as pool:
        assert all(found is JUDGED for found in pool.map(judge, watchers))
    assert not [*tmp_path.iterdir()]


@pytest.mark.usefixtures("small")
def test_who_stopped_is_not_waited_for_without_end_nor_by_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_cache, "_PATIENCE", 0.3)
    watcher = Notes()
    key = key_of(["judgements", "said"], ["text", "other"])
    with ThreadPoolExecutor(1) as pool, locked(tmp_path / "turns" / key, "stopped"):
        cache = TokenCache(tmp_path, watcher)
        assert pool.submit(cache.judgements, lambda: "else", ["text"], 3, lambda: JUDGED).result(20) is JUDGED
        assert not watcher.notes
        assert pool.submit(judged, cache, lambda: JUDGED).result(20) is JUDGED
        assert len(watcher.notes) == 1


@pytest.mark.usefixtures("small")
def test_a_judgement_is_worked_out_where_none_can_wait_for_it(tmp_path: Path) -> None:
    (tmp_path / "turns").write_text("in the way")
    assert judged(TokenCache(tmp_path), lambda: JUDGED) is JUDGED


@pytest.mark.usefixtures("small")
def test_a_judgement_is_worked_out_where_turns_are_closed_to_the_user(tmp_path: Path) -> None:
    judged(TokenCache(tmp_path), lambda: JUDGED)  # with all that it imports, which another user may not read
    folder = Path(tempfile.mkdtemp())  # where another user comes, too
    folder.chmod(0o777)
    (folder / "turns").mkdir(mode=0)
    was = os.geteuid()
    try:
        if was == 0:  # whom nothing is closed to
            os.seteuid(65534)
        assert judged(TokenCache(folder), lambda: JUDGED)[1].tolist() == JUDGED[1].tolist()
    finally:
        os.seteuid(was)
        shutil.rmtree(folder)


# What is kept.


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("settings", [TextRCNNSettings(min_count=1), BagSettings(min_count=1)])
def test_kept_numbers_are_those_that_are_found(settings: TextRCNNSettings | BagSettings, tmp_path: Path) -> None:
    watcher = Notes()
    cache = TokenCache(tmp_path / "tokens", watcher)
    found = []
    for _ in range(2):
        _, tokenizer, _ = build_encoder(settings, TEXTS, cache)
        numbers = rows_of(kept_numbers(cache, tokenizer, TEXTS, 9))
        found.append((tokenizer.to_str(), numbers))
    _, plain, _ = build_encoder(settings, TEXTS)
    wanted = rows_of(numbers_of(plain, TEXTS, 9))
    assert found == [(plain.to_str(), wanted)] * 2
    assert watcher.notes == ["tokens taken from the cache"]
    assert len(list((tmp_path / "tokens").iterdir())) == 2  # the vocabulary and the tokens


@pytest.mark.usefixtures("small")
def test_a_training_with_kept_tokens_ends_with_the_same_weights(named: Path) -> None:
    first, again = Notes(), Notes()
    wanted = weights(classifier().fit(*documents(30), documents(20, seed=1), watcher=first))
    assert len(list(named.iterdir())) == 3  # the vocabulary, and the tokens of training and validation documents
    found = weights(classifier().fit(*documents(30), documents(20, seed=1), watcher=again))
    assert all(torch.equal(wanted[name], found[name]) for name in wanted)
    assert "tokens taken from the cache" not in first.notes
    assert again.notes.count("tokens taken from the cache") == 2
    other = Notes()
    classifier(max_length=3).fit(*documents(30), documents(20, seed=1), watcher=other)
    assert "tokens taken from the cache" not in other.notes


@given(st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
def test_keys_are_equal_for_equal_texts_alone(left: list[str], right: list[str]) -> None:
    assert (key_of(1, left) == key_of(1, right)) == (left == right)
    assert key_of(1, left) != key_of(2, left)


def test_where_texts_end_counts() -> None:
    assert key_of(0, ["ab", "c"]) != key_of(0, ["a", "bc"])
    assert key_of(0, ["a"]) != key_of(0, ["a", ""])


@pytest.mark.usefixtures("small")
def test_a_tokenizer_is_the_same_before_and_after_its_first_use(tmp_path: Path) -> None:
    tokenizer = word_tokenizer(["a b c d"], size=9, min_count=1)
    cache = TokenCache(tmp_path)
    kept_numbers(cache, tokenizer, ["a b"], 3)
    numbers_of(tokenizer, ["a b"], 2)
    kept_numbers(cache, tokenizer, ["a b"], 3)
    assert len(list(tmp_path.iterdir())) == 1


def test_few_texts_are_not_kept(tmp_path: Path) -> None:
    cache = TokenCache(tmp_path / "tokens")
    assert rows_of(kept(cache, [[1]])) == [[1]]
    assert not (tmp_path / "tokens").exists()


def test_reading_is_told(tmp_path: Path) -> None:
    told: list[int] = []

    class Counting(Watcher):
        def counting(self, what: str, total: int, unit: str = "documents"):  # type: ignore[no-untyped-def]  # noqa: ANN202
            assert (what, total, unit) == ("reading", 1500, "documents")
            return super().counting(what, total)

    tokenizer = word_tokenizer(["a b"], size=9, min_count=1)
    numbers_of(tokenizer, ["a"] * 1500, 5, told.append)
    assert told == [1024, 476]
    kept_numbers(TokenCache(tmp_path, Counting()), tokenizer, ["a"] * 1500, 5)


# What is damaged, full or not to be written.


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("cut", [0, 10, 60, -1])
def test_a_damaged_file_is_made_again(cut: int, tmp_path: Path) -> None:
    cache, rows = TokenCache(tmp_path), [[1, 2], [3]]
    kept(cache, rows)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:cut] if cut >= 0 else whole[:-1] + bytes([whole[-1] ^ 1]))
    assert rows_of(kept(cache, rows)) == rows
    assert path.read_bytes() == whole
    assert rows_of(kept(cache, rows, never)) == rows


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("values", "starts"),
    [
        ([1, 2, 3], [0, 2]),  # too few rows
        ([1, 2, 3], [0, 2, 2]),  # not all values
        ([1, 2, 3], [0, 4, 3]),  # back again
        ([1, 2, 3], [1, 2, 3]),  # not from the first
        ([1, 2, 10], [0, 2, 3]),  # a number that the vocabulary has not
        ([1, 2, -1], [0, 2, 3]),
        ([1.0, 2.0, 3.0], [0, 2, 3]),
    ],
)
def test_a_file_of_something_else_is_made_again(values: list[float], starts: list[int], tmp_path: Path) -> None:
    cache, rows = TokenCache(tmp_path), [[1, 2], [3]]
    kept(cache, rows)
    (path,) = tmp_path.iterdir()
    kind = np.float32 if isinstance(values[0], float) else np.int32
    save_tensors(path, {"values": torch.from_numpy(np.array(values, kind)), "starts": torch.tensor(starts)})
    assert rows_of(kept(cache, rows)) == rows
    assert load_tensors(path)[0]["values"].tolist() == [1, 2, 3]


@pytest.mark.usefixtures("small")
def test_a_damaged_vocabulary_is_learnt_again(tmp_path: Path) -> None:
    cache = TokenCache(tmp_path)
    _, tokenizer, _ = build_encoder(BagSettings(min_count=1), TEXTS, cache)
    (path,) = tmp_path.iterdir()
    save_tensors(path, {"text": torch.tensor([123, 125], dtype=torch.uint8)})  # {}
    _, again, _ = build_encoder(BagSettings(min_count=1), TEXTS, cache)
    assert again.to_str() == tokenizer.to_str()


def test_a_cache_that_was_named_must_be_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("HITIN_CACHE", str(tmp_path / "file"))
    with pytest.raises(InputError, match="cannot be written") as error:
        classifier().fit(*documents(20))
    assert error.value.kind == "unwritable"
    assert error.value.file == str(tmp_path / "file" / "tokens")
    assert error.value.remedy is not None
    assert "off" in error.value.remedy


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no file system that refuses files in spite of rights")
def test_a_cache_on_a_file_system_that_takes_no_files_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HITIN_CACHE", "/proc/nowhere")  # root has the right to write there
    with pytest.raises(InputError, match="cannot be written") as error:
        TokenCache.usual()
    assert error.value.file == "/proc/nowhere/tokens"


@pytest.mark.usefixtures("small")
def test_without_a_writable_home_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.delenv("HITIN_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    watcher = Notes()
    classifier().fit(*documents(20), documents(20, seed=1), watcher=watcher)
    (told,) = [note for note in watcher.notes if "warning" in note]
    assert str(tmp_path / "file" / "hitin" / "tokens") in told


FULL = """
import resource, sys
from pathlib import Path
from hitin import token_cache
from tests.test_token_cache import Notes
from tests.training_harness import classifier, documents
token_cache._FEWEST_CHARACTERS = 1
resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
watcher = Notes()
found = token_cache.TokenCache(Path(sys.argv[1]), watcher)
rows = token_cache.Ragged.of([[1] * 1000])
assert found.tokens(lambda: 0, ["text"], 10, lambda _: rows) is rows
assert found.tokens(lambda: 0, ["text"], 10, lambda _: rows) is rows
(note,) = watcher.notes
assert note.startswith("warning: tokens are not kept"), note
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no limits of files")
def test_a_full_disk_keeps_no_one_from_training(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], check=True)
    assert list(tmp_path.iterdir()) == []


# How much is kept, and where.


def test_what_was_not_used_for_long_goes_and_then_the_oldest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_cache, "_MOST_BYTES", 250)
    names = [f"{number:032x}.safetensors" for number in range(4)]
    for name, age in zip(names, (0, 100, 200, MONTH + 100), strict=True):
        (tmp_path / name).write_bytes(bytes(100))
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    others = ["mine.safetensors", f"{0:033x}.safetensors", "notes.txt"]
    leftover = [f".{0:016x}.part", ".tmpAb1cD2"]
    for name in (*others, *leftover):
        (tmp_path / name).write_bytes(bytes(1000))
        os.utime(tmp_path / name, (0, 0))
    tidy(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*names[:2], *others}


@pytest.mark.usefixtures("small")
def test_use_makes_a_file_young_again(tmp_path: Path) -> None:
    cache = TokenCache(tmp_path)
    kept(cache, [[1]])
    (path,) = tmp_path.iterdir()
    os.utime(path, (0, 0))
    kept(cache, [[1]], never)
    assert time.time() - path.stat().st_mtime < 60


@pytest.mark.usefixtures("small")
def test_more_than_there_is_room_for_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_cache, "_MOST_BYTES", 10)
    kept(TokenCache(tmp_path), [[1] * 100])
    assert list(tmp_path.iterdir()) == []


def test_another_process_may_tidy_at_the_same_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / f"{0:032x}.safetensors"
    tidy(tmp_path / "removed")
    monkeypatch.setattr(token_cache, "_by_use", lambda _: [(gone, 0.0, 10)])
    tidy(tmp_path)


def test_the_folder_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert usual_folder() is None  # as all tests have it
    for named, home, wanted in (
        (str(tmp_path), "", tmp_path / "tokens"),
        ("", str(tmp_path), tmp_path / "hitin" / "tokens"),
        ("", "", Path.home() / ".cache" / "hitin" / "tokens"),
    ):
        monkeypatch.setenv("HITIN_CACHE", named)
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        assert usual_folder() == wanted
