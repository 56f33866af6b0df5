"""Learning from linear models that have not seen a document, and from two readings of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from torch.nn import functional

from hitin import InputError, teaching, token_cache
from hitin.batches import Judgements
from hitin.chance import seed_chance
from hitin.inputs import Documents
from hitin.labels import LabelReader
from hitin.losses import LossSettings, disagreement
from hitin.methods.linear import LinearModel
from hitin.settings import Run
from hitin.teaching import judged
from hitin.token_cache import Judged, TokenCache
from hitin.tokens import Ragged
from hitin.training.interrupts import Interrupts
from hitin.training.objective import Objective
from hitin.watcher import Watcher
from tests.training_harness import TAXONOMY, TINY, are_equal, classifier, documents, fitted, model, weights


class Notes(Watcher):
    """What training tells."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)


def given(count: int, seed: int = 0) -> Documents:
    texts, labels = documents(count, seed)
    reader = LabelReader(TAXONOMY)
    return Documents(texts, [reader.read(each).ids for each in labels])


def truth_of(some: Documents) -> NDArray[np.float32]:
    return Ragged.of(some.labels).indicators(np.arange(len(some.texts)), len(TAXONOMY))


def table_of(found: Judged, documents: int) -> NDArray[np.float32]:
    """(documents, |Y|)"""
    labels, probabilities = found
    table = np.zeros((documents, len(TAXONOMY)), np.float32)
    owners, columns = labels.pairs(np.arange(documents))
    table[owners, columns] = probabilities
    return table


def test_each_document_is_judged_by_a_model_of_the_other_parts() -> None:
    """Against a loop with scikit-learn's isotonic regression, whose steps lie near our line through their middles."""
    some = given(200)
    found = table_of(judged(TAXONOMY, some, Watcher()), 200)
    parts = np.random.default_rng(0).permutation(200) % teaching.PARTS
    levels = np.array(TAXONOMY.levels)
    for part in range(teaching.PARTS):
        held, others = np.flatnonzero(parts == part), np.flatnonzero(parts != part)
        with Interrupts() as interrupts:
            run = Run.of(method="linear")
            linear = LinearModel.fitted(TAXONOMY, run, some.take(others.tolist()), Watcher(), interrupts)
        logits, truth = linear.logits(some.take(held.tolist()).texts), truth_of(some)[held]
        for level in np.unique(levels):
            columns = levels == level
            regression = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
            regression.fit(logits[:, columns].ravel(), truth[:, columns].ravel())
            wanted = regression.predict(logits[:, columns].ravel()).reshape(len(held), -1)
            assert np.abs(found[held][:, columns] - wanted).mean() < 0.05


def test_what_a_document_alone_shows_is_not_known_to_its_judge() -> None:
    """Words that occur in one document each: a model that had seen it would know its labels by heart."""
    chance = np.random.default_rng(1)
    labels = [LabelReader(TAXONOMY).read([str(name)]).ids for name in chance.choice(["Cat", "Moss"], 100)]
    secrets = Documents([f"only{number}a only{number}b common words" for number in range(100)], labels)
    table, truth = table_of(judged(TAXONOMY, secrets, Watcher()), 100), truth_of(secrets) > 0
    assert table[truth].mean() == pytest.approx(0.5, abs=0.1)
    seen = table_of(judged(TAXONOMY, given(200), Watcher()), 200)
    assert seen[truth_of(given(200)) > 0].mean() > 0.8


def test_aims_are_partly_the_labels_and_partly_the_judgement() -> None:
    labels = Ragged.of([[0, 2], [], [1]])
    judgements = Judgements(labels, np.array([0.5, 0.25, 1.0], np.float32), 0.2)
    truth = np.array([[1, 0, 0], [0, 1, 0]], np.float32)
    found = judgements.aims(np.array([2, 0]), truth)
    assert found == pytest.approx(np.array([[0.8, 0.2, 0], [0.1, 0.8, 0.05]]))


def objective_of(batch_settings: LossSettings, **options: Any) -> tuple[Objective, Any]:
    built = model(Run.of(**TINY | {"validation": 0.1} | options))
    texts, labels = documents(12)
    numbers = [LabelReader(TAXONOMY).read(each).ids for each in labels]
    examples = built.examples(texts, numbers)
    edges = torch.from_numpy(np.array(TAXONOMY.edges))
    return Objective(built.network.train(), batch_settings, edges, None), examples


STEADY: dict[str, Any] = {"embedding_dropout": 0, "token_dropout": 0, "leaf_dropout": 0, "dropout": 0}


def test_the_loss_is_that_of_the_aims() -> None:
    objective, examples = objective_of(LossSettings(regularisation=0), **STEADY)
    labels = Ragged.of([range(len(TAXONOMY))] * 12)
    probabilities = np.random.default_rng(0).random(12 * len(TAXONOMY)).astype(np.float32)
    batch = examples.judged(Judgements(labels, probabilities, 0.4)).batch(np.arange(12))
    aims = 0.6 * batch.targets + 0.4 * torch.from_numpy(probabilities).reshape(12, -1)
    wanted = functional.binary_cross_entropy_with_logits(objective.network(batch)[1], aims)
    torch.testing.assert_close(objective(batch, 0), wanted)
    assert not torch.equal(batch.targets, batch.aims)


def test_consistency_weighs_how_far_two_readings_are_apart() -> None:
    objective, examples = objective_of(LossSettings(consistency=2, regularisation=0))
    batch = examples.batch(np.arange(12))
    seed_chance(3, torch.device("cpu"))
    found = objective(batch, 0)
    seed_chance(3, torch.device("cpu"))
    one, two = objective.network(batch.twice())[1].split(12)
    losses = [functional.binary_cross_entropy_with_logits(each, batch.targets) for each in (one, two)]
    assert not torch.equal(one, two)
    torch.testing.assert_close(found, torch.stack(losses).mean() + 2 * disagreement(one, two))


def test_readings_without_dropout_agree_and_the_loss_is_the_usual_one() -> None:
    twice, examples = objective_of(LossSettings(consistency=2), **STEADY)
    once, _ = objective_of(LossSettings(), **STEADY)
    batch = examples.batch(np.arange(12))
    torch.testing.assert_close(twice(batch, 0), once(batch, 0))


@pytest.mark.parametrize("method", ["flat", "hiagm-tp", "hiagm-la", "htcinfomax", "himatch", "hitin"])
def test_every_method_learns_from_a_teacher_and_from_two_readings(method: str) -> None:
    plain = weights(fitted(24, method=method, epochs=1))
    options: list[dict[str, Any]] = [{"linear_teacher": 0.3}, {"consistency": 1.0}, {"smoothing": 0.1}]
    for option in options:
        found = weights(fitted(24, method=method, epochs=1, **option))
        assert found.keys() == plain.keys()
        assert not are_equal(found, plain), option
        assert all(tensor.isfinite().all() for tensor in found.values())


def test_very_many_labels_go_without_and_say_so(tmp_path: Path) -> None:
    notes = Notes()
    options: dict[str, Any] = {"consistency": 1.0, "smoothing": 0.1, "linear_teacher": 0.3, "labels_at_once": 2}
    found = classifier(**options, epochs=1).fit(*documents(24), out=tmp_path / "a", watcher=notes)
    assert any("goes without consistency, smoothing and a linear teacher" in note for note in notes.notes)
    assert are_equal(weights(found), weights(fitted(24, epochs=1, labels_at_once=2)))


def test_documents_without_words_in_common_have_no_teacher() -> None:
    texts = [f"word{number}" for number in range(12)]
    with pytest.raises(InputError) as caught:
        classifier(linear_teacher=0.3, epochs=1).fit(texts, documents(12)[1])
    assert "Leave out linear_teacher" in str(caught.value)


# What is kept.


def test_a_judgement_is_kept_for_the_same_documents_and_labels_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_cache, "_FEWEST_CHARACTERS", 1)
    cache = TokenCache(tmp_path)

    def kept(some: Documents) -> tuple[Judgements, bool]:
        notes = Notes()
        cache.watcher = notes
        found = teaching.judgements(TAXONOMY, some, 0.3, cache, notes)
        return found, any("taken from the cache" in note for note in notes.notes)

    first, was_known = kept(given(30))
    assert not was_known
    again, is_known = kept(given(30))
    assert is_known
    assert again.labels.values.tolist() == first.labels.values.tolist()
    assert again.probabilities.tolist() == first.probabilities.tolist()
    others = Documents(given(30).texts, list(reversed(given(30).labels)))
    assert not kept(others)[1]
    for path in tmp_path.glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    assert not kept(given(30))[1]
