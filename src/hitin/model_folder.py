"""A model as a folder: weights, settings, taxonomy, tokenizer, decisions, how it was trained, a card for people.
Nothing is pickled.

`model.json` is written last and names every other file with its checksum, so a folder without it is unfinished, and
one that was damaged or mixed with another is recognised.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from torch import Tensor

from hitin import __version__
from hitin.chance import own_chance
from hitin.decisions import Decisions
from hitin.encoders import encoder_config, restore_encoder
from hitin.errors import HitinError, InputError, first_line, printable, shown
from hitin.methods import METHODS
from hitin.model import Model, Network
from hitin.settings import Run
from hitin.taxonomy import Taxonomy
from hitin.training.checkpoint import AGAIN, load_tensors, remove_leftovers, save_tensors
from hitin.training.progress import History
from hitin.writing import check_writable, unwritable, write_text

FORMAT = 1
MANIFEST = "model.json"
WEIGHTS = "model.safetensors"
RUN = "run.toml"
TAXONOMY = "taxonomy.json"
TOKENIZER = "tokenizer.json"
ENCODER = "encoder.json"
DECISIONS = "decisions.json"
HISTORY = "history.json"
CARD = "README.md"
TRAINING = "training"

_FIXED = (RUN, TAXONOMY, TOKENIZER, WEIGHTS)
"""What every model has and no one may change."""
_SOME = (ENCODER, HISTORY)
"""The same, of transformers and of models whose training is known."""
_ANOTHER = "Name the folder that hitin train wrote."


def save_model(model: Model, folder: Path, *, decisions: Decisions, history: History | None, card: str) -> None:
    """Write the folder; until the last file is there it counts as unfinished."""
    fixed = {RUN: model.run.to_toml(), TOKENIZER: model.tokenizer.to_str()}
    config = encoder_config(model.network.encoder)
    if config is not None:
        fixed[ENCODER] = config
    if history is not None:
        fixed[HISTORY] = history.to_json()
    check_writable(folder / MANIFEST)
    try:
        for name in (MANIFEST, *_SOME):  # of an earlier model
            (folder / name).unlink(missing_ok=True)
        remove_leftovers(folder)
    except OSError as error:
        raise unwritable(folder / MANIFEST, error) from error
    save_tensors(folder / WEIGHTS, model.network.state_dict())
    model.taxonomy.write(folder / TAXONOMY)
    for name, text in (fixed | {DECISIONS: decisions.to_json(), CARD: card}).items():
        write_text(folder / name, [text])
    checksums = {name: _checksum(folder / name) for name in sorted({*_FIXED, *fixed})}
    manifest = {"format": FORMAT, "hitin": __version__, "files": checksums}
    write_text(folder / MANIFEST, [json.dumps(manifest, indent=2) + "\n"])


def load_model(folder: Path) -> tuple[Model, Decisions, History | None]:
    """The model of a folder and how it was trained, or an error that says what is wrong with it."""
    files = _manifest(folder)
    for name, checksum in files.items():
        _check_file(folder / name, checksum)
    tensors, _ = load_tensors(folder / WEIGHTS)
    with _telling(folder / RUN):
        run = Run.of(preset=folder / RUN)
    with _telling(folder / TAXONOMY):
        taxonomy = Taxonomy.read(folder / TAXONOMY)
    with _telling(folder / TOKENIZER):
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    config = (folder / ENCODER).read_text(encoding="utf-8") if ENCODER in files else None
    with _telling(folder / WEIGHTS):
        network = _restored(run, taxonomy, tokenizer, tensors, config)
    history = None
    if HISTORY in files:
        with _telling(folder / HISTORY):
            history = History.from_json((folder / HISTORY).read_text(encoding="utf-8"))
    return Model(network, tokenizer, taxonomy, run), _decisions(folder / DECISIONS), history


def is_model(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def _restored(
    run: Run, taxonomy: Taxonomy, tokenizer: Tokenizer, tensors: Mapping[str, Tensor], config: str | None
) -> Network:
    own = {name.removeprefix("method."): tensor for name, tensor in tensors.items() if name.startswith("method.")}
    width = tensors["encoder.embedding.weight"].shape[1] if "encoder.embedding.weight" in tensors else 0
    with own_chance():
        encoder = restore_encoder(run.encoder, tokenizer, config, width)
        method = METHODS[run.method_name].module.restored(taxonomy, encoder.width, run.method, own)
    network = Network(encoder, method)
    network.load_state_dict(dict(tensors))
    return network.eval()


def _manifest(folder: Path) -> dict[str, str]:
    """The files of the model that no one may change, with their checksums."""
    path = folder / MANIFEST
    if not path.is_file():
        raise _no_model(folder)
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        number, files = manifest["format"], dict(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(path, f"the list of files is damaged ({error})") from error
    if number != FORMAT:
        raise InputError(
            f"the model has format {shown(number)}, this hitin reads {FORMAT}",
            kind="other-format",
            file=str(path),
            remedy=f"It was written by hitin {shown(manifest.get('hitin'))}: install that, or train again.",
        )
    if set(files) - set(_SOME) != set(_FIXED):
        raise _damaged(path, "the list of files is damaged: it does not name the files of a model")
    return files


def _no_model(folder: Path) -> InputError:
    """Why there is no `MANIFEST`."""
    if not folder.is_dir():
        problem, kind, remedy = "there is no such model", "missing-file", _ANOTHER
    elif (folder / TRAINING).is_dir():
        problem, kind = "the training of this model is not finished", "unfinished-model"
        remedy = "Repeat the command that began it: it goes on where it stopped."
    elif (folder / WEIGHTS).is_file():
        problem, kind = "the saving of this model was not finished", "unfinished-model"
        remedy = "Save it again, or copy it whole."
    else:
        problem, kind, remedy = f"this is not a model: it has no {MANIFEST}", "no-model", _ANOTHER
    return InputError(problem, kind=kind, file=str(folder), remedy=remedy)


def _check_file(path: Path, checksum: str) -> None:
    if not path.is_file():
        raise _damaged(path, "this file of the model is missing")
    with _telling(path):
        found = _checksum(path)
    if found != checksum:
        raise _damaged(path, "the file is not the one that was saved with the model")


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def _decisions(path: Path) -> Decisions:
    """The usual ones where the file is missing: it may be changed, and models are older than it."""
    if not path.exists():
        return Decisions()
    with _telling(path):
        return Decisions.from_json(path.read_text(encoding="utf-8"), str(path))


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Whatever may go wrong with a file from elsewhere is said with its name."""
    try:
        yield
    except InputError as error:
        if error.file is None:
            error.file = str(path)
        if error.remedy is None:
            error.remedy = AGAIN
        raise
    except HitinError:
        raise
    except Exception as error:  # the tokenizers library raises bare ones
        raise _damaged(path, f"this file of the model cannot be used ({printable(first_line(error))})") from error


def _damaged(path: Path, problem: str) -> InputError:
    return InputError(problem, kind="damaged-model", file=str(path), remedy=AGAIN)
