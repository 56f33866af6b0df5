"""ICD-10-CM: a diagnosis in words to its chapter > block > category, the data set that comes with `hitin`.

Its labels may also go further down, to the codes themselves: 46,969 labels, or 98,454 with the seventh characters.

The classification is in the public domain and inside the wheel of `simple-icd-10-cm`, so nothing is downloaded.
Training is on the descriptions of the codes, validation and test on their inclusion terms: other wordings of the
same diagnoses.
"""

import re
import warnings
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from hitin.datasets.files import DataFiles, check_folder_of_data, in_splits, show_files, write_data
from hitin.documents import Document
from hitin.extras import need
from hitin.option_values import bad_option
from hitin.taxonomy import Taxonomy

LONGEST = 6
"""Characters of a code, the dot not counted. A seventh mostly says which visit this is, not which diagnosis."""
CATEGORY = 3
"""Characters of a category."""
FULL = 7
"""Characters of the longest codes."""

_RANGE = re.compile(r"\s*\([A-Z]\w\w(-[A-Z]\w\w)?\)$")  # which descriptions of chapters and blocks end in


@dataclass(frozen=True)
class Icd10:
    """The labels, and the documents of each split. A document's id is its code; the terms of a code share it."""

    taxonomy: Taxonomy
    train: tuple[Document, ...]
    val: tuple[Document, ...]
    test: tuple[Document, ...]


def icd10(characters: int = CATEGORY) -> Icd10:
    """Labels and documents, in the order of the tabular list.

    Labels are chapters, blocks, and all codes of up to so many characters; a document has that of its code, or of the
    longest one above it. Codes of a seventh character are among the documents only where they are labels.

    A block of one category that bears its code (C50 under C50) is one label with it, under the category's name.
    Blocks that only span other blocks (C00-C96) have no code right under them and are no labels.

    Of the inclusion terms those that are also a description are left out. A term that comes again, under
    whatever code, counts once, where it stands first.
    """
    if not CATEGORY <= characters <= FULL:
        problem = f"labels are to be codes of up to {characters} characters"
        raise bad_option(problem, f"It is from {CATEGORY}, categories, to {FULL}, the longest codes.")
    cm = _package()
    codes = [code for code in dict.fromkeys(cm.get_all_codes()) if _is_diagnosis(cm, code, max(LONGEST, characters))]
    ends = {code: _shortened(cm, code, characters) for code in codes}
    known_paths = {end: _path(cm, end) for end in dict.fromkeys(ends.values())}
    paths = {code: known_paths[end] for code, end in ends.items()}
    train = tuple(Document(_words(cm.get_description(code)), paths[code], code) for code in codes)
    known = {document.text for document in train}
    terms: dict[str, Document] = {}
    for code in codes:
        for term in map(_words, cm.get_inclusion_term(code)):
            if term not in known:
                terms.setdefault(term, Document(term, paths[code], code))
    return Icd10(Taxonomy.from_paths(known_paths.values()), train, _half(terms, "val"), _half(terms, "test"))


def check_needs() -> None:
    """Whether what it needs is installed."""
    _package()


def _package() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it loads its files the old way
        return need("simple_icd_10_cm", extra="demo", purpose="ICD-10-CM")


def _is_diagnosis(cm: Any, code: str, longest: int) -> bool:
    return bool(cm.is_category_or_subcategory(code)) and _length(code) <= longest


def _length(code: str) -> int:
    return len(code.replace(".", ""))


def _shortened(cm: Any, code: str, characters: int) -> str:
    """The code, or the first above it that has no more characters."""
    while _length(code) > characters:
        code = cm.get_parent(code)
    return code


def _path(cm: Any, code: str) -> tuple[str, ...]:
    """Chapter, block, category and what is below it on the way to a code, each once."""
    return tuple(dict.fromkeys(_name(cm, each) for each in (*reversed(cm.get_ancestors(code)), code)))


def _name(cm: Any, code: str) -> str:
    """`04 Endocrine, nutritional and metabolic diseases`, `E08-E13 Diabetes mellitus`, `E13 Other specified ...`."""
    description = _words(cm.get_description(code))
    return f"{code.zfill(2)} {description if cm.is_category_or_subcategory(code) else _RANGE.sub('', description)}"


def _words(text: str) -> str:
    """Text with one blank between words: a few terms hold a tab or two blanks."""
    return " ".join(text.split())


def split_of(text: str) -> Literal["val", "test"]:
    """The split of a term, by a hash of its text alone: another term more or less moves none of the rest."""
    return "test" if blake2b(text.encode(), digest_size=1).digest()[0] % 2 else "val"


def _half(terms: dict[str, Document], split: str) -> tuple[Document, ...]:
    return tuple(document for text, document in terms.items() if split_of(text) == split)


def write_icd10(folder: str | Path, characters: int = CATEGORY) -> DataFiles:
    """Write the taxonomy and the three splits. Labels are codes of up to so many characters."""
    check_folder_of_data(folder)
    data = icd10(characters)
    return write_data(folder, data.taxonomy, in_splits(train=data.train, val=data.val, test=data.test))


def show_icd10(files: DataFiles) -> str:
    """What was written, and what to do with it, for people."""
    steps = "chapter > block > category" + " > code" * (len(files.labels) > CATEGORY)
    return show_files(f"ICD-10-CM: a diagnosis in words to its {steps}", files, ("--preset", "icd10"))
