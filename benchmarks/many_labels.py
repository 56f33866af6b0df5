"""How training and scoring grow with very many labels: ICD-10-CM cut at 3 to 7 characters of its codes.

    python benchmarks/many_labels.py --out FOLDER
    python benchmarks/many_labels.py --rows 6:1:0 6:1:4096

A row is characters:epochs:negatives, in a process of its own that does what `hitin train` does: the coding tree, the
epochs, validation, tuning, the saved model; then it scores. The peak memory is that of the whole process until the
model is saved, and once more with scoring. With negatives, so many of the labels that no document of a batch has count,
chosen by chance; with 0 all labels do. One document is the median of single ones, decisions included: by those that
were tuned, which look at all labels, and by `top-k`, which looks at the best.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hitin.coding_tree import coding_tree
from hitin.datasets.icd10 import Icd10, icd10
from hitin.documents import Document
from hitin.estimator import HierarchicalTextClassifier
from hitin.inputs import Documents, documents_of
from hitin.taxonomy import Taxonomy
from measuring import measured, peak_kilobytes
from plots import lines
from reporting import Report, begun

ROWS = [f"{characters}:1:{negatives}" for negatives in (0, 4096) for characters in range(3, 8)] + ["6:3:0", "6:3:4096"]
SINGLE, BULK = 100, 2_000  # documents that are scored one by one, and together
K = 3  # labels of `top-k`
TINY: dict[str, Any] = {"embedding": 8, "width": 8, "vocabulary": 500, "runs": 1, "labels_at_once": 1_000}
TINY_DOCUMENTS = 60


def measure(arguments: argparse.Namespace) -> None:
    """One row, in a process of its own."""
    characters, epochs, negatives = map(int, arguments.measure.split(":"))
    data = icd10(characters)
    started = time.perf_counter()
    coding_tree(data.taxonomy, 2)
    found: dict[str, Any] = {"labels": len(data.taxonomy), "tree": time.perf_counter() - started}
    options: dict[str, Any] = {"epochs": epochs, "negatives": negatives} | (TINY if arguments.tiny else {})
    classifier = HierarchicalTextClassifier(data.taxonomy, preset="icd10", device=arguments.device, **options)
    limit = TINY_DOCUMENTS if arguments.tiny else None
    found |= trained(classifier, data, limit) | scored(classifier, data.test[:limit])
    print(json.dumps(found))


def trained(classifier: HierarchicalTextClassifier, data: Icd10, limit: int | None) -> dict[str, float]:
    """All that `hitin train` does."""
    given = numbered(data.train[:limit], data.taxonomy, "training")
    held = numbered(data.val[:limit], data.taxonomy, "validation")
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        classifier.fit_documents(given, held, out=Path(folder, "model"))
        whole = time.perf_counter() - started
    history = classifier.history_
    return {"epoch": history.seconds / len(history.epochs), "whole": whole, "gigabytes": peak_kilobytes() / 1e6}


def numbered(documents: Sequence[Document], taxonomy: Taxonomy, what: str) -> Documents:
    texts, labels = [document.text for document in documents], [document.labels for document in documents]
    return documents_of(taxonomy, texts, labels, what)


def scored(classifier: HierarchicalTextClassifier, test: Sequence[Document]) -> dict[str, float]:
    """Milliseconds of one document, documents a second, and F1."""
    texts = [document.text for document in test]
    found = {"one": median_milliseconds(classifier.predict, texts), "bulk": rate(classifier.predict, texts)}
    scores = classifier.evaluate(texts, [document.labels for document in test])
    found |= {name: getattr(scores, name) for name in ("micro_f1", "macro_f1", "hierarchical_f1")}
    classifier.decisions_ = classifier.decisions_.with_options(policy="top-k", k=K)
    found |= {"one_best": median_milliseconds(classifier.predict, texts), "bulk_best": rate(classifier.predict, texts)}
    return found | {"all_gigabytes": peak_kilobytes() / 1e6}


def median_milliseconds(predict: Callable[[list[str]], object], texts: Sequence[str]) -> float:
    predict(list(texts[:1]))
    return 1000 * statistics.median(seconds(predict, [text]) for text in texts[:SINGLE])


def rate(predict: Callable[[list[str]], object], texts: Sequence[str]) -> float:
    some = list(texts[:BULK])
    return len(some) / seconds(predict, some)


def seconds(predict: Callable[[list[str]], object], texts: list[str]) -> float:
    started = time.perf_counter()
    predict(texts)
    return time.perf_counter() - started


def table(report: Report, arguments: argparse.Namespace, given: Sequence[str]) -> dict[str, dict[str, Any]]:
    """A line for each row, as it comes."""
    own = ("epochs", "negatives", "characters", "labels", "coding tree, s", "an epoch, s", "hitin train, s", "peak, GB")
    single = ("one document, ms", "by top-k, ms", "documents/s", "by top-k", "peak with scoring, GB")
    report.header(*own, *single, "micro-F1", "macro-F1", "hierarchical F1")
    found = {}
    for row in arguments.rows:
        characters, epochs, negatives = row.split(":")
        found[row] = one = measured(__file__, row, *given)
        cells = [epochs, negatives if int(negatives) else "all", characters, f"{one['labels']:,}", f"{one['tree']:.1f}"]
        cells += [f"{one['epoch']:.0f}", f"{one['whole']:.0f}", f"{one['gigabytes']:.1f}"]
        cells += [f"{one['one']:.1f}", f"{one['one_best']:.1f}", f"{one['bulk']:.0f}", f"{one['bulk_best']:.0f}"]
        scores = [f"{100 * one[name]:.2f}" for name in ("micro_f1", "macro_f1", "hierarchical_f1")]
        report.row(*cells, f"{one['all_gigabytes']:.1f}", *scores)
    return found


def plots(report: Report, found: dict[str, dict[str, Any]]) -> None:
    """Growth with the labels: a line for all labels and one for chosen negatives, of rows of one epoch."""
    drawn = {"epoch": ("Seconds of an epoch", "s"), "gigabytes": ("Peak memory of hitin train", "GB")}
    drawn |= {"one": ("One document", "ms"), "tree": ("The coding tree", "s")}
    for name, (title, unit) in drawn.items():
        series: dict[str, list[tuple[float, float]]] = {}
        for row, one in found.items():
            _, epochs, negatives = row.split(":")
            if epochs == "1":
                way = f"{negatives} negatives" if int(negatives) else "all labels"
                series.setdefault(way, []).append((one["labels"], one[name]))
        if series:
            report.plot(name, lines(title, "labels", unit, series))


def parsed(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", metavar="C:E:N", help="characters:epochs:negatives of each row")
    parser.add_argument("--out", type=Path, help="a folder for the table and the plots")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tiny", action="store_true", help="a few documents, to see that it runs")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args(given)
    arguments.rows = arguments.rows or (["3:1:0", "4:1:50"] if arguments.tiny else ROWS)
    return arguments


def main(given: Sequence[str]) -> None:
    arguments = parsed(given)
    if arguments.measure:
        measure(arguments)
        return
    report = begun("many_labels", "Very many labels", arguments, given)
    report.say(
        "ICD-10-CM, preset icd10: HiTIN on a bag of words. Trained on descriptions, tested on inclusion terms.\n"
    )
    plots(report, table(report, arguments, given))
    report.close()


if __name__ == "__main__":
    main(sys.argv[1:])
