"""XML from elsewhere, read with care: no definitions that grow, nothing fetched, and errors that name the line.

Python's expat reads it. A document that defines entities is refused, so that none can make a book of a line; what a
DOCTYPE points to is never opened; and a file of more than 16 MiB is not read at all. Named characters of HTML, which
some archives use without defining them, are read as what they stand for.
"""

import re
import tarfile
from collections.abc import Callable, Iterator
from html.entities import name2codepoint
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from hitin import compression
from hitin.errors import InputError

LARGEST = 16 * 1024 * 1024
"""Bytes of a file: the longest article of a newspaper has a hundredth of it."""

_NAMED = re.compile(rb"&([A-Za-z][A-Za-z0-9]*);")
_CHUNK = 1024 * 1024
_OWN = {b"amp", b"lt", b"gt", b"quot", b"apos"}


def read_xml(data: bytes, file: str) -> Element:
    """The root of a document, its tags without prefixes. `file` is what it is called in errors."""
    if len(data) > LARGEST:
        raise too_large(file)
    builder = TreeBuilder()
    parser: Any = expat.ParserCreate()
    parser.buffer_text = True
    parser.EntityDeclHandler = lambda *_: _refuse_definition(file, parser.CurrentLineNumber)
    parser.StartElementHandler = lambda tag, attributes: builder.start(_plain(tag), attributes)
    parser.EndElementHandler = lambda tag: builder.end(_plain(tag))
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(_NAMED.sub(_as_number, data), True)
    except expat.ExpatError as error:
        said = expat.ErrorString(error.code)
        raise bad_xml(f"the XML is damaged or cut short ({said})", file, error.lineno) from error
    except (LookupError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise bad_xml("the XML is in an encoding that is not known", file, 1) from error
    return builder.close()


def loose_file(path: Path) -> bytes:
    """The bytes of a file, if it is not far too long."""
    if path.stat().st_size > LARGEST:
        raise too_large(str(path))
    return path.read_bytes()


def packed_files(archive: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes, str]]:
    """The files of a tar archive whose names are wanted, as they come: the name, the bytes, and what it is called."""
    with _unpacked(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as packed:
        for member in packed:
            name, place = member.name.rpartition("/")[2], f"{archive}/{member.name}"
            if member.isfile() and wanted(name):
                if member.size > LARGEST:
                    raise too_large(place)
                file = packed.extractfile(member)
                assert file is not None  # being a plain file
                yield name, file.read(), place
            packed.members = []  # type: ignore[attr-defined]  # kept otherwise, and there may be very many
        while stream.read(_CHUNK):  # to the end, where the checksum stands
            pass


def _unpacked(archive: Path) -> IO[bytes]:
    """The bytes of an archive, unpacked by a library that looks at checksums: of a .gz, `tarfile` does not."""
    with archive.open("rb") as file:
        packing = compression.recognise(file.read(8))
    return compression.open_compressed(packing, archive, "rb") if packing else archive.open("rb")


def archive_errors() -> tuple[type[Exception], ...]:
    """What is raised for an archive that is damaged or cut short; an `InputError` would be taken for one of them."""
    return (tarfile.TarError, RuntimeError, *compression.reading_errors())


def text_of(element: Element) -> str:
    """All text in it, with one blank between words."""
    return " ".join("".join(element.itertext()).split())


def bad_xml(problem: str, file: str, line: int | None = None) -> InputError:
    return InputError(problem, kind="bad-xml", file=file, line=line, remedy="Copy or download it again.")


def too_large(file: str) -> InputError:
    return bad_xml(f"this document has more than {LARGEST // 1024**2} MiB", file)


def _refuse_definition(file: str, line: int) -> None:
    raise InputError(
        "the document defines entities of its own, which are not read",
        kind="bad-xml",
        file=file,
        line=line,
        remedy="Those of the archive define none: is this one of them?",
    )


def _plain(tag: str) -> str:
    return tag.rpartition(":")[2]


def _as_number(found: re.Match[bytes]) -> bytes:
    """`&eacute;` as `&#233;`; a name that HTML does not have stays, and is an error."""
    number = name2codepoint.get(found[1].decode())
    return found[0] if number is None or found[1] in _OWN else b"&#%d;" % number
