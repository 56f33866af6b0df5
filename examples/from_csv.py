"""From a CSV of your own to a model that is scored, asked and kept: all in Python.

The CSV has a column of texts and one of labels, which are paths such as `Device > Battery`, several of them with `|` in
between. The tree is made out of these paths; where labels are single names, `--taxonomy` is the file of the tree. A
part of the documents is put aside to test on.

    python examples/from_csv.py
    python examples/from_csv.py mine.csv --text-key body --label-key category --out my-model

The default is a chapter of ICD-10-CM: 1,174 diagnoses in 79 categories, some seconds on a CPU.
"""

import argparse
import random
import sys
from pathlib import Path

from hitin import Document, HierarchicalTextClassifier, HitinError, LabelReader, Taxonomy, read_documents
from hitin.answers import path_of
from hitin.label_paths import taxonomy_of

HERE = Path(__file__).resolve().parent
TEST_PART = 0.2  # of the documents


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", nargs="?", default=HERE / "diagnoses" / "train.csv", help="the table of documents")
    parser.add_argument("--text-key", help="the column of the texts, if not text")
    parser.add_argument("--label-key", help="the column of the labels, if not label")
    parser.add_argument("--encoding", help="of the table, if not UTF-8, such as windows-1252")
    parser.add_argument("--taxonomy", help="the file of the tree, where labels are no paths")
    parser.add_argument("--encoder", default="bag", help="bag, textrcnn, or the name or folder of a transformer")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", default="runs/from-csv", help="the folder of the model")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def split(documents: list[Document], seed: int) -> tuple[list[Document], list[Document]]:
    """Documents to train on, and those to test on. The same text is never on both sides."""
    texts = sorted({document.text for document in documents})
    random.Random(seed).shuffle(texts)
    tested = set(texts[: round(TEST_PART * len(texts))])
    train = [document for document in documents if document.text not in tested]
    return train, [document for document in documents if document.text in tested]


def paths_of(labels: set[str], taxonomy: Taxonomy) -> str:
    """The ends of the paths that labels make up, each with what is above it."""
    ends = LabelReader(taxonomy).read(labels).deepest
    return " | ".join(path_of(taxonomy, label) for label in ends) or "nothing"


def main() -> None:
    chosen = options()
    keys = {"text_key": chosen.text_key, "label_key": chosen.label_key, "encoding": chosen.encoding}
    documents = list(read_documents(chosen.csv, **keys))
    taxonomy = Taxonomy.read(chosen.taxonomy) if chosen.taxonomy else taxonomy_of(documents)
    train, test = split(documents, chosen.seed)
    print(f"{taxonomy}, {len(train)} documents to train on, {len(test)} to test on")

    # A tenth of the training documents is held out by itself, to choose the best epoch and how labels are given.
    classifier = HierarchicalTextClassifier(taxonomy, encoder=chosen.encoder, epochs=chosen.epochs, seed=chosen.seed)
    classifier.fit([each.text for each in train], [each.labels for each in train])
    print(f"labels are given by: {classifier.decisions_.describe()}")

    scores = classifier.evaluate([each.text for each in test], [each.labels for each in test])
    for name in ("micro_f1", "macro_f1", "precision", "recall"):
        low, high = scores.intervals.get(name, (0.0, 1.0))  # of a single document nothing is known
        print(f"{name:<10} {scores.by_name()[name]:.3f}   95 % interval {low:.3f} to {high:.3f}")

    for document, found in zip(test[:3], classifier.predict([each.text for each in test[:3]]), strict=True):
        print(f"\n{document.text}\n  is   {' | '.join(document.labels)}\n  got  {paths_of(found, taxonomy)}")

    classifier.save(chosen.out)
    print(f"\nthe model is in {chosen.out}; try it with: hitin serve {chosen.out} --open")


if __name__ == "__main__":
    try:
        main()
    except HitinError as error:  # what is wrong with the input, and the remedy
        sys.exit(f"error: {error}")
