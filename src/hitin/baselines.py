"""Simpler models, trained on the same documents and kept in a model's folder: its scores can be seen beside theirs.

They are trained before the model, in the folder of its training, and stand beside it once it is finished: until then
the model that was there before keeps its own, and an interrupted training those that are done.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from hitin.devices import alone, is_main_process, share_text, wait_for_all
from hitin.errors import InputError
from hitin.estimator import HierarchicalTextClassifier
from hitin.inputs import Documents, fingerprint
from hitin.methods import METHODS, WholeMethod
from hitin.model_folder import BASELINES, TRAINING, has_own_baselines, is_model, own_baselines, remove_tree
from hitin.model_place import BEGUN
from hitin.settings import Run
from hitin.taxonomy import Taxonomy
from hitin.watcher import Watcher
from hitin.writing import unwritable, write_text

State = Literal["new", "begun", "finished"]


def check_baseline(method: str) -> Run:
    """The run of a baseline: the method's usual settings."""
    if method not in METHODS:
        raise InputError(
            f"there is no method {method!r} for a baseline",
            kind="bad-option",
            remedy=f"The methods are {', '.join(METHODS)}.",
        )
    return Run.of(method=method)


@dataclass(frozen=True)
class BaselineTask:
    """What baselines of a model are trained on and how: its documents, its seed, its way to decide, its device."""

    model: Path
    run: Run
    taxonomy: Taxonomy
    given: Documents
    held: Documents | None
    device: str = "auto"

    def train(self, method: str, watcher: Watcher, *, resume: bool = True) -> HierarchicalTextClassifier | None:
        """Train a method as it usually is, or go on with it; `None` in processes that have no part in it."""
        folder = _under_way(self.model) / method
        state: str = self._state(folder, method) if is_main_process() and resume else "new"
        state = share_text(state)
        if state == "finished" or isinstance(METHODS[method], WholeMethod):  # for one process by itself
            found = None
            if is_main_process():
                with alone():
                    found = self._trained(method, folder, state, watcher)
            wait_for_all()
            return found
        return self._trained(method, folder, state, watcher)

    def _trained(self, method: str, folder: Path, state: str, watcher: Watcher) -> HierarchicalTextClassifier:
        if state == "finished":
            watcher.note(f"the baseline {method} is trained already")
            return HierarchicalTextClassifier.load(folder, device=self.device)
        watcher.note(f"training the baseline {method} on the same documents")
        if state == "new" and is_main_process():
            remove_tree(folder)
            write_text(folder / BEGUN, [json.dumps({"documents": self._fingerprint(method)}) + "\n"])
        wait_for_all()
        options = asdict(self.run.decisions) | {"seed": self.run.training.seed}
        classifier = HierarchicalTextClassifier(self.taxonomy, method=method, device=self.device, **options)
        return classifier.fit_documents(self.given, self.held, out=folder, watcher=watcher)

    def _state(self, folder: Path, method: str) -> State:
        """How far an earlier command has come with the same task."""
        try:
            mark = json.loads((folder / BEGUN).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return "new"
        if mark != {"documents": self._fingerprint(method)}:
            return "new"
        return "finished" if is_model(folder) else "begun"

    def _fingerprint(self, method: str) -> str:
        """Equal for tasks that must end with the same model."""
        said = (check_baseline(method).to_toml(), asdict(self.run.decisions), self.run.training.seed)
        return fingerprint(self.taxonomy, (self.given, self.held or Documents([], [])), said=said)


def settle_baselines(model: Path, methods: Iterable[str]) -> None:
    """Put the baselines beside their model, which is finished; what else was under way is removed."""
    if not is_main_process():
        return
    ready, names = _under_way(model), list(methods)
    if names:
        remove_tree(model / BASELINES)
        try:
            (model / BASELINES).mkdir()
            for name in names:
                (ready / name / BEGUN).unlink()
                (ready / name).rename(model / BASELINES / name)
        except OSError as error:
            raise unwritable(model / BASELINES, error) from error
        own_baselines(model)
    remove_tree(ready)


def baseline_folders(model: Path) -> Iterator[tuple[str, Path]]:
    """The baselines that were trained with a model, by name."""
    if not has_own_baselines(model):
        return
    for path in sorted((model / BASELINES).iterdir()):
        if is_model(path):
            yield path.name, path


def _under_way(model: Path) -> Path:
    return model / TRAINING / BASELINES
