"""`check`: reads a taxonomy and its documents and says what stands in the way of training."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from hitin.doctor import findings
from hitin.doctor.facts import CheckUp, split_facts, taxonomy_facts
from hitin.doctor.problems import Problems
from hitin.doctor.splits import Split
from hitin.documents import Document, Keys, documents_in, is_table, read_documents
from hitin.errors import HitinError, InputError, shown
from hitin.files import Source
from hitin.labels import DELIMITER, LabelReader
from hitin.names import ROOT, SEPARATORS
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.builder import Homonyms
from hitin.taxonomy.reading import Format, Reading, read_taxonomy

Progress = Callable[[str, int, int], None]
"""Called now and then with a file's name, the bytes read and its size."""

_SHARD = re.compile(r"[-_.]?\d+-of-\d+(?=[^/\\]*$)")  # train-00000-of-00002.parquet


def check(
    taxonomy: str | Path | Taxonomy,
    documents: object = (),
    *,
    format: Format = "auto",
    separator: str | None = None,
    delimiter: str = DELIMITER,
    root: str | None = ROOT,
    homonyms: Homonyms = "merge",
    taxonomy_encoding: str | None = None,
    encoding: str | None = None,
    text_key: str | None = None,
    label_key: str | None = None,
    rare: int = 10,
    progress: Progress | None = None,
) -> CheckUp:
    """Examine a taxonomy and documents: a file, several files, a data frame, or a mapping of names to these.

    Each file is a split, but the shards `x-00000-of-00002` of one are one split. The training split is the first
    whose name holds "train", or else the first. Documents are streamed: of each only its length and a fingerprint
    are kept. A taxonomy that cannot be read raises `InputError`; bad documents are reported.
    """
    if isinstance(taxonomy, Taxonomy):
        reading = Reading(taxonomy)
    else:
        reading = read_taxonomy(
            taxonomy, format=format, separator=separator, root=root, homonyms=homonyms, encoding=taxonomy_encoding
        )
    problems = Problems()
    separators = (separator, *SEPARATORS) if separator else SEPARATORS
    labels = LabelReader(reading.taxonomy, delimiter=delimiter, separators=separators, root=root)
    keys = Keys(text_key, label_key)
    splits: dict[str, Split] = {}
    findings.of_taxonomy(reading, problems)
    for name, file, data in _named(documents):
        split = splits.setdefault(name, Split(name, labels, problems))
        try:
            _read(split, file, data, keys, encoding, problems, progress)
        except HitinError as error:
            problems.add_error(error, file)
    facts = [split_facts(split, reading.taxonomy) for split in splits.values()]
    findings.of_labels(reading, list(splits.values()), labels, problems, rare)
    findings.of_repetitions(list(splits.values()), facts, problems)
    return CheckUp(taxonomy_facts(reading), facts, list(problems))


def _named(documents: object) -> Iterator[tuple[str, str, object]]:
    """The split, the file and the data of each set of documents. The same file twice is two splits."""
    if isinstance(documents, Mapping):
        yield from ((str(name), str(name), data) for name, data in documents.items())
        return
    if isinstance(documents, str | Path) or is_table(documents):
        documents = [documents]
    if not isinstance(documents, Iterable):
        raise InputError(f"files of documents are expected, not {shown(documents)}", kind="bad-documents")
    several = list(documents)
    if several and isinstance(several[0], Mapping | tuple):  # documents themselves
        several = [several]
    times: Counter[str] = Counter()
    for number, data in enumerate(several, start=1):
        if not isinstance(data, str | Path):
            yield f"documents {number}", f"documents {number}", data
            continue
        file = str(data)
        times[file] += 1
        again = f" (time {times[file]})" if times[file] > 1 else ""
        yield (_SHARD.sub("", file) or file) + again, file, data


def _read(
    split: Split,
    file: str,
    data: object,
    keys: Keys,
    encoding: str | None,
    problems: Problems,
    progress: Progress | None,
) -> None:
    on_error = problems.add_error
    if not isinstance(data, str | Path):
        found = read_documents(data, text_key=keys.text, label_key=keys.label, name=file, on_error=on_error)
        split.read(found, file)
        return
    with Source(data, encoding=encoding) as source:
        documents = documents_in(source, keys, on_error=on_error)
        split.read(_followed(documents, source, progress) if progress else documents, source.name)


def _followed(documents: Iterator[Document], source: Source, progress: Progress) -> Iterator[Document]:
    for number, document in enumerate(documents):
        if number % 2048 == 0:
            progress(source.name, source.position, source.size)
        yield document
