"""The models that a service has: loaded, each with a batcher, and loaded anew when their folders change."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from hitin.commands.models import load_classifier
from hitin.errors import HitinError, InputError, first_line
from hitin.estimator import HierarchicalTextClassifier
from hitin.export.folder import PLAIN, SMALL
from hitin.model_folder import DECISIONS, EXPORT, MANIFEST
from hitin.serve.batching import Batcher

Stamp = tuple[tuple[int, int, int] | None, ...]
"""What a look at a folder's files tells without reading them."""


@dataclass(frozen=True)
class Loading:
    """How models are loaded and computed."""

    runtime: str = "auto"
    device: str = "auto"
    batch: int = 64
    """Texts that are computed together at most."""
    queue: int = 1024
    """Texts that may wait for a model."""
    told: Callable[[str, int], None] = lambda *_: None
    """Hears the size of each batch."""


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model at work. What is changed in its folder makes another of it."""

    name: str
    folder: Path
    classifier: HierarchicalTextClassifier
    batcher: Batcher
    stamp: Stamp
    loaded: datetime = field(default_factory=lambda: datetime.now(UTC))

    @classmethod
    def load(cls, name: str, folder: Path, loading: Loading) -> "ServedModel":
        stamp = stamp_of(folder)  # before: what changes meanwhile is seen at the next look
        classifier = load_classifier(str(folder), device=loading.device, runtime=loading.runtime)
        classifier.scored(["a first text takes longer"])
        batcher = Batcher(
            classifier.model_.logits,
            most=loading.batch,
            queue=loading.queue,
            told=lambda texts: loading.told(name, texts),
        )
        return cls(name, folder, classifier, batcher, stamp)


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

    def look(self) -> list[str]:
        """Load those whose folder has changed; the names of those that were replaced.

        What was asked of the model before is answered by it. One that cannot be loaded is left as it is (`problems`).
        """
        changed = []
        with self._lock:
            for name, served in list(self._served.items()):
                stamp = stamp_of(served.folder)
                if stamp == served.stamp:
                    self.problems.pop(name, None)
                elif stamp != self._refused.get(name) and self._replace(name, served):
                    changed.append(name)
        return changed

    def _replace(self, name: str, served: ServedModel) -> bool:
        stamp = stamp_of(served.folder)
        try:
            found = ServedModel.load(name, served.folder, self._loading)
        except (HitinError, OSError) as error:
            self.problems[name], self._refused[name] = first_line(error), stamp
            return False
        self._served[name] = found
        self.problems.pop(name, None)
        closing = threading.Thread(target=served.batcher.close, daemon=True)
        closing.start()
        self._closing = [thread for thread in self._closing if thread.is_alive()] + [closing]
        return True

    def close(self) -> None:
        """Answer what was taken, and take nothing more."""
        with self._lock:
            for served in self._served.values():
                served.batcher.close()
            for thread in self._closing:
                thread.join()


def named(folders: Sequence[str]) -> dict[str, Path]:
    """Folders by name."""
    found: dict[str, Path] = {}
    for each in folders:
        name, equals, path = each.partition("=")
        folder = Path(path) if equals and not Path(each).exists() else Path(each)
        name = name if equals and folder != Path(each) else folder.resolve().name
        if name in found:
            raise InputError(
                f"two models are called {name}",
                kind="bad-option",
                remedy=f"Name one of them otherwise: other-name={folder}",
            )
        found[name] = folder
    return found


def stamp_of(folder: Path) -> Stamp:
    """Of the files that are written last, and of the decisions, which may be changed by themselves."""
    inner = [folder / name / EXPORT for name in (PLAIN, SMALL)]
    return tuple(_stamp(path) for path in (folder / MANIFEST, folder / EXPORT, folder / DECISIONS, *inner))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
