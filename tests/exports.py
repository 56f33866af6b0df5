"""Small trained models and their exports, for the tests of both."""

from pathlib import Path
from typing import Any

from hitin import HierarchicalTextClassifier
from hitin.export.exporting import Exported, export_model
from tests.training_harness import BERT, TAXONOMY, classifier, documents

TEXTS = ["", "the bark", "purr", "fin gill swim the and a is bark leash bone damp green " * 3, "unheard words", "grey"]
BAG: dict[str, Any] = {"encoder": "bag", "embedding": 8, "min_count": 1, "batch_size": 8, "learning_rate": 0.02}


def trained_on_bag(**options: Any) -> HierarchicalTextClassifier:
    """A flat classifier on a bag, the quickest to train and to export."""
    chosen: dict[str, Any] = {"method": "flat", "epochs": 3} | BAG | options
    return HierarchicalTextClassifier(TAXONOMY, device="cpu", **chosen).fit(*documents(60), documents(40, seed=1))


def trained_on_words(**options: Any) -> HierarchicalTextClassifier:
    """On TextRCNN."""
    return classifier(**options).fit(*documents(60), documents(40, seed=1))


def trained_on_bert(bert: str, **options: Any) -> HierarchicalTextClassifier:
    """On a tiny transformer."""
    chosen = BERT | {"encoder": bert, "method": "flat", "learning_rate": 0.02} | options
    chosen = {name: value for name, value in chosen.items() if name != "width" or chosen["method"] == "hitin"}
    return HierarchicalTextClassifier(TAXONOMY, device="cpu", **chosen).fit(*documents(60), documents(40, seed=1))


def exported(trained: HierarchicalTextClassifier, folder: Path, **options: Any) -> Exported:
    """A model saved in a folder, and its export."""
    trained.save(folder)
    return export_model(folder, **options)
