"""The models that a service has: loaded, each with a batcher, and loaded anew when their folders change."""

import threading
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from hitin.decisions import Decisions
from hitin.decisions.policies import POLICIES
from hitin.errors import InputError
from hitin.estimator import HierarchicalTextClassifier
from hitin.export.folder import FILES as EXPORT_FILES
from hitin.export.folder import PLAIN, SMALL
from hitin.export.model import OnnxModel
from hitin.loading import load_classifier
from hitin.model import Model, documents_at_once
from hitin.model_folder import DECISIONS, EXPORT, FILES, MANIFEST, fingerprint_of, is_model, read_decisions
from hitin.serve.batching import Batcher, Computing, Unbatched
from hitin.serve.refusals import encoded
from hitin.taxonomy import Taxonomy

Stamp = tuple[tuple[int, ...] | None, ...]
"""What a look at a folder's files tells without reading them."""


@dataclass(frozen=True)
class Loading:
    """How models are loaded and computed."""

    runtime: str = "auto"
    device: str = "auto"
    batch: int = 64
    """Texts that are computed together at most; 1: each request by itself."""
    queue: int = 4096
    """Texts that may wait for a model."""
    told: Callable[[str, int], None] = lambda *_: None
    """Hears the size of each batch."""

    def computing(self, name: str, model: Model) -> Computing:
        def told(texts: int) -> None:
            self.told(name, texts)

        if self.batch == 1:
            return Unbatched(model.logits, queue=self.queue, told=told)
        return Batcher(model.logits, most=documents_at_once(model.taxonomy, self.batch), queue=self.queue, told=told)


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model at work. What is changed in its folder makes another of it."""

    name: str
    folder: Path
    classifier: HierarchicalTextClassifier
    computing: Computing
    stamp: Stamp
    device: str = "auto"
    loaded: datetime = field(default_factory=lambda: datetime.now(UTC))

    @classmethod
    def load(cls, name: str, folder: Path, loading: Loading) -> "ServedModel":
        stamp = stamp_of(folder)  # before: what changes meanwhile is seen at the next look
        classifier = load_classifier(str(folder), device=loading.device, runtime=loading.runtime)
        classifier.scored(["a first text takes longer"])
        return cls(name, folder, classifier, loading.computing(name, classifier.model_), stamp, loading.device)

    def redecided(self, stamp: Stamp) -> "ServedModel":
        """The same at work, with the decisions that are in its folder now."""
        classifier = copy(self.classifier)
        classifier.decisions_ = read_decisions(self.folder / DECISIONS, self.taxonomy)
        return replace(self, classifier=classifier, stamp=stamp, loaded=datetime.now(UTC))

    @property
    def taxonomy(self) -> Taxonomy:
        return self.classifier.taxonomy_

    @property
    def decisions(self) -> Decisions:
        return self.classifier.decisions_

    @property
    def runtime(self) -> str:
        model = self.classifier.model_
        return (SMALL if model.int8 else PLAIN) if isinstance(model, OnnxModel) else "torch"

    @property
    def explains(self) -> bool:
        """Whether there is a model with gradients: an exported one has none."""
        return self.runtime == "torch" or is_model(self.folder)

    def explained(self) -> HierarchicalTextClassifier:
        """The model that explanations are made with; where another one predicts, loaded when it is first needed."""
        if not self.explains:
            raise InputError(
                f"the model {self.name} cannot be explained: it is an exported one",
                kind="no-explanation",
                remedy="Serve the folder of the model that it was made from, if need be with --runtime onnx.",
            )
        return self.classifier if self.runtime == "torch" else self._with_gradients

    @cached_property
    def _with_gradients(self) -> HierarchicalTextClassifier:
        model, found = self.classifier.model_, HierarchicalTextClassifier.load(self.folder, device=self.device)
        if isinstance(model, OnnxModel) and model.made_from != fingerprint_of(self.folder):
            raise InputError(
                f"the model {self.name} cannot be explained: its folder holds another one than is served",
                kind="no-explanation",
                remedy="Export the model again: what is served then is what is in the folder.",
            )
        found.decisions_ = self.decisions
        return found

    @cached_property
    def taxonomy_answer(self) -> tuple[bytes, str]:
        """What is told of its labels, and a name for what that is: other labels, or another order, have another."""
        taxonomy = self.taxonomy
        answer = {
            "model": self.name,
            "labels": list(taxonomy.labels),
            "edges": taxonomy.edges.tolist(),
            "level_sizes": list(taxonomy.level_sizes),
        }
        id = sha256(encoded(answer)).hexdigest()[:32]
        return encoded({"id": id, **answer}), id

    def summary(self, problem: str | None) -> dict[str, Any]:
        """What is told of it in the list of models."""
        run, sizes = self.classifier.model_.run, getattr(self.classifier, "sizes_", {})
        return {
            "name": self.name,
            "method": run.method_name,
            "encoder": _plain_name(run.encoder_name),
            "runtime": self.runtime,
            "labels": len(self.taxonomy),
            "levels": list(self.taxonomy.level_sizes),
            "documents": sizes.get("train"),
            "decisions": self.decisions.summary(),
            "policies": list(POLICIES),
            "explains": self.explains,
            "loaded": self.loaded.isoformat(timespec="seconds").replace("+00:00", "Z"),
            "problem": problem,
        }


class Models:
    """The models by name, in the order in which they were given; the first is the one that is meant without a name."""

    def __init__(self, served: Sequence[ServedModel], loading: Loading) -> None:
        self._served = {each.name: each for each in served}
        self._loading = loading
        self._lock = threading.Lock()  # of those who load
        self._closing: list[threading.Thread] = []
        self._refused: dict[str, Stamp] = {}  # what was in a folder that could not be loaded
        self.problems: dict[str, str] = {}
        """Why what is in a folder now is not what is served, by the name of the model."""

    @classmethod
    def load(cls, folders: Sequence[str], loading: Loading) -> "Models":
        """Each is called by its folder's name, or as `name=folder` says."""
        return cls([ServedModel.load(name, folder, loading) for name, folder in named(folders).items()], loading)

    def all(self) -> list[ServedModel]:
        return list(self._served.values())

    def get(self, name: str | None = None) -> ServedModel | None:
        """The model of that name, or the first; none if there is none."""
        return next(iter(self._served.values())) if name is None else self._served.get(name)

    def look(self, *, again: bool = False) -> list[str]:
        """Load those whose folder has changed; the names of those that were replaced.

        What was asked of the model before is answered by it. One that cannot be loaded is left as it is (`problems`),
        and tried when its folder changes, or `again`.
        """
        changed = []
        with self._lock:
            if again:
                self._refused.clear()
            for name, served in list(self._served.items()):
                stamp = stamp_of(served.folder)
                if stamp == served.stamp:
                    self.problems.pop(name, None)
                elif stamp != self._refused.get(name) and self._replace(name, served, stamp):
                    changed.append(name)
        return changed

    def _replace(self, name: str, served: ServedModel, stamp: Stamp) -> bool:
        try:
            found = served.redecided(stamp) if _same_but_decisions(stamp, served.stamp) else self._loaded(served)
        except Exception as error:  # whatever is wrong with a folder, the model goes on
            self.problems[name], self._refused[name] = told(error), stamp
            return False
        self._served[name] = found
        self.problems.pop(name, None)
        if found.computing is not served.computing:
            self._close_later(served)
        return True

    def _loaded(self, served: ServedModel) -> ServedModel:
        return ServedModel.load(served.name, served.folder, self._loading)

    def _close_later(self, served: ServedModel) -> None:
        """When what was asked of it is answered."""
        closing = threading.Thread(target=served.computing.close, daemon=True)
        closing.start()
        self._closing = [thread for thread in self._closing if thread.is_alive()] + [closing]

    def close(self) -> None:
        """Answer what was taken, and take nothing more."""
        with self._lock:
            for served in self._served.values():
                served.computing.close()
            for thread in self._closing:
                thread.join()


def named(folders: Sequence[str]) -> dict[str, Path]:
    """Folders by name."""
    found: dict[str, Path] = {}
    for each in folders:
        name, equals, path = each.partition("=")
        folder = Path(path) if equals and not Path(each).exists() else Path(each)
        name = name if equals and folder != Path(each) else folder.resolve().name
        if not name or name in found:
            problem = f"two models are called {name}" if name else "a model has no name"
            raise InputError(problem, kind="bad-option", remedy=f"Name it otherwise: other-name={folder}")
        found[name] = folder
    return found


def told(error: Exception) -> str:
    """What is wrong with a folder, without where it lies."""
    if isinstance(error, InputError):
        return error.message
    return f"it cannot be loaded ({type(error).__name__})"


def _same_but_decisions(one: Stamp, other: Stamp) -> bool:
    return one[0] is not None and one[1:] == other[1:]


def _plain_name(encoder: str) -> str:
    """Of an encoder from a folder the folder's name: where it lay is no one's affair."""
    return Path(encoder).name if Path(encoder).is_absolute() or encoder.startswith(".") else encoder


def stamp_of(folder: Path) -> Stamp:
    """Of the decisions, which may be changed by themselves, and of all else: who copies a folder ends with any file."""
    exports = [place / name for place in (folder, folder / PLAIN, folder / SMALL) for name in (EXPORT, *EXPORT_FILES)]
    own = [folder / name for name in (MANIFEST, *FILES)]
    return tuple(_stamp(path) for path in (folder / DECISIONS, *own, *exports))


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino  # the second: whose it is, who may read it
