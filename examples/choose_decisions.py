"""One model, many ways to answer: policies, a precision that is needed, and saying nothing rather than something wrong.

A model gives each label a probability. Which labels a document gets is decided after that, and can be decided anew
without training. The script trains a small model, then shows what each way gives on test documents:

    python examples/choose_decisions.py
    python examples/choose_decisions.py --model MODEL --tune val.csv --test test.csv

The second line asks a model of yours, a folder of `hitin train`.
"""

import argparse
import sys
from pathlib import Path

from hitin import Document, HierarchicalTextClassifier, HitinError, read_documents
from hitin.decisions import Decisions
from hitin.label_paths import taxonomy_of

DATA = Path(__file__).resolve().parent / "diagnoses"
POLICIES = ("raw", "consistent", "top-down", "single-path", "top-k")
WISHED = (0.9, 0.95, 0.99)  # precisions


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="the folder of a model; otherwise one is trained")
    parser.add_argument(
        "--train", default=DATA / "train.csv", help="what to train on, without --model; labels are paths"
    )
    parser.add_argument(
        "--tune", help="documents to choose on, which the model was not trained on; otherwise a fifth of --train"
    )
    parser.add_argument("--test", default=DATA / "test.csv", help="documents to score, which had no part in any choice")
    parser.add_argument("--text-key", help="the column of the texts, if not text")
    parser.add_argument("--label-key", help="the column of the labels, if not label")
    parser.add_argument("--epochs", type=int, default=10)
    chosen = parser.parse_args()
    if chosen.model and not chosen.tune:
        parser.error("--model needs --tune: documents that it was not trained on")
    return chosen


Labelled = tuple[list[str], list[tuple[str, ...]]]  # texts, and the labels of each


def parted(documents: list[Document]) -> Labelled:
    return [document.text for document in documents], [document.labels for document in documents]


def show(name: str, decisions: Decisions, classifier: HierarchicalTextClassifier, test: Labelled) -> None:
    """What this way gives on the test documents."""
    classifier.decisions_ = decisions
    scores = classifier.evaluate(*test)
    nothing = sum(not found for found in classifier.predict(test[0])) / len(test[0])
    print(
        f"{name:<24} {scores.micro_f1:8.3f} {scores.macro_f1:8.3f} {scores.precision:9.3f} {scores.recall:6.3f}"
        f" {scores.path_consistency:10.3f} {nothing:7.1%}   {decisions.describe()}"
    )


def main() -> None:
    chosen = options()
    keys = {"text_key": chosen.text_key, "label_key": chosen.label_key}
    tested = list(read_documents(chosen.test, **keys))
    held = list(read_documents(chosen.tune, **keys)) if chosen.tune else []
    if chosen.model:
        classifier = HierarchicalTextClassifier.load(chosen.model)
    else:
        learnt = list(read_documents(chosen.train, **keys))
        if not held:
            held = learnt[::5]
            del learnt[::5]
        classifier = HierarchicalTextClassifier(
            taxonomy_of([*learnt, *held, *tested]), encoder="bag", epochs=chosen.epochs
        )
        classifier.fit(*parted(learnt), parted(held))
    tune_on, test = parted(held), parted(tested)
    print(f"{'':<24} micro-F1 macro-F1 precision recall consistent nothing")

    # 1. Each policy with what suits it best. `tune` leaves the choice in `decisions_`, and answers all that was tried.
    show("as in papers", Decisions("raw", 0.5), classifier, test)
    for policy in POLICIES:
        show(policy, classifier.tune(*tune_on, policy=policy).decisions, classifier, test)
    best = classifier.tune(*tune_on).decisions
    show("auto", best, classifier, test)

    # 2. A wrong label costs more than a missing one: the most recall with a precision.
    for precision in WISHED:
        tuned = classifier.tune(*tune_on, wished_precision=precision)
        show(f"precision {precision:.0%}{'' if tuned.reached else ' (not met)'}", tuned.decisions, classifier, test)

    # 3. The parent where the child is not sure, and nothing where nothing is: no label below a probability.
    for stop in (0.5, 0.8):
        show(f"one path, stop at {stop}", best.with_options(policy="single-path", stop=stop), classifier, test)


if __name__ == "__main__":
    try:
        main()
    except HitinError as error:  # what is wrong with the input, and the remedy
        sys.exit(f"error: {error}")
