"""`HierarchicalTextClassifier`: documents and a taxonomy in, consistent labels out."""

import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray

from hitin import evaluation
from hitin.decisions import Decisions, DecisionSettings, Tuned, rows_to_tune_on, steps_to_tune, tune
from hitin.devices import accelerated, choose_device, is_main_process, share_text, wait_for_all
from hitin.documents import Document
from hitin.encoders import check_files
from hitin.errors import InputError, InputWarning, shown
from hitin.export.folder import is_export
from hitin.inputs import (
    Documents,
    LabelIds,
    Labels,
    check_documents,
    chunks,
    documents_of,
    hold_out,
    pairs_of,
    texts_of,
    validation_of,
)
from hitin.launching import has_launcher
from hitin.methods import METHODS, NeuralMethod
from hitin.metrics import Scores
from hitin.model import Model, documents_at_once
from hitin.model_card import model_card
from hitin.model_folder import (
    DECISIONS,
    TRAINING,
    fingerprint_of,
    load_model,
    read_decisions,
    read_history,
    save_model,
)
from hitin.model_kinds import kind_of
from hitin.model_place import check_place, training_in
from hitin.parameters import Parameters
from hitin.settings import Run
from hitin.taxonomy import Taxonomy
from hitin.training.agreement import check_same_task
from hitin.training.loop import finish
from hitin.training.progress import History
from hitin.validation_scores import FILE as VALIDATION
from hitin.validation_scores import ValidationScores, load_validation
from hitin.watcher import Watcher

Resume = Literal["auto", "never"]


class ScoredTexts(NamedTuple):
    """Tables of documents by labels: how probable each is, whether it is given, whether only being unsure kept it."""

    probabilities: NDArray[np.float32]
    given: NDArray[np.bool_]
    stopped: NDArray[np.bool_]


class HierarchicalTextClassifier(Parameters):
    """A classifier of texts into the labels of a taxonomy.

    `taxonomy` is a `Taxonomy` or the file of one; `method` one of `hitin.methods`; `encoder` is `textrcnn`, `bag`,
    or the name or folder of a Hugging Face model. `preset` names a run that comes with `hitin` or a TOML file. All
    other settings of a run (`hitin.settings`) can be given by name: `height=3`, `epochs=10`, `learning_rate=1e-3`.
    Like scikit-learn's, they are looked at in `fit`.

    What it learns ends in an underscore: `classes_` (the labels, in the order of the columns of `predict_proba`),
    `model_`, `decisions_`, `history_` (what each epoch came to), `sizes_` (how many documents there were).
    """

    # Training.

    def fit(
        self,
        texts: Iterable[str],
        labels: Iterable[Labels],
        validation: tuple[Iterable[str], Iterable[Labels]] | None = None,
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
        taxonomy, run = self._ready(out, resume)
        given = documents_of(taxonomy, texts, labels, "training")
        held = None if validation is None else validation_of(taxonomy, validation)
        if validation is None and run.training.validation:
            given, held = hold_out(given, run.training.validation, run.training.seed)
        self._fit(taxonomy, run, given, held, out, resume, watcher)
        return self

    def fit_documents(
        self,
        given: Documents,
        held: Documents | None,
        *,
        out: str | Path | None = None,
        resume: Resume = "auto",
        watcher: Watcher | None = None,
    ) -> Self:
        """`fit`, where labels are the taxonomy's numbers already, ancestors included. Nothing is held out."""
        taxonomy, run = self._ready(out, resume)
        check_documents(taxonomy, given, "training")
        if held is not None:
            check_documents(taxonomy, held, "validation")
        self._fit(taxonomy, run, given, held, out, resume, watcher)
        return self

    def _ready(self, out: str | Path | None, resume: Resume) -> tuple[Taxonomy, Run]:
        """What is to be trained, after all that can be wrong without a look at the documents."""
        if resume not in get_args(Resume):
            raise InputError(f"resume is {shown(resume)}", kind="bad-option", remedy="It is auto or never.")
        taxonomy = self._read_taxonomy()
        run = Run.of(method=self.method, encoder=self.encoder, preset=self.preset, **self._options)
        kind_of(run).check_needs(run)
        check_files(run.encoder)
        if has_launcher() and isinstance(METHODS[run.method_name], NeuralMethod):
            with accelerated(self.device, run.training):
                pass  # from here on the processes know each other
        if out is not None and is_main_process():
            check_place(Path(out))
        return taxonomy, run

    def _fit(
        self,
        taxonomy: Taxonomy,
        run: Run,
        given: Documents,
        held: Documents | None,
        out: str | Path | None,
        resume: Resume,
        watcher: Watcher | None,
    ) -> None:
        told = watcher or Watcher()
        check_same_task(taxonomy, (given, held), run.to_dict())
        if held is None:
            _tell_unheeded(run.decisions, watcher)
        with _folder(out) as folder:
            model, history = kind_of(run).trained(
                taxonomy,
                run,
                given,
                held,
                folder=folder / TRAINING,
                device=self.device,
                resume=resume == "auto",
                resumable=out is not None,
                watcher=told,
            )
            counts = np.bincount([label for ids in given.labels for label in ids], minlength=len(taxonomy))
            self._set(model, run.decisions.untuned(), replace(history, label_counts=counts.tolist()))
            if held is not None:
                self._tune_together(held, run.decisions, told)
            if out is not None and is_main_process():
                self._save(folder)
                finish(folder / TRAINING)
            wait_for_all()

    def _set(self, model: Model, decisions: Decisions, history: History | None) -> None:
        self.model_ = model
        self._source: tuple[Path, str] | None = None  # the folder it was loaded from, and the model's fingerprint
        self.__dict__.pop("validation_", None)  # of an earlier model
        if history is not None:  # unknown of a model that was saved without it
            self.history_, self.sizes_ = history, history.documents
        self.decisions_ = decisions
        self.taxonomy_ = model.taxonomy
        self.classes_: NDArray[Any] = np.array(model.taxonomy.labels, dtype=object)

    def _tune_together(self, held: Documents, settings: DecisionSettings, watcher: Watcher) -> None:
        """`tune_documents` in the main process; the others take what came of it."""
        if is_main_process():
            self.tune_documents(held, settings, watcher)
        text = share_text(self.decisions_.to_json())
        if not is_main_process():
            self.decisions_ = Decisions.from_json(text, DECISIONS)

    @property
    def label_counts(self) -> NDArray[np.int64] | None:
        """How many training documents each label has; `None` where it is not known."""
        counts = self.history_.label_counts if hasattr(self, "history_") else []
        return np.array(counts, dtype=np.int64) if len(counts) == len(self._fitted().taxonomy) else None

    # Use.

    def predict(self, texts: Iterable[str], *, deepest: bool = False) -> list[set[str]]:
        """The labels of each text; but for the policy `raw`, a label never comes without its ancestors.

        With `deepest`, only the end of each path: those that stand above none of the others.
        """
        taxonomy = self._fitted().taxonomy
        found = []
        for some in chunks(texts_of(texts), documents_at_once(taxonomy)):
            for given in self._given(some):
                labels: Iterable[int] = given.tolist()
                if deepest:
                    labels = taxonomy.deepest(taxonomy.closure(labels))
                found.append({taxonomy.labels[label] for label in labels})
        return found

    def _given(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The numbers of the labels of each text."""
        model, best = self._fitted(), None
        if self.decisions_.policy == "top-k":
            best = model.best(model.prepared(texts), self.decisions_)
        if best is not None:
            return [found.labels[found.given] for found in best]
        return [np.flatnonzero(row) for row in self.scored(texts).given]

    def predict_proba(self, texts: Iterable[str]) -> NDArray[np.float32]:
        """(documents, |Y|): the probability of each label of `classes_`."""
        model = self._fitted()
        found = [
            self.decisions_.probabilities(evaluation.finite_logits(model, some), model.taxonomy)
            for some in chunks(texts_of(texts), documents_at_once(model.taxonomy))
        ]
        return np.concatenate([np.empty((0, len(model.taxonomy)), dtype=np.float32), *found])

    def scored(self, texts: Iterable[str]) -> ScoredTexts:
        """The probabilities of some texts, and the labels they are given."""
        return self.decided(self._fitted().logits(list(texts_of(texts))))

    def decided(self, logits: NDArray[np.float32], decisions: Decisions | None = None) -> ScoredTexts:
        """`scored`, where the model's logits are known already; perhaps by other decisions than the model's own."""
        taxonomy, decisions = self._fitted().taxonomy, decisions or self.decisions_
        odds = decisions.calibration.odds(evaluation.checked(logits), taxonomy)
        return ScoredTexts(odds.probabilities, *decisions.decide_odds(odds, taxonomy))

    def evaluate(self, texts: Iterable[str], labels: Iterable[Labels]) -> Scores:
        """Scores of what `predict` says, over all and by level, with their intervals. Both may be streams."""
        return self.evaluate_pairs(pairs_of(self._fitted().taxonomy, texts, labels, "test"))

    def evaluate_pairs(self, pairs: Iterable[tuple[str, LabelIds]]) -> Scores:
        """`evaluate`, where labels are the taxonomy's numbers already, ancestors included."""
        self._fitted()
        return evaluation.evaluate(self, ((Document(text), ids) for text, ids in pairs)).scores

    def score(self, texts: Iterable[str], labels: Iterable[Labels]) -> float:
        """Micro-F1, as scikit-learn asks for one number."""
        return self.evaluate(texts, labels).micro_f1

    def tune(self, texts: Iterable[str], labels: Iterable[Labels], **options: Any) -> Tuned:
        """Choose the policy, thresholds and calibration anew on these documents, which should be no training ones.

        `options` are those of `hitin.decisions.settings`: `policy="top-down"`, `tune_for="macro"` and so on.
        """
        given = documents_of(self._fitted().taxonomy, texts, labels, "validation")
        return self.tune_documents(given, DecisionSettings.of(**options))

    def tune_documents(
        self, held: Documents, settings: DecisionSettings | None = None, watcher: Watcher | None = None
    ) -> Tuned:
        """`tune`, where labels are the taxonomy's numbers already, ancestors included."""
        model, told = self._fitted(), watcher or Watcher()
        some = held.take(rows_to_tune_on(len(held.texts), model.taxonomy, model.run.training.seed).tolist())
        if len(some.texts) < len(held.texts):
            told.note(f"tuning decisions on {len(some.texts):,} of {len(held.texts):,} documents, for labels are many")
        with told.counting("scoring", len(some.texts)) as advance:
            logits = evaluation.logits_in_parts(model, some.texts, advance)
        scores = ValidationScores(logits, evaluation.truth_table(some.labels, model.taxonomy))
        return self.tune_scores(scores, settings or DecisionSettings(), told)

    def tune_scores(self, scores: ValidationScores, settings: DecisionSettings, watcher: Watcher) -> Tuned:
        """`tune`, where the model's scores are known already."""
        model = self._fitted()
        with watcher.counting("tuning", steps_to_tune(settings, model.taxonomy), "ways") as advance:
            found = tune(*scores, model.taxonomy, settings, seed=model.run.training.seed, advance=advance)
        self.decisions_, self.validation_ = found.decisions, scores
        return found

    def save(self, folder: str | Path) -> None:
        """Write the model into a folder, with the scores of its validation documents.

        It takes the place of another model, but of nothing else.
        """
        self._fitted()
        check_place(Path(folder))
        self._save(Path(folder))

    def _save(self, folder: Path) -> None:
        model, history = self._fitted(), getattr(self, "history_", None)
        held, card = self._validation(), model_card(self)
        save_model(model, folder, decisions=self.decisions_, history=history, card=card, validation=held)

    def _validation(self) -> ValidationScores | None:
        """The scores of validation documents, perhaps still in the folder that the model was loaded from."""
        if hasattr(self, "validation_") or self._source is None:
            return getattr(self, "validation_", None)
        try:
            return load_validation(self._source[0], self.taxonomy_, self._source[1])
        except InputError as error:  # they were there, and are gone, or those of another model
            warnings.warn(f"the scores of validation documents are lost: {error}", InputWarning, stacklevel=4)
            return None

    @classmethod
    def load(cls, folder: str | Path, *, device: str = "auto") -> Self:
        """The model of a folder, also of one that was exported, which onnxruntime computes."""
        if is_export(Path(folder)):
            return cls.load_export(folder, device=device)
        chosen = choose_device(device)
        model, decisions, history = load_model(Path(folder))
        loaded = cls._of_model(model, device)
        model.to(chosen)
        loaded._set(model, decisions, history)
        if Path(folder, VALIDATION).is_file():
            loaded._source = Path(folder).resolve(), fingerprint_of(Path(folder))
        return loaded

    @classmethod
    def load_export(cls, folder: str | Path, *, device: str = "auto", model_folder: str | Path | None = None) -> Self:
        """An exported model, with its own decisions or with those and the history of the model it was made from."""
        from hitin.export.model import OnnxModel

        model = OnnxModel.load(Path(folder), device)
        loaded = cls._of_model(model, device)
        history = None if model_folder is None else read_history(Path(model_folder))
        loaded._set(model, read_decisions(Path(model_folder or folder) / DECISIONS, model.taxonomy), history)
        return loaded

    @classmethod
    def _of_model(cls, model: Model, device: str) -> Self:
        """One with the settings that a model was trained with."""
        options = {name: value for section in model.run.to_dict().values() for name, value in section.items()}
        return cls(model.taxonomy, device=device, **options)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def _fitted(self) -> Model:
        if not self.__sklearn_is_fitted__():
            raise InputError(
                "the classifier has not been trained", kind="not-fitted", remedy="Call fit, or load a model."
            )
        return self.model_

    def _read_taxonomy(self) -> Taxonomy:
        if self.taxonomy is None:
            raise InputError(
                "the classifier has no taxonomy", kind="no-taxonomy", remedy="Give it a Taxonomy, or its file."
            )
        if not isinstance(self.taxonomy, Taxonomy | str | Path):
            raise InputError(
                f"the taxonomy of the classifier is neither a Taxonomy nor a file: {shown(self.taxonomy)}",
                kind="bad-taxonomy",
                remedy="Make one with Taxonomy.from_nested of nested mappings, Taxonomy.from_edges of pairs "
                "of names, or Taxonomy.from_paths of lists of names.",
            )
        return self.taxonomy if isinstance(self.taxonomy, Taxonomy) else Taxonomy.read(self.taxonomy)


def _tell_unheeded(settings: DecisionSettings, watcher: Watcher | None) -> None:
    """The settings of decisions that need validation documents, where there are none."""
    names = settings.unheeded()
    if names and is_main_process():
        message = f"nothing comes of {', '.join(names)}: there are no validation documents to tune decisions on"
        if watcher:
            watcher.note(message)
        else:
            warnings.warn(message, InputWarning, stacklevel=4)


@contextmanager
def _folder(out: str | Path | None) -> Iterator[Path]:
    """The folder to work in: the one that was asked for, or one that goes away."""
    if out is not None:
        with training_in(Path(out)):
            yield Path(out)
        return
    with tempfile.TemporaryDirectory(prefix="hitin-") as temporary:
        yield Path(temporary)
