"""`HierarchicalTextClassifier`: documents and a taxonomy in, consistent labels out."""

import inspect
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from hitin.decisions import Decisions, probabilities_of
from hitin.errors import InputError, shown
from hitin.labels import LabelReader
from hitin.metrics import Counts, Scores
from hitin.model import Model, logits_of
from hitin.model_card import model_card
from hitin.model_folder import TRAINING, load_model, save_model
from hitin.settings import Run
from hitin.taxonomy import Taxonomy
from hitin.training import CHECKPOINT, History, build_accelerator, train
from hitin.training_log import Watcher

Labels = str | Iterable[object]
Resume = Literal["auto", "never"]
_AT_ONCE = 4096  # documents scored at a time


class HierarchicalTextClassifier:
    """A classifier of texts into the labels of a taxonomy.

    `taxonomy` is a `Taxonomy` or the file of one; `method` one of `hitin.methods`; `encoder` is `textrcnn`, or the
    name or folder of a Hugging Face model. `preset` names a run that comes with `hitin` or a TOML file. All other
    settings of a run (`hitin.settings`) can be given by name: `height=3`, `epochs=10`, `learning_rate=1e-3`.

    What it learns ends in an underscore: `classes_` (the labels, in the order of the columns of `predict_proba`),
    `model_`, `history_`, `decisions_`.
    """

    def __init__(
        self,
        taxonomy: Taxonomy | str | Path | None = None,
        *,
        method: str | None = None,
        encoder: str | None = None,
        preset: str | Path | None = None,
        device: str = "auto",
        **options: object,
    ) -> None:
        self.taxonomy = taxonomy
        self.method = method
        self.encoder = encoder
        self.preset = preset
        self.device = device
        self._options = dict(options)

    def __repr__(self) -> str:
        given = {name: value for name, value in self.get_params().items() if value not in (None, "auto")}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    # What scikit-learn asks of an estimator.

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """What it was made with."""
        return {name: getattr(self, name) for name in _NAMED} | self._options

    def set_params(self, **params: Any) -> Self:
        """Change what it was made with."""
        for name, value in params.items():
            if name in _NAMED:
                setattr(self, name, value)
            else:
                self._options[name] = value
        return self

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,  # labels are sets of names, which scikit-learn's classifiers do not know
            target_tags=TargetTags(required=True, multi_output=True),
            input_tags=InputTags(two_d_array=False, string=True),
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def score(self, texts: Iterable[str], labels: Iterable[Labels] | NDArray[Any]) -> float:
        """Micro-F1."""
        return self.evaluate(texts, labels).micro_f1

    # Training.

    def fit(
        self,
        texts: Iterable[str],
        labels: Iterable[Labels] | NDArray[Any],
        validation: tuple[Iterable[str], Iterable[Labels] | NDArray[Any]] | None = None,
        *,
        out: str | Path | None = None,
        resume: Resume = "auto",
        watcher: Watcher | None = None,
    ) -> Self:
        """Train on texts and their labels, ancestors added where they are missing.

        Labels are names, paths `A > B`, or lists of them; or a matrix of 0 and 1 with a column for each label of the
        taxonomy. Without `validation`, a part of the documents is held out. With `out`, the model is saved in that
        folder, and a run that was interrupted there goes on.
        """
        taxonomy = self._read_taxonomy()
        run = Run.of(method=self.method, encoder=self.encoder, preset=self.preset, **self._options)
        given = _texts(texts), _label_ids(taxonomy, labels, "training")
        _check_pairs(*given, "training")
        held = None
        if validation is not None:
            held = _texts(validation[0]), _label_ids(taxonomy, validation[1], "validation")
            _check_pairs(*held, "validation")
        elif run.training.validation:
            given, held = _hold_out(*given, run.training.validation, run.training.seed)
        watcher = watcher or Watcher()
        with _folder(out) as folder:
            self._fit(taxonomy, run, given, held, folder, resume, watcher, keep=out is not None)
        return self

    def _fit(
        self,
        taxonomy: Taxonomy,
        run: Run,
        given: tuple[list[str], list[tuple[int, ...]]],
        held: tuple[list[str], list[tuple[int, ...]]] | None,
        folder: Path,
        resume: Resume,
        watcher: Watcher,
        keep: bool,
    ) -> None:
        watcher.note("reading the words of the training documents")
        model = Model.build(taxonomy, run, given[0])
        if model.coverage is not None:
            watcher.note(str(model.coverage))
        training = folder / TRAINING
        self.history_: History = train(
            model,
            model.examples(*given),
            None if held is None else model.examples(*held),
            folder=training,
            device=self.device,
            resume=resume == "auto",
            resumable=keep,
            watcher=watcher,
        )
        self._set(model, Decisions())
        self.sizes_ = {"train": len(given[0]), "validation": 0 if held is None else len(held[0])}
        if keep:
            self.save(folder)
            (training / CHECKPOINT).unlink(missing_ok=True)

    def _set(self, model: Model, decisions: Decisions) -> None:
        self.model_ = model
        self.decisions_ = decisions
        self.taxonomy_ = model.taxonomy
        self.classes_: NDArray[Any] = np.array(model.taxonomy.labels, dtype=object)

    # Use.

    def predict(self, texts: Iterable[str]) -> list[set[str]]:
        """The labels of each text; a label never comes without its ancestors."""
        return [{str(self.classes_[label]) for label in np.flatnonzero(row)} for row in self._decided(texts)]

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """(documents, |Y|): the probability of each label of `classes_`."""
        return probabilities_of(self._fitted().logits(_texts(texts)))

    def evaluate(self, texts: Iterable[str], labels: Iterable[Labels] | NDArray[Any]) -> Scores:
        """Micro and macro F1, over all and by level, of what `predict` says."""
        model = self._fitted()
        given, ids = _texts(texts), _label_ids(model.taxonomy, labels, "test")
        _check_pairs(given, ids, "test")
        examples = model.examples(given, ids)
        counts = Counts.zero(len(model.taxonomy))
        for rows in _runs(len(examples)):
            part = type(examples)(examples.tokens.take(rows), examples.labels.take(rows), examples.label_count)
            chosen = self.decisions_.decide(probabilities_of(logits_of(model.network, part)), model.taxonomy)
            counts += Counts.of(chosen, part.labels.indicators(np.arange(len(part)), part.label_count) > 0)
        return Scores.of(counts, model.taxonomy, len(examples))

    def save(self, folder: str | Path) -> None:
        """Write the model into a folder."""
        save_model(self._fitted(), Path(folder), decisions=self.decisions_, card=model_card(self))

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto") -> "HierarchicalTextClassifier":
        """The model of a folder."""
        model, decisions = load_model(Path(folder))
        run = model.run
        options = {name: value for section in run.to_dict().values() for name, value in section.items()}
        loaded = cls(model.taxonomy, device=device, **options)
        model.network.to(build_accelerator(device, run.training).device)
        loaded._set(model, decisions)
        return loaded

    def _fitted(self) -> Model:
        if not hasattr(self, "model_"):
            raise InputError(
                "the classifier has not been trained", kind="not-fitted", remedy="Call fit, or load a model."
            )
        return self.model_

    def _decided(self, texts: Iterable[str]) -> Iterator[NDArray[np.bool_]]:
        model, given = self._fitted(), _texts(texts)
        for rows in _runs(len(given)):
            part = [given[row] for row in rows.tolist()]
            yield from self.decisions_.decide(probabilities_of(model.logits(part)), model.taxonomy)

    def _read_taxonomy(self) -> Taxonomy:
        if self.taxonomy is None:
            raise InputError(
                "the classifier has no taxonomy", kind="no-taxonomy", remedy="Give it a Taxonomy, or its file."
            )
        return self.taxonomy if isinstance(self.taxonomy, Taxonomy) else Taxonomy.read(self.taxonomy)


_NAMED = tuple(
    name
    for name, parameter in inspect.signature(HierarchicalTextClassifier.__init__).parameters.items()
    if name != "self" and parameter.kind is not inspect.Parameter.VAR_KEYWORD
)


def _runs(documents: int) -> Iterator[NDArray[np.int64]]:
    for start in range(0, documents, _AT_ONCE):
        yield np.arange(start, min(start + _AT_ONCE, documents))


def _texts(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise InputError(
            "one text was given where a list of texts is expected", kind="bad-documents", remedy="Write [text]."
        )
    given = list(texts)
    for number, text in enumerate(given, start=1):
        if not isinstance(text, str):
            raise InputError(f"a text is {shown(text)}", kind="bad-documents", line=number, remedy="Texts are strings.")
    return given


def _label_ids(taxonomy: Taxonomy, labels: Iterable[Labels] | NDArray[Any], what: str) -> list[tuple[int, ...]]:
    """The numbers of each document's labels, ancestors included."""
    if isinstance(labels, np.ndarray) and labels.ndim == 2:
        if labels.shape[1] != len(taxonomy):
            raise InputError(
                f"the matrix of labels has {labels.shape[1]} columns, the taxonomy {len(taxonomy)} labels",
                kind="bad-labels",
                remedy="It needs a column for each label, in the order of the taxonomy.",
            )
        return [taxonomy.closure(np.flatnonzero(row).tolist()) for row in labels]
    reader = LabelReader(taxonomy)
    found = []
    for number, given in enumerate(labels, start=1):
        read = reader.read(given)
        if read.unknown:
            near = reader.nearest(read.unknown[0])
            raise InputError(
                f"the {what} label {shown(read.unknown[0])} is not in the taxonomy",
                kind="unknown-label",
                line=number,
                remedy=f"Did you mean {shown(near)}?" if near else "Add it to the taxonomy, or correct the document.",
            )
        found.append(read.ids)
    return found


def _check_pairs(texts: Sequence[str], labels: Sequence[tuple[int, ...]], what: str) -> None:
    if len(texts) != len(labels):
        raise InputError(f"there are {len(texts)} {what} texts but {len(labels)} sets of labels", kind="bad-documents")
    if not texts:
        raise InputError(f"there are no {what} documents", kind="no-documents", remedy="At least one is needed.")
    if not any(labels):
        raise InputError(
            f"no {what} document has a label",
            kind="no-labels",
            remedy="Is the right key or column taken for the labels?",
        )


def _hold_out(
    texts: list[str], labels: list[tuple[int, ...]], part: float, seed: int
) -> tuple[tuple[list[str], list[tuple[int, ...]]], tuple[list[str], list[tuple[int, ...]]] | None]:
    """Training and validation documents, chosen by chance; equal texts stay together."""
    place: dict[str, int] = {}
    groups = np.array([place.setdefault(text, len(place)) for text in texts])
    order = np.random.default_rng((seed, 1)).permutation(len(place))
    is_held = np.isin(groups, order[: round(part * len(place))])
    held = np.flatnonzero(is_held).tolist()
    rest = np.flatnonzero(~is_held).tolist()
    if not any(labels[row] for row in held) or not any(labels[row] for row in rest):
        return (texts, labels), None

    def chosen(rows: list[int]) -> tuple[list[str], list[tuple[int, ...]]]:
        return [texts[row] for row in rows], [labels[row] for row in rows]

    return chosen(rest), chosen(held)


@contextmanager
def _folder(out: str | Path | None) -> Iterator[Path]:
    """The folder to work in: the one that was asked for, or one that goes away."""
    if out is not None:
        yield Path(out)
        return
    with tempfile.TemporaryDirectory(prefix="hitin-") as temporary:
        yield Path(temporary)
