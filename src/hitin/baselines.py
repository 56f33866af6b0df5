"""Simpler models, trained on the same documents and kept in a model's folder: its scores can be seen beside theirs."""

import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from hitin.errors import InputError
from hitin.estimator import HierarchicalTextClassifier
from hitin.inputs import Documents
from hitin.methods import METHODS
from hitin.model_folder import is_model
from hitin.settings import Run
from hitin.taxonomy import Taxonomy
from hitin.training.log import Watcher
from hitin.writing import unwritable

FOLDER = "baselines"


def check_baseline(method: str) -> Run:
    """The run of a baseline: the method's usual settings."""
    if method not in METHODS:
        raise InputError(
            f"there is no method {method!r} for a baseline",
            kind="bad-option",
            remedy=f"The methods are {', '.join(METHODS)}.",
        )
    return Run.of(method=method)


def train_baseline(
    method: str, model: Path, run: Run, taxonomy: Taxonomy, given: Documents, held: Documents | None, watcher: Watcher
) -> HierarchicalTextClassifier:
    """Train a method as it usually is, for the model of a folder: its documents, its seed, its way to decide."""
    watcher.note(f"training the baseline {method} on the same documents")
    options = asdict(run.decisions) | {"seed": run.training.seed}
    classifier = HierarchicalTextClassifier(taxonomy, method=method, **options)
    return classifier.fit_documents(given, held, out=model / FOLDER / method, resume="never", watcher=watcher)


def remove_baselines(model: Path) -> None:
    """Those of an earlier model in the same folder."""
    try:
        if (model / FOLDER).is_dir():
            shutil.rmtree(model / FOLDER)
    except OSError as error:
        raise unwritable(model / FOLDER, error) from error


def baseline_folders(model: Path) -> Iterator[tuple[str, Path]]:
    """The baselines that were trained with a model, by name."""
    folder = model / FOLDER
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if is_model(path):
            yield path.name, path
