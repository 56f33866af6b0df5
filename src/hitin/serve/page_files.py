"""The files of the page, read once."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

INDEX = "index.html"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class PageFile:
    """What is sent of a file."""

    content: bytes
    type: str
    tag: str
    """Equal for equal contents (`ETag`)."""


def read_page() -> Mapping[str, PageFile]:
    """Each file that lies in the folder of the page, by its name; no other can be asked for."""
    folder = files("hitin.serve") / "page"
    found = {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()} if folder.is_dir() else {}
    return {
        name: PageFile(content, _TYPES[suffix], f'"{sha256(content).hexdigest()[:32]}"')
        for name, content in sorted(found.items())
        if (suffix := "." + name.rpartition(".")[2]) in _TYPES
    }
