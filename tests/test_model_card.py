"""The card of a model: what a person and a model hub need to know, with and without a history."""

import re
from copy import copy
from pathlib import Path
from typing import Any

import pytest

import hitin
from hitin.decisions import Decisions, Policy
from hitin.decisions.policies import POLICIES
from hitin.estimator import HierarchicalTextClassifier
from hitin.model_card import model_card
from hitin.model_folder import CARD
from hitin.settings import Run
from hitin.taxonomy import Taxonomy

TEXTS = ["a broken leg", "the ball", "a diet", "offside", "a cut", "a goal"]
LABELS = ["Injury", "Football", "Diet", "Football", "Injury", "Football"]
EDGES = [(None, "Health"), (None, "Sport"), ("Health", "Injury"), ("Health", "Diet"), ("Sport", "Football")]
TINY: dict[str, Any] = {"hidden": 4, "embedding": 8, "filters": 4, "width": 4, "min_count": 1, "epochs": 2}


def fitted(edges: list[tuple[str | None, str]] = EDGES, **options: object) -> HierarchicalTextClassifier:
    return HierarchicalTextClassifier(Taxonomy.from_edges(edges), **TINY | options)


@pytest.fixture(scope="module")
def classifier() -> HierarchicalTextClassifier:
    return fitted().fit(TEXTS, LABELS, (TEXTS[:2], LABELS[:2]))


def section(card: str, title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", card, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def test_a_card_begins_with_what_model_hubs_read(classifier: HierarchicalTextClassifier) -> None:
    card = model_card(classifier)
    _, metadata, page = card.split("---\n", 2)
    assert {"library_name: hitin", "pipeline_tag: text-classification", "- hitin"} <= set(metadata.splitlines())
    assert "base_model" not in metadata
    assert page.lstrip().startswith("# A classifier of texts into 5 labels")


def test_a_card_tells_of_labels_training_scores_and_decisions(classifier: HierarchicalTextClassifier) -> None:
    card = model_card(classifier)
    assert "5 labels on 2 levels, a tree" in card
    assert "| 2 | 3 | Injury, Diet, Football |" in card
    training = section(card, "Training")
    assert "Trained on 6 documents for 2 epochs." in training
    chosen = classifier.history_.chosen
    assert f"Epoch {chosen['epoch']} was the best on 2 documents" in training
    assert f"| {chosen['micro_f1']:.4f} | {chosen['macro_f1']:.4f} | {chosen['val_loss']:.4f} |" in training
    assert f"In short: {classifier.decisions_.describe()}." in section(card, "Decisions")
    assert f"hitin {hitin.__version__} with torch" in section(card, "Settings")


def test_the_settings_of_a_card_can_be_trained_with(classifier: HierarchicalTextClassifier, tmp_path: Path) -> None:
    toml = re.search(r"```toml\n(.*?)```", model_card(classifier), re.DOTALL)
    assert toml
    (tmp_path / "run.toml").write_text(toml[1])
    assert Run.of(preset=tmp_path / "run.toml") == classifier.model_.run


def test_the_same_model_has_the_same_card(classifier: HierarchicalTextClassifier) -> None:
    again = fitted().fit(TEXTS, LABELS, (TEXTS[:2], LABELS[:2]))
    assert model_card(again) == model_card(classifier)


def test_a_model_that_was_loaded_has_a_card_too(classifier: HierarchicalTextClassifier, tmp_path: Path) -> None:
    classifier.save(tmp_path / "a")
    loaded = HierarchicalTextClassifier.load(tmp_path / "a")
    loaded.decisions_ = Decisions(policy="raw", threshold=0.25)
    loaded.save(tmp_path / "b")
    card = (tmp_path / "b" / CARD).read_text()
    assert "whether or not those above it are. In short: raw, threshold 0.25." in section(card, "Decisions")


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_is_told(policy: Policy, classifier: HierarchicalTextClassifier) -> None:
    changed = copy(classifier)
    changed.decisions_ = Decisions(policy=policy, threshold=(0.25, 0.5), stop=0.1)
    told = section(model_card(changed), "Decisions")
    assert changed.decisions_.describe() in told
    assert "chosen on validation documents" not in told


def test_without_validation_documents_no_scores_are_claimed() -> None:
    card = model_card(fitted(validation=0.0).fit(TEXTS, LABELS))
    assert "There were no validation documents" in section(card, "Training")
    assert "micro-F1" not in card


def test_what_is_not_known_of_the_training_is_not_claimed() -> None:
    classifier = fitted(validation=0.0, epochs=1).fit(TEXTS, LABELS)
    assert "for 1 epoch." in section(model_card(classifier), "Training")
    del classifier.history_, classifier.sizes_
    assert "Not known" in section(model_card(classifier), "Training")


def test_names_of_labels_cannot_break_the_page() -> None:
    edges: list[tuple[str | None, str]] = [(None, "a|b"), (None, "<script>"), (None, "x\x1b[0m*y*")]
    card = model_card(fitted(edges).fit(["a", "b", "c"], ["a|b", "<script>", "x\x1b[0m*y*"]))
    (row,) = [line for line in card.splitlines() if line.startswith("| 1 |")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 4
    assert "\\<script\\>" in row
    assert "\x1b" not in row
    dag = fitted([("A", "C"), ("B", "C")]).fit(["a", "b"], ["C", "C"])
    assert "some of them under several parents" in model_card(dag)
