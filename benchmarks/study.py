"""What a study comes to beyond its tables: each row against flat, what decisions do to the order, trees by entropy.

    python benchmarks/study.py benchmarks/studies/transformers.toml --results benchmarks/results/studies/transformers \
        --out docs/pictures

The comparison must have been run (`hitin compare FILE --out RESULTS`). Prints Markdown; with --out, plots are written.
"""

import argparse
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean

from hitin.coding_tree import coding_tree
from hitin.compare.comparison import prepare
from hitin.compare.resampling import ResampledScores
from hitin.compare.results import Line, View, Way, compared_lines, gather
from hitin.compare.statistics import METRICS
from hitin.compare.tables import SCORE_TITLES
from hitin.compare.words import percent
from hitin.errors import InputError
from hitin.taxonomy import Taxonomy
from hitin.writing import write_text
from plots import Interval, intervals

DECIDED: dict[Way, str] = {"tuned": "auto", "half": "0.5"}
SCORES = {metric: title[0].lower() + title[1:] for metric, title in SCORE_TITLES.items()}


def against(
    view: View, baseline: str, scores: ResampledScores, way: Way, metric: str
) -> dict[str, dict[str, Interval]]:
    """By how many points each row is ahead of the baseline, row by row and set by set, with 95 % intervals.

    The intervals say what other test documents would change, not what other seeds would.
    """
    base = view.line(baseline)
    found: dict[str, dict[str, Interval]] = {}
    for line in view.lines:
        for data in () if line is base else view.data:
            ahead = compared_lines(line, base, data.name, way, metric, scores)
            if ahead:
                points = (100 * ahead.difference, 100 * ahead.low, 100 * ahead.high)
                found.setdefault(view.row_title(line), {})[data.title] = points
    return found


def order(view: View, data: str, way: Way, metric: str) -> list[Line]:
    """The finished rows, the best first."""
    known = [(score.mean, line) for line in view.lines if (score := line.entries[data].score(way, metric))]
    return [line for _, line in sorted(known, key=lambda pair: -pair[0])]


def kendall(first: list[Line], second: list[Line]) -> float:
    """1 where two orders are the same, -1 where one is the other turned round (Kendall's tau, without ties)."""
    places = [{line.row.name: place for place, line in enumerate(lines)} for lines in (first, second)]
    pairs = list(combinations(places[0], 2))
    agree = sum((places[0][a] < places[0][b]) == (places[1][a] < places[1][b]) for a, b in pairs)
    return 2 * agree / len(pairs) - 1 if pairs else 1.0


def told_against(view: View, baseline: str, scores: ResampledScores) -> Iterator[str]:
    yield f"\n### {view.title}: points ahead of {baseline}, with 95 % intervals\n"
    yield f"| | | {' | '.join(data.title for data in view.data)} |"
    yield f"|---|---|{'---|' * len(view.data)}"
    for way, decided in DECIDED.items():
        by_score = [against(view, baseline, scores, way, metric) for metric in METRICS]
        for row in by_score[0]:
            cells = [" / ".join(_interval(found[row].get(data.title)) for found in by_score) for data in view.data]
            yield f"| {row} | {decided} | {' | '.join(cells)} |"


def _interval(value: Interval | None) -> str:
    return "–" if value is None else f"{value[0]:+.2f} [{value[1]:+.2f}, {value[2]:+.2f}]"


def told_orders(view: View) -> Iterator[str]:
    yield f"\n### {view.title}: what decisions do to the order\n"
    yield "| | score | best by auto | best by 0.5 | Kendall's tau | gain by auto |"
    yield "|---|---|---|---|---|---|"
    for data in view.data:
        for metric, title in SCORES.items():
            tuned, half = (order(view, data.name, way, metric) for way in DECIDED)
            if tuned and half:
                gains = [100 * _gain(line, data.name, metric) for line in tuned]
                ends = f"{min(gains):+.1f} to {max(gains):+.1f}"
                best = f"{view.row_title(tuned[0])} | {view.row_title(half[0])}"
                yield f"| {data.title} | {title} | {best} | {kendall(tuned, half):.2f} | {ends} |"


def _gain(line: Line, data: str, metric: str) -> float:
    """By how much a finished row scores more with decisions that were tuned."""
    tuned, half = (fmean(line.entries[data].scores(way, metric)) for way in DECIDED)
    return tuned - half


def told_trees(view: View) -> Iterator[str]:
    """The structural entropy of each row's coding tree beside what it scores."""
    rows = [line for line in view.lines if line.row.run.method_name == "hitin"]
    for data in view.data:
        try:
            taxonomy = Taxonomy.read(data.taxonomy)
        except InputError:
            continue  # the documents are not here
        yield f"\n### {view.title}: trees by entropy, {data.title}\n"
        yield "| | K | entropy, bits | auto, micro / macro | 0.5, micro / macro |\n|---|---|---|---|---|"
        for line in rows:
            method = line.row.run.method
            tree = coding_tree(taxonomy, method.height, method.tree, seed=method.tree_seed)
            cells = [" / ".join(_score(line, data.name, way, metric) for metric in METRICS) for way in DECIDED]
            yield f"| {view.row_title(line)} | {method.height} | {tree.entropy:.3f} | {' | '.join(cells)} |"


def _score(line: Line, data: str, way: Way, metric: str) -> str:
    score = line.entries[data].score(way, metric)
    return "–" if score is None else percent(score.mean, score.deviation)


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--baseline", default="flat")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(given)
    comparison = prepare(arguments.file, arguments.results, trains=False, writes=False)
    results = gather(comparison.plan, comparison.cells, arguments.results)
    scores = ResampledScores(arguments.results)
    for view in results.views:
        has_baseline = any(line.row.name == arguments.baseline for line in view.lines)
        print("\n".join([*told_orders(view), *told_trees(view)]))
        if has_baseline:
            print("\n".join(told_against(view, arguments.baseline, scores)))
        if has_baseline and arguments.out:
            for metric, title in SCORES.items():
                found = against(view, arguments.baseline, scores, "tuned", metric)
                svg = intervals(f"{view.title}: {title}", f"points ahead of {arguments.baseline}", found)
                write_text(arguments.out / f"study-{view.table.name}-{metric.replace('_', '-')}.svg", [svg])


if __name__ == "__main__":
    main()
