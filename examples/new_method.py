"""A method of your own in thirty lines, beside `flat` and HiTIN on the same documents, with several seeds.

A method takes the document's vector and gives each label a logit; text encoder, loss, training, decisions and scores
are there already. This one lets a label listen to its parents and children: its logit is its own score, plus a learnt
part of theirs.

    python examples/new_method.py
    python examples/new_method.py --train my-train.csv --test my-test.csv --seeds 5 --encoder textrcnn

docs/methods.md has the whole interface, and how a method comes to be known to the command line.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import torch
from torch import Tensor, nn

from hitin import HierarchicalTextClassifier, HitinError, Taxonomy, read_documents
from hitin.encoders.interface import Encoded, Widths
from hitin.label_paths import taxonomy_of
from hitin.methods import METHODS, NeuralMethod
from hitin.methods.interface import Method
from hitin.metrics import Scores

DATA = Path(__file__).resolve().parent / "diagnoses"


@dataclass(frozen=True)
class NeighboursSettings:
    """Each field is an option by name, in Python and as `--set`."""

    dropout: float = 0.2


class Neighbours(Method):
    """logits = s + a (sum of the parents' s) + c (mean of the children's s), with s = W dropout(H) + b"""

    def __init__(self, taxonomy: Taxonomy, widths: Widths, settings: NeighboursSettings) -> None:
        super().__init__(taxonomy, widths, settings)
        self.register_buffer("edges", torch.tensor(taxonomy.edges), persistent=False)  # (m, 2), parents and children
        self.register_buffer("families", torch.tensor(taxonomy.child_counts).clamp(min=1), persistent=False)
        self.dropout = nn.Dropout(settings.dropout)
        self.classifier = nn.Linear(widths.document, len(taxonomy))  # starts at the labels' frequencies
        self.shares = nn.Parameter(torch.zeros(2))  # at first it is flat

    def forward(self, text: Encoded) -> Tensor:
        own: Tensor = self.classifier(self.dropout(text.vector))  # (B, |Y|)
        parents, children = self.get_buffer("edges").T
        from_above = torch.zeros_like(own).index_add(1, children, own[:, parents])  # (B, |Y|)
        from_below = torch.zeros_like(own).index_add(1, parents, own[:, children]) / self.get_buffer("families")
        return own + self.shares[0] * from_above + self.shares[1] * from_below


METHODS["neighbours"] = NeuralMethod(NeighboursSettings, Neighbours)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", default=DATA / "train.csv", help="documents whose labels are paths")
    parser.add_argument("--test", default=DATA / "test.csv", help="documents to score")
    parser.add_argument("--text-key", help="the column of the texts, if not text")
    parser.add_argument("--label-key", help="the column of the labels, if not label")
    parser.add_argument("--methods", nargs="+", default=["flat", "hitin", "neighbours"])
    parser.add_argument("--encoder", default="bag")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    return parser.parse_args()


def shown(values: Sequence[float]) -> str:
    """The mean in points, and the deviation over seeds."""
    return f"{100 * mean(values):6.2f}" + (f" ± {100 * stdev(values):.2f}" if len(values) > 1 else "")


def main() -> None:
    chosen = options()
    keys = {"text_key": chosen.text_key, "label_key": chosen.label_key}
    train, test = list(read_documents(chosen.train, **keys)), list(read_documents(chosen.test, **keys))
    taxonomy = taxonomy_of([*train, *test])
    print(f"{taxonomy}, {len(train)} documents to train on, {len(test)} to test on, seeds: {chosen.seeds}")
    print(f"{'method':<12} {'micro-F1':>14} {'macro-F1':>14}")
    for method in chosen.methods:
        found: list[Scores] = []
        for seed in range(chosen.seeds):
            settings = {"method": method, "encoder": chosen.encoder, "epochs": chosen.epochs, "seed": seed}
            classifier = HierarchicalTextClassifier(taxonomy, **settings)
            classifier.fit([each.text for each in train], [each.labels for each in train])
            found.append(classifier.evaluate([each.text for each in test], [each.labels for each in test]))
        micro, macro = [each.micro_f1 for each in found], [each.macro_f1 for each in found]
        print(f"{method:<12} {shown(micro):>14} {shown(macro):>14}")


if __name__ == "__main__":
    try:
        main()
    except HitinError as error:  # what is wrong with the input, and the remedy
        sys.exit(f"error: {error}")
