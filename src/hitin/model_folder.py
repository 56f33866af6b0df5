"""A model as a folder: weights, settings, taxonomy, tokenizer, decisions, a card for people. Nothing is pickled.

`model.json` is written last and names every other file with its checksum, so a folder without it is unfinished, and
one that was damaged or mixed with another is recognised.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from torch import Tensor

from hitin import __version__
from hitin.checkpoint import load_tensors, save_tensors
from hitin.decisions import Decisions
from hitin.encoders import encoder_config, restore_encoder
from hitin.errors import InputError
from hitin.methods import METHODS
from hitin.model import Model, Network
from hitin.settings import Run
from hitin.taxonomy import Taxonomy
from hitin.writing import write_text

FORMAT = 1
MANIFEST = "model.json"
WEIGHTS = "model.safetensors"
RUN = "run.toml"
TAXONOMY = "taxonomy.json"
TOKENIZER = "tokenizer.json"
ENCODER = "encoder.json"
DECISIONS = "decisions.json"
CARD = "README.md"
TRAINING = "training"

_FREE = (CARD, DECISIONS)  # what may be changed afterwards


def save_model(model: Model, folder: Path, *, decisions: Decisions, card: str) -> None:
    """Write the folder; until the last file is there it counts as unfinished."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    save_tensors(folder / WEIGHTS, model.network.state_dict())
    model.taxonomy.write(folder / TAXONOMY)
    texts = {RUN: model.run.to_toml(), TOKENIZER: model.tokenizer.to_str(), DECISIONS: decisions.to_json(), CARD: card}
    config = encoder_config(model.network.encoder)
    if config is not None:
        texts[ENCODER] = config
    for name, text in texts.items():
        write_text(folder / name, [text])
    files = {name: _checksum(folder / name) for name in sorted([WEIGHTS, TAXONOMY, *texts]) if name not in _FREE}
    manifest = {"format": FORMAT, "hitin": __version__, "files": files}
    write_text(folder / MANIFEST, [json.dumps(manifest, indent=2) + "\n"])


def load_model(folder: Path) -> tuple[Model, Decisions]:
    """The model of a folder, or an error that says what is wrong with it."""
    _check_files(folder, _manifest(folder))
    run = Run.of(preset=folder / RUN)
    taxonomy = Taxonomy.read(folder / TAXONOMY)
    tokenizer = _tokenizer(folder / TOKENIZER)
    tensors, _ = load_tensors(folder / WEIGHTS)
    config = (folder / ENCODER).read_text(encoding="utf-8") if (folder / ENCODER).is_file() else None
    network = _restored(folder, run, taxonomy, tokenizer, tensors, config)
    network.eval()
    return Model(network, tokenizer, taxonomy, run), _decisions(folder / DECISIONS)


def is_model(folder: Path) -> bool:
    return (folder / MANIFEST).is_file()


def _restored(
    folder: Path, run: Run, taxonomy: Taxonomy, tokenizer: Tokenizer, tensors: Mapping[str, Tensor], config: str | None
) -> Network:
    own = {name.removeprefix("method."): tensor for name, tensor in tensors.items() if name.startswith("method.")}
    try:
        width = tensors["encoder.embedding.weight"].shape[1] if "encoder.embedding.weight" in tensors else 0
        encoder = restore_encoder(run.encoder, tokenizer, config, width)
        method = METHODS[run.method_name].module.restored(taxonomy, encoder.width, run.method, own)
        network = Network(encoder, method)
        network.load_state_dict(dict(tensors))
    except (KeyError, RuntimeError, ValueError, TypeError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise _damaged(folder / WEIGHTS, f"the weights do not fit the settings and the taxonomy ({reason})") from error
    return network


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not folder.is_dir():
        raise InputError(
            "there is no such model",
            kind="missing-file",
            file=str(folder),
            remedy="Name the folder that hitin train wrote.",
        )
    if not path.is_file():
        unfinished = (folder / TRAINING).is_dir()
        raise InputError(
            "the training of this model is not finished"
            if unfinished
            else f"this is not a model: it has no {MANIFEST}",
            kind="unfinished-model" if unfinished else "no-model",
            file=str(folder),
            remedy="Repeat the command that began it: it goes on where it stopped."
            if unfinished
            else "Name the folder that hitin train wrote.",
        )
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        number, files = manifest["format"], dict(manifest["files"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, f"the list of files is damaged ({error})") from error
    if number != FORMAT:
        raise InputError(
            f"the model has format {number}, this hitin reads {FORMAT}",
            kind="other-format",
            file=str(folder),
            remedy=f"It was written by hitin {manifest.get('hitin')}: install that, or train again.",
        )
    return files


def _check_files(folder: Path, files: Mapping[str, str]) -> None:
    for name in (WEIGHTS, RUN, TAXONOMY, TOKENIZER, DECISIONS, *files):
        path = folder / name
        if Path(name).name != name or not path.is_file():
            raise _damaged(path, "this file of the model is missing")
        if name in files and _checksum(path) != files[name]:
            raise _damaged(path, "the file is not the one that was saved with the model")


def _checksum(path: Path) -> str:
    digest = sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _tokenizer(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare ones
        raise _damaged(path, f"the tokenizer cannot be read ({error})") from error


def _decisions(path: Path) -> Decisions:
    return Decisions.from_json(path.read_text(encoding="utf-8", errors="replace"), str(path))


def _damaged(path: Path, problem: str) -> InputError:
    return InputError(problem, kind="damaged-model", file=str(path), remedy="Copy the model again, or train it again.")
