"""A taxonomy and labelled documents for training and scoring: every label is checked where file and line are known."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from hitin.console import command
from hitin.documents import Document, Keys, documents_of
from hitin.errors import InputError, counted, listed, printable
from hitin.files import STANDARD_INPUT, FileProgress, is_file, is_folder, is_there, name_of
from hitin.inputs import Documents, check_labelled
from hitin.labels import DELIMITER, LabelReader, LabelSet, unknown_label
from hitin.launching import has_launcher
from hitin.names import ROOT, SEPARATORS, escaped
from hitin.option_values import bad_option
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.builder import Homonyms
from hitin.taxonomy.reading import Format, encoding_beside


@dataclass(frozen=True)
class Reading:
    """How a taxonomy and documents are read: what the options of the command say."""

    format: Format = "auto"
    separator: str | None = None
    delimiter: str = DELIMITER
    root: str | None = ROOT
    homonyms: Homonyms = "merge"
    encoding: str | None = None
    taxonomy_encoding: str | None = None
    text_key: str | None = None
    label_key: str | None = None

    def taxonomy(self, file: str) -> tuple[Taxonomy, list[str]]:
        """The taxonomy of a file, and what a person should look at in it."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            taxonomy = Taxonomy.read(
                file,
                format=self.format,
                separator=self.separator,
                root=self.root,
                homonyms=self.homonyms,
                encoding=self.taxonomy_encoding or encoding_beside(file, self.encoding),
            )
        return taxonomy, [str(warning.message) for warning in caught]

    def labels(self, taxonomy: Taxonomy) -> LabelReader:
        separators = (self.separator, *SEPARATORS) if self.separator else SEPARATORS
        return LabelReader(taxonomy, delimiter=self.delimiter, separators=separators, root=self.root)

    @property
    def keys(self) -> Keys:
        return Keys(self.text_key, self.label_key)

    @property
    def options(self) -> list[str]:
        """What says this to another command, less what is usual."""
        usual, words = asdict(Reading()), []
        for name, value in asdict(self).items():
            if value not in (None, usual[name]):
                option = "label-delimiter" if name == "delimiter" else name.replace("_", "-")
                words += [f"--{option}", escaped(value) if name in ("separator", "delimiter") else value]
        return words


@dataclass(frozen=True)
class Data:
    """A taxonomy with its documents, and what a person should know of them."""

    taxonomy: Taxonomy
    train: Documents
    val: Documents | None
    warnings: tuple[str, ...]


def read_data(
    taxonomy_file: str,
    train_files: Sequence[str],
    val_files: Sequence[str],
    reading: Reading,
    progress: FileProgress | None = None,
) -> Data:
    """The taxonomy and all documents, every label checked."""
    if has_launcher():
        check_read_by_all((taxonomy_file, *train_files, *val_files))
    taxonomy, told = reading.taxonomy(taxonomy_file)
    labels = reading.labels(taxonomy)
    train = read_labelled(train_files, reading, labels, progress)
    val = read_labelled(val_files, reading, labels, progress) if val_files else None
    for name, documents, files in (("training", train, train_files), ("validation", val, val_files)):
        if documents is not None:
            check_labelled(len(documents.texts), any(documents.labels), name, files)
    if not any(text.strip() and ids for text, ids in zip(*train, strict=True)):
        remedy = "Is the right key or column taken for the texts?"
        problem = "no training document has both a text and a label"
        raise InputError(problem, kind="no-texts", file=name_of(train_files[0]), remedy=remedy)
    found = [*doubts(taxonomy, train, val)]
    if found:
        again = command("check", taxonomy_file, *train_files, *val_files, *reading.options)
        found.append(f"{again} shows more")
    return Data(taxonomy, train, val, (*told, *found))


def check_read_by_all(files: Iterable[str]) -> None:
    """Refuse standard input and pipes, where each of several processes reads."""
    for file in files:
        if file == STANDARD_INPUT or (is_there(file) and not is_file(file) and not is_folder(file)):
            name = "standard input" if file == STANDARD_INPUT else f"{printable(file)}, a pipe or a device,"
            raise bad_option(f"{name} is read once, and every process reads the documents", "Name a file instead.")


def read_labelled(
    files: Iterable[str], reading: Reading, labels: LabelReader, progress: FileProgress | None = None
) -> Documents:
    """All documents of the files."""
    found = Documents([], [])
    for document, label_set in labelled_documents(files, reading, labels, progress):
        found.texts.append(document.text)
        found.labels.append(label_set.ids)
    return found


def labelled_documents(
    files: Iterable[str],
    reading: Reading,
    labels: LabelReader,
    progress: FileProgress | None = None,
    remedy: str = "Add it to the taxonomy, or correct the document. hitin check lists all such labels.",
) -> Iterator[tuple[Document, LabelSet]]:
    """Stream documents with their labels; a label that the taxonomy does not have is an error with its place."""
    for document in documents_of(files, reading.keys, encoding=reading.encoding, progress=progress):
        label_set = labels.read(document.labels)
        if label_set.unknown:
            unknown = label_set.unknown[0]
            if option := labels.option_for(unknown):
                remedy = f"With {option} it is read."
            raise unknown_label(labels, unknown, file=document.file, line=document.line, remedy=remedy)
        yield document, label_set


def doubts(taxonomy: Taxonomy, train: Documents, val: Documents | None) -> Iterator[str]:
    """What a person should know of documents before they are trained on."""
    yield from _unlearnable(taxonomy, train)
    for name, documents in (("training", train), ("validation", val)):
        unlabelled = sum(not labels for labels in documents.labels) if documents else 0
        if unlabelled:
            them = "it" if unlabelled == 1 else "them"
            yield f"{_documents(unlabelled, name)} no label: every label counts as wrong for {them}"
        empty = sum(not text.strip() for text in documents.texts) if documents else 0
        if empty:
            yield f"{_documents(empty, name)} an empty text"
    distinct = set(train.texts)
    repeated = len(train.texts) - len(distinct)
    if repeated:
        yield f"{_documents(repeated, 'training')} a text that came before"
    leaked = sum(text in distinct for text in val.texts) if val else 0
    if leaked:
        yield f"{_documents(leaked, 'validation')} the text of a training document: scores on them say nothing"


def _documents(count: int, name: str) -> str:
    return counted(count, f"{name} document has", f"{name} documents have")


def _unlearnable(taxonomy: Taxonomy, train: Documents) -> Iterator[str]:
    used = {label for labels in train.labels for label in labels}
    missing = [label for number, label in enumerate(taxonomy.labels) if number not in used]
    if missing:
        share = f"{len(missing):,} of {counted(len(taxonomy), 'label')} {'has' if len(missing) == 1 else 'have'}"
        yield f"{share} no training document and cannot be learnt: {listed(missing, most=3)}"
