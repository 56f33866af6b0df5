"""Files: compression, encodings, limits, and writing whole or not at all."""

import bz2
import gzip
import lzma
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hitin import InputError
from hitin.compression import recognise, zstd
from hitin.errors import MissingExtraError
from hitin.extras import need
from hitin.files import LINE_LIMIT, Source
from hitin.writing import write_text
from tests.conftest import Write

TEXT = "first\nsecond é 👩‍⚕️\r\nthird"
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd().compress,
}


def lines_of(path: Path, **options: object) -> list[str]:
    with Source(path, **options) as source:  # type: ignore[arg-type]
        return list(source.lines())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_lines_are_the_same_in_every_encoding_that_says_its_name(encoding: str, write: Write) -> None:
    assert lines_of(write("a.txt", TEXT.encode(encoding))) == ["first\n", "second é 👩‍⚕️\r\n", "third"]


@pytest.mark.parametrize("compression", COMPRESS)
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_compression_is_told_by_content_not_by_name(compression: str, suffix: str, write: Write) -> None:
    path = write(f"a.txt{suffix}", COMPRESS[compression](TEXT.encode()))
    with Source(path) as source:
        assert source.compression == compression
        assert source.suffix == ".txt"
        assert "".join(source.lines()) == TEXT


def test_text_may_begin_as_compressed_data_does(write: Write) -> None:
    assert lines_of(write("a.txt", "BZhang bought 9 shares")) == ["BZhang bought 9 shares"]
    for level in range(1, 10):
        for text in (b"", b"text"):
            assert recognise(bz2.compress(text, level)[:8]) == "bzip2"


@pytest.mark.parametrize("compression", COMPRESS)
def test_compressed_data_that_is_cut_short_is_named_as_such(compression: str, write: Write) -> None:
    whole = COMPRESS[compression]("\n".join(str(number) for number in range(100_000)).encode())
    with pytest.raises(InputError, match=f"the {compression} data is damaged or cut short"):
        lines_of(write("a.txt", whole[: len(whole) // 2]))


@pytest.mark.parametrize("compression", COMPRESS)
def test_a_later_part_of_a_compressed_file_that_is_damaged_is_not_left_out(compression: str, write: Write) -> None:
    """As several processes write them, and `cat` puts them together."""
    parts = [COMPRESS[compression](f"{number}\n".encode() * 100) for number in range(3)]
    assert len(lines_of(write("whole.txt", b"".join(parts)))) == 300
    for at in (0, len(parts[1]) // 2):
        bad = bytearray(parts[1])
        bad[at] ^= 0xFF
        with pytest.raises(InputError, match=f"the {compression} data is damaged or cut short"):
            lines_of(write("bad.txt", parts[0] + bytes(bad) + parts[2]))
    for noise in (parts[1][:-4], b"noise and more noise"):
        with pytest.raises(InputError, match=f"the {compression} data is damaged or cut short"):
            lines_of(write("noise.txt", parts[0] + noise))


def test_zeros_behind_the_parts_of_an_xz_file_are_no_damage(write: Write) -> None:
    parts = [lzma.compress(f"{number}\n".encode()) for number in range(2)]
    for zeros in (bytes(4), bytes(200_000)):
        assert lines_of(write("a.xz", parts[0] + zeros + parts[1] + zeros)) == ["0\n", "1\n"]
    with pytest.raises(InputError, match="the bzip2 data is damaged"):
        lines_of(write("a.bz2", bz2.compress(b"text") + bytes(4)))


def test_damaged_and_empty_compressed_files_are_named_as_such(write: Write) -> None:
    with pytest.raises(InputError, match="damaged"):
        lines_of(write("a.gz", gzip.compress(b"text")[:12] + b"noise and more noise"))
    with pytest.raises(InputError, match="the file is empty"):
        lines_of(write("b.gz", gzip.compress(b"")))


def test_bytes_that_are_not_utf_8_name_line_byte_and_remedy(write: Write) -> None:
    path = write("a.txt", b"fine\ncaf\xe9\n")
    with pytest.raises(InputError) as caught:
        lines_of(path)
    assert str(caught.value).startswith(f"{path}:2: the bytes are not UTF-8: 0xe9 at byte 4")
    assert "--encoding windows-1252" in str(caught.value)
    assert lines_of(path, encoding="latin-1")[1] == "café\n"


def test_utf_16_without_a_mark_or_cut_in_half_is_explained(write: Write) -> None:
    with pytest.raises(InputError, match="--encoding utf-16-le"):
        lines_of(write("a.txt", "some words".encode("utf-16-le")))
    assert lines_of(write("b.txt", "some words".encode("utf-16-le")), encoding="utf-16-le") == ["some words"]
    with pytest.raises(InputError, match="the bytes are not UTF-16"):
        lines_of(write("c.txt", "some words".encode("utf-16")[:-1]))


@pytest.mark.parametrize("name", ["utf-9", "hex", "rot13", "undefined"])
def test_what_is_no_encoding_of_text_is_refused(name: str, write: Write) -> None:
    with pytest.raises(InputError, match=f"no encoding of text called '{name}'"):
        lines_of(write("a.txt", "text"), encoding=name)


def test_an_unknown_encoding_is_refused_also_where_a_mark_tells_another(write: Write) -> None:
    with pytest.raises(InputError, match="no encoding of text called 'utf-9'"):
        lines_of(write("a.txt", TEXT.encode("utf-8-sig")), encoding="utf-9")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_is_believed_whatever_encoding_is_named(encoding: str, write: Write) -> None:
    assert "".join(lines_of(write("a.txt", TEXT.encode(encoding)), encoding="latin-1")) == TEXT


def test_bytes_that_the_named_encoding_cannot_be_are_refused(write: Write) -> None:
    for name, content in (("utf-16", b"abc"), ("ascii", "é".encode()), ("idna", b"xn--\xff")):
        with pytest.raises(InputError, match=f"not {name.upper()}"):
            lines_of(write("a.txt", content), encoding=name)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_line_ends_of_old_macintoshes_are_line_ends(encoding: str, write: Write) -> None:
    assert lines_of(write("a.txt", "one\rtwo\r".encode(encoding))) == ["one\n", "two\n"]


def test_a_line_that_cannot_be_decoded_is_noted_and_left_out(write: Write) -> None:
    errors: list[InputError] = []
    with Source(write("a.txt", b"one\ncaf\xe9\nthree\n")) as source:
        assert list(source.lines(errors.append)) == ["one\n", "three\n"]
    assert [(error.kind, error.line) for error in errors] == [("not-utf-8", 2)]


def test_spreadsheets_and_archives_are_named_as_such(write: Write) -> None:
    with pytest.raises(InputError, match=r"(?s)zip archive or a spreadsheet.*CSV"):
        lines_of(write("a.csv", b"PK\x03\x04\x14\x00"))


def test_a_file_that_cannot_be_read_is_an_input_error() -> None:
    path = Path("/proc/self/mem")
    if not path.exists():
        pytest.skip("this system has no such file")
    with pytest.raises(InputError, match="the file cannot be read"):
        lines_of(path)


def test_a_line_over_the_limit_is_refused_and_one_at_the_limit_is_not(write: Write) -> None:
    for encoding in ("utf-8", "utf-16"):
        exact = write("a.txt", ("x\n" + "y" * 100 + "\r\n").encode(encoding))
        assert len(lines_of(exact, limit=100)) == 2
        with pytest.raises(InputError, match=r"over\.txt:2: the line is longer than 100 characters"):
            lines_of(write("over.txt", ("x\n" + "y" * 101 + "\n").encode(encoding)), limit=100)


def test_the_stated_limit_holds_without_reading_the_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * (LINE_LIMIT + 1))
    with pytest.raises(InputError, match="longer than 16,777,216 characters"):
        lines_of(path)


def test_missing_files_directories_and_unreadable_ones_are_told_apart(tmp_path: Path, write: Write) -> None:
    write("train.jsonl", "{}")
    with pytest.raises(InputError, match=r"(?s)no such file.*Did you mean train\.jsonl"):
        Source(tmp_path / "trian.jsonl")
    with pytest.raises(InputError, match="Nor is there a directory"):
        Source(tmp_path / "no" / "such" / "file")
    with pytest.raises(InputError, match=r"(?s)a directory, not a file.*train\.jsonl"):
        Source(tmp_path)
    with pytest.raises(InputError, match="embedded null byte"):
        Source("a\0b")


def test_a_pipe_can_be_read_however_slowly_it_comes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = gzip.compress(TEXT.encode())

    def write_slowly() -> None:
        with pipe.open("wb", buffering=0) as out:
            for byte in (content[:1], content[1:20], content[20:]):
                out.write(byte)
                time.sleep(0.05)

    writer = threading.Thread(target=write_slowly)
    writer.start()
    assert "".join(lines_of(pipe)) == TEXT
    writer.join()


@pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])
def test_what_is_written_is_read_back(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / "below" / f"a.txt{suffix}"
    write_text(path, ["one\n", "two é\n"])
    assert lines_of(path) == ["one\n", "two é\n"]


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted() -> Iterator[str]:
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_text(path, interrupted())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        with pytest.raises(InputError, match="cannot be written"):
            write_text(path, ["text"])


def test_a_missing_library_names_the_extra_that_brings_it() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'hitin\[fast\]'"):
        need("a_library_that_is_not_there", extra="fast", purpose="This")


def test_a_library_that_is_broken_is_not_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_broken_library.py").write_text("import a_library_below\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match=r"cannot be imported \(No module named 'a_library_below'\)"):
        need("a_broken_library", extra="fast", purpose="This")


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_the_same_text_becomes_the_same_bytes_whenever_it_is_compressed(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are compared by their checksums."""
    write_text(tmp_path / f"a{suffix}", ["text\n" * 100])
    later = time.time() + 1000
    monkeypatch.setattr(time, "time", lambda: later)
    write_text(tmp_path / f"b{suffix}", ["text\n" * 100])
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()
