"""Word vectors: every format comes back as it was written, and damage is named."""

import bz2
import gzip
import lzma
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hitin.compression import zstd
from hitin.encoders.vectors import Coverage, WordVectors, coverage, read_vectors
from hitin.errors import InputError, InputWarning
from tests.conftest import SHARED, Write

Floats = NDArray[np.float32]
Content = Callable[[list[str], Floats], bytes]

WORDS = ["the", "2000", ",", "é", "word"]
VECTORS = np.random.default_rng(0).normal(size=(len(WORDS), 6)).astype(np.float32)
COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zstd().compress}


def glove(words: list[str], vectors: Floats) -> bytes:
    rows = zip(words, vectors.tolist(), strict=True)
    return "".join(f"{word} {' '.join(map(repr, row))}\n" for word, row in rows).encode()


def word2vec_text(words: list[str], vectors: Floats) -> bytes:
    lines = glove(words, vectors).replace(b"\n", b" \n")  # the first program ends its lines with a blank
    return f"{len(words)} {vectors.shape[1]}\n".encode() + lines


def word2vec_binary(words: list[str], vectors: Floats, between: bytes = b"\n") -> bytes:
    rows = zip(words, vectors.astype("<f4"), strict=True)
    records = b"".join(word.encode() + b" " + row.tobytes() + between for word, row in rows)
    return f"{len(words)} {vectors.shape[1]}\n".encode() + records


def word2vec_binary_of_gensim(words: list[str], vectors: Floats) -> bytes:
    return word2vec_binary(words, vectors, between=b"")


FORMATS: list[Content] = [glove, word2vec_text, word2vec_binary, word2vec_binary_of_gensim]


def archive(path: Path, words: list[str], q: NDArray[Any], scale: object) -> Path:
    """The way the shared vectors are stored."""
    np.savez_compressed(path, q=q, scale=np.asarray(scale), words=np.frombuffer("\n".join(words).encode(), np.uint8))
    return path


def problem_of(path: Path, wanted: set[str] | None = None) -> InputError:
    """The error of a file that cannot be read; it names the file and what to do."""
    with pytest.raises(InputError) as caught:
        read_vectors(path, wanted)
    assert caught.value.file == str(path)
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize("suffix", COMPRESS)
@pytest.mark.parametrize("content", FORMATS)
def test_every_format_comes_back_as_it_was_written(content: Content, suffix: str, write: Write) -> None:
    vectors = read_vectors(write(f"vectors{suffix}", COMPRESS[suffix](content(WORDS, VECTORS))))
    assert vectors.words == tuple(WORDS)
    assert vectors.matrix.dtype == np.float32
    np.testing.assert_array_equal(vectors.matrix, VECTORS)
    assert (len(vectors), vectors.width) == VECTORS.shape
    assert "é" in vectors
    assert "e" not in vectors
    assert repr(vectors) == "WordVectors(5 words, 6 numbers each)"


@pytest.mark.parametrize("content", FORMATS)
@given(data=st.data())
def test_any_words_and_numbers_survive(
    content: Content, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    plain = st.characters(exclude_categories=["Cs", "Zs", "Zl", "Zp", "Cc"])
    words = data.draw(st.lists(st.text(plain, min_size=1, max_size=5), min_size=1, max_size=5))
    number = st.floats(width=32, allow_nan=False, allow_infinity=False)
    rows = data.draw(st.lists(st.lists(number, min_size=3, max_size=3), min_size=len(words), max_size=len(words)))
    suffix = ".bin" if "binary" in content.__name__ else ".txt"  # of few numbers the bytes can all be letters
    path = tmp_path_factory.getbasetemp() / f"any{suffix}"
    path.write_bytes(content(words, np.array(rows, dtype=np.float32)))
    wanted = data.draw(st.none() | st.sets(st.sampled_from(words)))
    first = dict(reversed(list(zip(words, rows, strict=True))))
    expected = [word for word in dict.fromkeys(words) if wanted is None or word in wanted]
    vectors = read_vectors(path, wanted)
    assert vectors.words == tuple(expected)
    np.testing.assert_array_equal(vectors.matrix, np.array([first[word] for word in expected]).reshape(-1, 3))


@pytest.mark.parametrize("content", FORMATS)
def test_only_wanted_words_are_kept(content: Content, write: Write) -> None:
    path = write("vectors", content(WORDS, VECTORS))
    vectors = read_vectors(path, {"word": 1, "the": 2, "none": 3})
    assert vectors.words == ("the", "word")
    np.testing.assert_array_equal(vectors.matrix, VECTORS[[0, 4]])
    nothing = read_vectors(path, [])
    assert (len(nothing), nothing.width) == (0, 6)


@pytest.mark.parametrize("content", FORMATS)
def test_a_file_without_any_wanted_word_is_refused_with_its_first_words(
    content: Content, tmp_path: Path, write: Write
) -> None:
    words = ["The", "\u2581word", "##ing", "é"]
    told = "no word of the vocabulary has a vector in the file, whose first words are The, \u2581word, ##ing"
    for path in (
        write("vectors", content(words, VECTORS[:4])),
        write("vectors.gz", gzip.compress(content(words, VECTORS[:4]))),
        archive(tmp_path / "v.npz", words, VECTORS[:4], 1.0),
    ):
        assert problem_of(path, {"the", "word", "[UNK]"}).message == told


@pytest.mark.parametrize("content", FORMATS)
def test_of_a_word_given_twice_the_first_vector_counts(content: Content, write: Write) -> None:
    vectors = read_vectors(write("vectors", content(["a", "b", "a"], VECTORS[:3])))
    assert vectors.words == ("a", "b")
    np.testing.assert_array_equal(vectors.matrix, VECTORS[:2])


def test_rows_for_a_vocabulary_are_zero_where_there_is_no_vector() -> None:
    vectors = WordVectors(("a", "b"), VECTORS[:2])
    matrix, found = vectors.matrix_for(["b", "c", "a", "b"])
    assert found.tolist() == [True, False, True, True]
    np.testing.assert_array_equal(matrix, np.stack([VECTORS[1], np.zeros(6), VECTORS[0], VECTORS[1]]))
    matrix, found = vectors.matrix_for([])
    assert (matrix.shape, found.shape) == ((0, 6), (0,))


def test_words_with_blanks_are_split_from_the_right(write: Write) -> None:
    path = write("glove.txt", ". . . 0.5 1\nat name@domain.com 2 3\n\n\xa0 4 5\nat 6 7\r\n")
    vectors = read_vectors(path)
    assert vectors.words == (". . .", "at name@domain.com", "\xa0", "at")
    assert vectors.matrix.tolist() == [[0.5, 1], [2, 3], [4, 5], [6, 7]]
    assert read_vectors(path, {"at", ". . ."}).words == (". . .", "at")


def test_text_is_text_whatever_its_name_and_binary_whatever_it_holds(write: Write) -> None:
    text = read_vectors(write("text.bin", "2 2\n\x01 0 1\nb 2 3\n"))
    assert text.words == ("\x01", "b")
    zeros = np.zeros((3, 300), dtype=np.float32)  # mostly zero: not UTF-16 for all that
    assert read_vectors(write("zeros.txt", word2vec_binary(["a", "b", "c"], zeros))).words == ("a", "b", "c")
    assert read_vectors(write("wide.txt", glove(WORDS, VECTORS).decode().encode("utf-16"))).words == tuple(WORDS)


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("a 1 2\nb 1 2\nc 1\n", 3, "should be followed by 2 numbers and is by 1"),
        ("a 1 2\nb 1 2 3\n", 2, "should be followed by 2 numbers and is by 3"),
        ("2 2\na 1 2\nb\n", 3, "should be followed by 2 numbers and is by 0"),
        ("a 1 2\nb 1 x\n", 2, "'x' is not a number"),
        ("a 1 2\nb nan 2\n", 2, "'nan' is not a number"),
        ("a 1 2\nb 1 1e99\n", 2, "'1e99' is not a number that a vector can hold"),
        ("5 0\n", 1, "vectors have no numbers"),
        ("some words without numbers\n", 1, "no word vectors"),
        ("word\t1\t2\n", 1, "no word vectors"),
        ("\n\n", 1, "no word vectors"),
        ("0 5\n", None, "no vectors in the file"),
        ("", None, "empty"),
    ],
)
def test_damaged_text_names_line_and_remedy(content: str, line: int | None, message: str, write: Write) -> None:
    problem = problem_of(write("vectors.txt", content))
    assert message in problem.message
    assert problem.line == line


def test_lines_that_nobody_wants_are_not_looked_at(write: Write) -> None:
    path = write("vectors.txt", "a 1 2\nb 1 x\nc 3 4\n")
    assert read_vectors(path, {"a", "c"}).matrix.tolist() == [[1, 2], [3, 4]]
    assert "'x'" in problem_of(path, {"b"}).message


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_binary_file_that_is_cut_short_is_named_as_such(suffix: str, write: Write) -> None:
    whole = word2vec_binary(WORDS, VECTORS)
    for size in range(len(whole) - 2, len("5 6\n") + 8, -3):  # the last byte is a line end, which may be missing
        problem = problem_of(write(f"v.bin{suffix}", COMPRESS[suffix](whole[:size])))
        assert "of 5" in problem.message


def test_damaged_binary_files_are_named_as_such(write: Write) -> None:
    assert "at word 1 of 2" in problem_of(write("a.bin", b"2 2\n" + b"\x00" * 3_000_000)).message
    words = [f"word{number}" for number in range(20_000)]
    long = gzip.compress(word2vec_binary(words, np.resize(VECTORS, (20_000, 6))))
    assert "gzip data is damaged" in problem_of(write("b.gz", long[:-5000])).message
    infinite = np.where(VECTORS > 1, np.inf, VECTORS).astype(np.float32)
    row = int(np.isinf(infinite).any(axis=1).argmax())
    problem = problem_of(write("c.bin", word2vec_binary(WORDS, infinite)))
    assert f"word {row + 1}, '{WORDS[row]}'" in problem.message
    assert ".vec" in str(problem_of(write("fasttext.bin", b"\xba\x16\x4f\x2f\x0c\x00\x00\x00")).remedy)


def test_words_that_are_not_utf_8_are_left_out_with_a_warning(write: Write) -> None:
    for content in (b"a 1 2\ncaf\xe9 3 4\nb 5 6\n", b"2 1\ncaf\xe9 \x00\x00\x00\x00\nb \x00\x00\x00\x00\n"):
        with pytest.warns(InputWarning, match="not UTF-8 were left out: 1"):
            assert "b" in read_vectors(write("vectors", content))


def test_fewer_words_than_the_header_promises_are_a_warning(write: Write) -> None:
    with pytest.warns(InputWarning, match="promises 998 words more"):
        assert read_vectors(write("vectors.vec", "1000 2\na 1 2\nb 3 4\n")).words == ("a", "b")


def test_an_archive_is_its_numbers_times_their_scale(tmp_path: Path) -> None:
    q = np.array([[-127, 0], [64, 127], [1, 2]], dtype=np.int8)
    for scale in (np.array([[0.5], [0.25], [2]]), np.array(0.5), np.array([[0.5, 0.25]])):
        vectors = read_vectors(archive(tmp_path / "v.npz", ["a", "b", "a"], q, scale))
        np.testing.assert_array_equal(vectors.matrix, (q * scale)[:2])
        assert vectors.words == ("a", "b")
    assert read_vectors(tmp_path / "v.npz", {"b", "c"}).words == ("b",)


def test_archives_that_are_damaged_or_hold_other_things_are_named_as_such(tmp_path: Path, write: Write) -> None:
    path = archive(tmp_path / "v.npz", WORDS, VECTORS, 1.0)
    whole = path.read_bytes()
    assert "damaged" in problem_of(write("cut.npz", whole[: len(whole) // 2])).message
    assert "damaged" in problem_of(write("text.npz", "a 1 2\n")).message
    assert "5 words, but `q` has the shape (4, 6)" in problem_of(archive(path, WORDS, VECTORS[:4], 1)).message
    assert "cannot be multiplied" in problem_of(archive(path, WORDS, VECTORS, [1, 2])).message
    assert "not a number" in problem_of(archive(path, WORDS, VECTORS, np.inf)).message
    np.savez(path, vectors=VECTORS)
    assert "there are: vectors" in problem_of(path).message
    np.savez(path, q=np.array([{}]), scale=VECTORS, words=VECTORS)  # objects, which would have to be unpickled
    assert "allow_pickle=False" in problem_of(path).message


def test_files_that_are_not_there_are_an_input_error(tmp_path: Path) -> None:
    for name in ("vectors.txt", "vectors.npz"):
        assert problem_of(tmp_path / name).kind == "missing-file"


@given(content=st.sampled_from(FORMATS), data=st.data())
def test_noise_in_a_file_is_read_or_refused_but_never_a_crash(
    content: Content, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    noisy = bytearray(content(WORDS, VECTORS))
    for at in data.draw(st.lists(st.integers(0, len(noisy) - 1), min_size=1, max_size=6)):
        noisy[at] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / f"noisy-{content.__name__}"
    path.write_bytes(noisy)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            assert np.isfinite(read_vectors(path).matrix).all()
    except InputError as error:
        assert error.remedy


def test_coverage_counts_words_and_running_words() -> None:
    found = coverage({"a": 97, "b": 2, "c": 1}, WordVectors(("a", "b", "d"), VECTORS[:3]))
    assert found == Coverage(words=3, found=2, tokens=100, tokens_found=99)
    assert str(found) == "vectors for 2 of 3 words (66.7 %), 99.0 % of running words"
    text = "vectors for 45,961 of 50,000 words (91.9 %), 98.7 % of running words"
    assert str(Coverage(50_000, 45_961, 1000, 987)) == text
    assert str(coverage({}, ())) == "vectors for 0 of 0 words (0.0 %), 0.0 % of running words"


def test_the_shared_vectors_know_that_words_are_alike() -> None:
    path = SHARED / "pretrained" / "glove100-int8-100k.npz"
    if not path.is_file():
        pytest.skip("the shared vectors are not on this machine")
    vectors = read_vectors(path)
    assert (len(vectors), vectors.width) == (100_000, 100)
    matrix, found = vectors.matrix_for(["king", "queen", "lettuce", "i"])
    assert found.tolist() == [True, True, True, False]
    king, queen, lettuce = matrix[:3] / np.linalg.norm(matrix[:3], axis=1, keepdims=True)
    assert king @ queen > 0.7 > 0.3 > king @ lettuce
    few = read_vectors(path, ["lettuce", "king"])
    np.testing.assert_array_equal(few.matrix_for(["king", "lettuce"])[0], matrix[[0, 2]])
