"""A model as a folder: weights, settings, taxonomy, vocabulary, decisions, how it was trained, a card for people.
Nothing is pickled.

`model.json` is written last and names every other file with its checksum, so a folder without it is unfinished, and
one that was damaged or mixed with another is recognised.
"""

import json
import shutil
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

from hitin import __version__
from hitin.damage import AGAIN, damaged, reason_of, telling
from hitin.decisions import Decisions
from hitin.errors import InputError, shown
from hitin.model import Model
from hitin.model_kinds import KINDS, kind_of
from hitin.settings import Run
from hitin.taxonomy import Taxonomy
from hitin.tensor_files import load_tensors, save_tensors
from hitin.training.progress import History
from hitin.trust import check_finite, check_inside, check_text, unique_json
from hitin.validation_scores import ValidationScores, save_validation
from hitin.writing import check_writable, remove_leftovers, unwritable, write_text

FORMAT = 1
MANIFEST = "model.json"
WEIGHTS = "model.safetensors"
RUN = "run.toml"
TAXONOMY = "taxonomy.json"
DECISIONS = "decisions.json"
HISTORY = "history.json"
CARD = "README.md"
TRAINING = "training"
BASELINES = "baselines"
BASELINES_OF = "of.json"
"""In the folder of baselines: which model they were trained for."""
EXPORT = "export.json"
"""What an exported model (`hitin.export`) has in place of `MANIFEST`. One that lies in the folder of a model is not
touched when another is saved there; it says which model it was made from, and is refused for any other."""

_FIXED = (RUN, TAXONOMY, WEIGHTS)
"""What every model has and no one may change. Each kind of model has text files of its own."""
_SOME = (HISTORY,)
"""The same, of models whose training is known."""
_OF_KINDS = tuple(name for kind in KINDS for name in (*kind.FILES, *kind.SOME_FILES))
FILES = (*_FIXED, *_SOME, *_OF_KINDS)
"""What a model can have that no one may change."""
_ANOTHER = "Name the folder that hitin train wrote."


def save_model(
    model: Model,
    folder: Path,
    *,
    decisions: Decisions,
    history: History | None,
    card: str,
    validation: ValidationScores | None = None,
) -> None:
    """Write the folder; until the last file is there it counts as unfinished."""
    fixed = {RUN: model.run.to_toml()} | model.texts()
    if history is not None:
        fixed[HISTORY] = history.to_json()
    check_writable(folder / MANIFEST)
    try:
        for name in (MANIFEST, *_SOME, *_OF_KINDS):  # of an earlier model
            (folder / name).unlink(missing_ok=True)
        remove_leftovers(folder)
    except OSError as error:
        raise unwritable(folder / MANIFEST, error) from error
    save_tensors(folder / WEIGHTS, model.tensors())
    model.taxonomy.write(folder / TAXONOMY)
    for name, text in (fixed | {DECISIONS: decisions.to_json(), CARD: card}).items():
        write_text(folder / name, [text])
    checksums = {name: checksum_of(folder / name) for name in sorted({*_FIXED, *fixed})}
    save_validation(folder, validation, _fingerprint(checksums))
    manifest = {"format": FORMAT, "hitin": __version__, "files": checksums}
    write_text(folder / MANIFEST, [json.dumps(manifest, indent=2) + "\n"])
    if not has_own_baselines(folder):
        remove_tree(folder / BASELINES)  # of an earlier model


def load_model(folder: Path) -> tuple[Model, Decisions, History | None]:
    """The model of a folder and how it was trained, or an error that says what is wrong with it."""
    files = _manifest(folder)
    check_files(folder, files, {WEIGHTS})
    tensors, _ = load_tensors(folder / WEIGHTS)
    with telling(folder / RUN):
        run = Run.of(preset=folder / RUN)
    with telling(folder / TAXONOMY):
        taxonomy = Taxonomy.read(folder / TAXONOMY)
    kind = kind_of(run)
    own = _own_files(folder, kind, files)
    with telling(folder / WEIGHTS):
        check_finite(tensors)
        model = kind.restored(taxonomy, run, tensors, own)
    return model, read_decisions(folder / DECISIONS, taxonomy), _history(folder) if HISTORY in files else None


def read_history(folder: Path) -> History | None:
    """How the model of a folder was trained, where that is known. Its other files are not looked at."""
    files = {name: checksum for name, checksum in _manifest(folder).items() if name == HISTORY}
    check_files(folder, files, ())
    return _history(folder) if files else None


def _history(folder: Path) -> History:
    with telling(folder / HISTORY):
        return History.from_json((folder / HISTORY).read_text(encoding="utf-8"))


def fingerprint_of(folder: Path) -> str:
    """Equal for folders of the same weights and the same taxonomy."""
    return _fingerprint(_manifest(folder))


def _fingerprint(files: Mapping[str, str]) -> str:
    return sha256(f"{files[WEIGHTS]} {files[TAXONOMY]}".encode()).hexdigest()


def has_own_baselines(folder: Path) -> bool:
    """Whether the baselines that are in a model's folder were trained for this model."""
    try:
        found = json.loads((folder / BASELINES / BASELINES_OF).read_text(encoding="utf-8"))
        return bool(found["model"] == fingerprint_of(folder))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def own_baselines(folder: Path) -> None:
    """Note that the baselines in a model's folder were trained for this model."""
    write_text(folder / BASELINES / BASELINES_OF, [json.dumps({"model": fingerprint_of(folder)}) + "\n"])


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that is in it, where there is one."""
    try:
        if folder.is_dir():
            shutil.rmtree(folder)
    except OSError as error:
        raise unwritable(folder, error) from error


def is_model(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def _manifest(folder: Path) -> dict[str, str]:
    """The files of the model that no one may change, with their checksums."""
    path = folder / MANIFEST
    if not path.is_file():
        raise _no_model(folder)
    with list_told(path):
        manifest: dict[str, Any] = read_list(path)
        number, files = manifest["format"], dict(manifest["files"])
    check_format(path, number, FORMAT, "model", f"{shown(manifest.get('hitin'))}: install that, or train again.")
    if not set(_FIXED) <= set(files) <= set(FILES):
        raise _not_of_a_model(path)
    return files


@contextmanager
def list_told(path: Path, remedy: str = AGAIN) -> Iterator[None]:
    """What goes wrong while the list of a folder's files is read is told as damage of it."""
    try:
        yield
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise damaged(path, f"the list of files is damaged ({reason_of(error)})", remedy) from error


def read_list(path: Path, remedy: str = AGAIN) -> Any:
    """The JSON of the list of a folder's files."""
    check_inside(path, remedy)
    check_text(path, remedy)
    return unique_json(path.read_text(encoding="utf-8"))


def check_format(path: Path, found: object, known: int, what: str, written_by: str) -> None:
    """Refuse the list of files of another hitin; `written_by` says which, and what to do."""
    if found != known:
        raise InputError(
            f"the {what} has format {shown(found)}, this hitin reads {known}",
            kind="other-format",
            file=str(path),
            remedy=f"It was written by hitin {written_by}",
        )


def _own_files(folder: Path, kind: type[Model], files: Iterable[str]) -> dict[str, Path]:
    """The text files of this kind of model."""
    own = set(files) - {*_FIXED, *_SOME}
    if not set(kind.FILES) <= own <= {*kind.FILES, *kind.SOME_FILES}:
        raise _not_of_a_model(folder / MANIFEST)
    return {name: folder / name for name in own}


def _not_of_a_model(path: Path) -> InputError:
    return damaged(path, "the list of files is damaged: it does not name the files of a model")


def _no_model(folder: Path) -> InputError:
    """Why there is no `MANIFEST`."""
    if folder.is_file():
        problem, kind, remedy = "this is a file, not the folder of a model", "no-model", _ANOTHER
    elif not folder.is_dir():
        problem, kind, remedy = "there is no such model", "missing-file", _ANOTHER
    elif (folder / EXPORT).is_file():
        problem, kind = "this is an exported model, which only predict, evaluate and tune can use", "exported"
        remedy = "Name the folder of the model that it was made from."
    elif (folder / TRAINING).is_dir():
        problem, kind = "the training of this model is not finished", "unfinished-model"
        remedy = "Repeat the command that began it: it goes on where it stopped."
    elif (folder / WEIGHTS).is_file():
        problem, kind = "the saving of this model was not finished", "unfinished-model"
        remedy = "Save it again, or copy it whole."
    else:
        problem, kind, remedy = f"this is not a model: it has no {MANIFEST}", "no-model", _ANOTHER
    return InputError(problem, kind=kind, file=str(folder), remedy=remedy)


def check_files(folder: Path, checksums: Mapping[str, str], large: Container[str], remedy: str = AGAIN) -> None:
    """Refuse what was not saved with a model, or cannot have been; all but the `large` files are read whole."""
    for name, checksum in checksums.items():
        path = folder / name
        check_inside(path, remedy)
        if not path.is_file():
            raise damaged(path, "this file of the model is missing", remedy)
        if name not in large:
            check_text(path, remedy)
        _check_sum(path, checksum, remedy)


def _check_sum(path: Path, checksum: str, remedy: str) -> None:
    with telling(path):
        found = checksum_of(path)
    if found != checksum:
        raise damaged(path, "the file is not the one that was saved with the model", remedy)


def checksum_of(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def read_decisions(path: Path, taxonomy: Taxonomy) -> Decisions:
    """The usual ones where the file is missing: it may be changed, and models are older than it."""
    if not path.exists():
        return Decisions()
    check_inside(path)
    with telling(path):
        check_text(path)
        found = Decisions.from_json(path.read_text(encoding="utf-8"), str(path))
    try:
        found.check(taxonomy)
    except InputError as error:
        remedy = "Correct it; or delete the file, and the policy and threshold are the usual ones until hitin tune."
        raise InputError(error.message, kind="damaged-model", file=str(path), remedy=remedy) from error
    return found
