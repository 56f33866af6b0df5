"""Decisions on real documents: what `linear` reaches when they are tuned, and what every way to decide must keep."""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from hitin import HierarchicalTextClassifier, Taxonomy, read_documents
from hitin.decisions import Decisions, DecisionSettings, tune
from hitin.decisions.goals import Metric
from hitin.decisions.policies import POLICIES
from hitin.evaluation import truth_table
from hitin.inputs import documents_of
from hitin.metrics import Tally

DATA = Path(__file__).parents[2] / "shared" / "data"
REACHED = {"arxiv46985": (0.700, 0.570), "debtags-topic": (0.690, 0.300), "goemotions": (0.610, 0.440)}
"""Micro and macro F1 on test documents."""
FEW = 4000  # documents to train on in the quick test

Part = tuple[NDArray[np.float32], NDArray[np.bool_]]

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data sets are not on this machine")


def split(name: str, part: str, most: int | None = None) -> tuple[list[str], list[tuple[str, ...]]]:
    documents = list(read_documents(DATA / name / f"{part}.jsonl.xz"))[:most]
    return [document.text for document in documents], [document.labels for document in documents]


def scored(name: str, most: int | None = None) -> tuple[HierarchicalTextClassifier, dict[str, Part]]:
    """`linear`, trained and tuned, and its logits of validation and test documents."""
    classifier = HierarchicalTextClassifier(DATA / name / "taxonomy.tsv", method="linear")
    classifier.fit(*split(name, "train", most), split(name, "val"))
    parts = {}
    for part in ("val", "test"):
        documents = documents_of(classifier.taxonomy_, *split(name, part), part)
        truth = truth_table(documents.labels, classifier.taxonomy_)
        parts[part] = (classifier.model_.logits(documents.texts), truth)
    return classifier, parts


def scores(decisions: Decisions, part: Part, taxonomy: Taxonomy) -> Any:
    tally = Tally(taxonomy, blocks=0)
    tally.add(decisions.decide(part[0], taxonomy), part[1])
    return tally.scores(resamples=0)


def value(found: Any, metric: Metric) -> float:
    if metric == "hierarchical":
        return float(found.hierarchical_f1)
    return float(
        {"mean": (found.micro_f1 + found.macro_f1) / 2, "micro": found.micro_f1, "macro": found.macro_f1}[metric]
    )


def check_promises(parts: dict[str, Part], taxonomy: Taxonomy) -> None:
    """What holds for whatever scores."""
    goals: tuple[Metric, ...] = get_args(Metric)
    for goal in goals:
        half = value(scores(Decisions("raw"), parts["val"], taxonomy), goal)
        tuned = tune(*parts["val"], taxonomy, DecisionSettings(tune_for=goal)).decisions
        assert value(scores(tuned, parts["val"], taxonomy), goal) >= half
        for policy in POLICIES:
            found = [scores(tuned.with_options(policy=policy), parts[part], taxonomy) for part in parts]
            assert policy == "raw" or all(each.path_consistency == 1.0 for each in found)
    open_best = tune(*parts["val"], taxonomy, DecisionSettings(policy="raw")).decisions
    closed_best = tune(*parts["val"], taxonomy, DecisionSettings(policy="consistent")).decisions
    for raw, consistent in ((Decisions("raw"), Decisions("consistent")), (open_best, closed_best)):
        gain = scores(consistent, parts["test"], taxonomy).micro_f1 - scores(raw, parts["test"], taxonomy).micro_f1
        assert gain >= -0.001


def test_tuned_decisions_keep_their_promises_on_real_documents() -> None:
    classifier, parts = scored("goemotions", FEW)
    check_promises(parts, classifier.taxonomy_)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", REACHED)
def test_linear_reaches_what_a_practitioner_would_expect(name: str) -> None:
    classifier, parts = scored(name)
    found = scores(classifier.decisions_, parts["test"], classifier.taxonomy_)
    assert (found.micro_f1, found.macro_f1) >= (REACHED[name][0], 0)
    assert found.macro_f1 >= REACHED[name][1]
    check_promises(parts, classifier.taxonomy_)
