"""Do explanations add up, do they agree with leaving out words, and what do they cost?

    python benchmarks/explanations.py MODEL DOCUMENTS --out benchmarks/results

MODEL is a folder, such as that of the demo (`hitin demo`), and DOCUMENTS a file of its test documents, of which some
are drawn by chance. All labels that a document is given are explained, and it is timed; then, of its deepest labels,
the word with the greatest weight is left out, another one by chance, and all others.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hitin.documents import read_documents
from hitin.estimator import HierarchicalTextClassifier
from hitin.explain import Explanation, explain
from hitin.explain.deletion import Deletions, deletion_test
from hitin.explain.quadrature import MOST_POINTS, TOLERANCE
from reporting import Report, begun


def drawn(file: Path, count: int, seed: int) -> list[str]:
    """The texts of so many documents, by chance."""
    texts = [document.text for document in read_documents(file, labelled=False)]
    chance = np.random.default_rng(seed)
    return [texts[place] for place in sorted(chance.choice(len(texts), min(count, len(texts)), replace=False).tolist())]


def timed(classifier: HierarchicalTextClassifier, texts: Sequence[str]) -> tuple[list[list[Explanation]], list[float]]:
    """The explanations of each text, and the milliseconds that they took."""
    explain(classifier, texts[0])  # what is made once is not counted
    found, milliseconds = [], []
    for text in texts:
        started = time.perf_counter()
        found.append(explain(classifier, text))
        milliseconds.append(1000 * (time.perf_counter() - started))
    return found, milliseconds


def tell_completeness(report: Report, found: list[list[Explanation]], milliseconds: list[float]) -> None:
    every = [each for some in found for each in some]
    report.say("## Do the words add up?\n")
    report.say(
        f"By how much the weights of the words miss score - baseline, as a part of it: {TOLERANCE:.0%} is allowed, "
        f"with at most {MOST_POINTS:,} points. {len(every):,} labels of {len(found):,} documents.\n"
    )
    report.header("", "median", "90th percentile", "largest")
    columns: dict[str, tuple[list[float], str]] = {
        "error": ([each.error for each in every], "{:.4f}"),
        "points": ([each.points for each in every], "{:.0f}"),
        "labels a document": ([len(some) for some in found], "{:.0f}"),
        "words a document": ([len(some[0].words) for some in found if some], "{:.0f}"),
        "ms a document": (milliseconds, "{:.1f}"),
    }
    for name, (values, shape) in columns.items():
        report.row(name, *(shape.format(value) for value in np.percentile(values, (50, 90, 100))))
    over = sum(each.error > TOLERANCE for each in every)
    report.say(f"\n{over:,} of {len(every):,} labels miss more than {TOLERANCE:.0%}.\n")


def tell_deletions(report: Report, found: Deletions) -> None:
    report.say("## Do they agree with leaving out words?\n")
    report.say(
        f"{len(found.trials):,} deepest labels of {found.documents:,} documents; {found.skipped:,} have fewer "
        "than two words. The score is the logit. Equals count half.\n"
    )
    report.header("", "top word", "another word by chance")
    sides = ("top", "other")
    report.row("lowers the score", *(f"{100 * found.part_lowered(side):.1f} %" for side in sides))
    for measure in ("score", "probability"):
        report.row(f"mean drop of the {measure}", *(f"{found.mean_drop(side, measure):.3f}" for side in sides))
    for measure in ("score", "probability"):
        better = found.part_better(measure)
        report.row(f"lowers the {measure} more", f"{100 * better:.1f} %", f"{100 * (1 - better):.1f} %")
    report.say(
        f"\nRank correlation of the words' weights with the drops of the score: {found.agreement:.3f} on average."
    )


def main(given: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("documents", type=Path)
    parser.add_argument("--count", type=int, default=100, help="documents")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, help="a folder for explanations.md")
    arguments = parser.parse_args(given)
    report = begun("explanations", "Explanations: do they add up, and are they true?", arguments, given)
    classifier = HierarchicalTextClassifier.load(arguments.model, device=arguments.device)
    run = classifier.model_.run
    report.say(f"{run.method_name} on {Path(run.encoder_name).name}, {len(classifier.taxonomy_):,} labels.\n")
    texts = drawn(arguments.documents, arguments.count, arguments.seed)
    tell_completeness(report, *timed(classifier, texts))
    tell_deletions(report, deletion_test(classifier, texts, seed=arguments.seed))
    report.close()


if __name__ == "__main__":
    main(sys.argv[1:])
