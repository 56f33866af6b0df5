"""What the studies come to, as it stands in a page of the documents: scores, rows against flat, orders, rare labels.

    python benchmarks/study.py docs/study.md

The page has blocks, each between `<!-- KIND: STUDY/TABLE -->` and `<!-- end -->`, which are written anew out of
`benchmarks/results/studies/STUDY`; `STUDY/TABLE/ablation` are the ablations of a table, `STUDY` alone is all its
tables (in `means`). Pictures are written into the
folder `pictures` beside the page. The comparisons must have been run (`hitin compare benchmarks/studies/STUDY.toml`).
"""

import argparse
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hitin.coding_tree import coding_tree
from hitin.compare.cells import DECISIONS, slug
from hitin.compare.comparison import prepare
from hitin.compare.data import truth_file
from hitin.compare.figures import figures
from hitin.compare.pictures import standalone
from hitin.compare.plan import LINEAR
from hitin.compare.resampling import ResampledScores
from hitin.compare.results import Line, Results, View, Way, compared_lines, gather
from hitin.compare.statistics import METRICS, RESAMPLES
from hitin.compare.tables import SCORE_TITLES
from hitin.compare.words import percent
from hitin.methods.hitin import HiTINSettings
from hitin.metrics import Counts
from hitin.metrics.counts import label_f1
from hitin.taxonomy import Taxonomy
from hitin.writing import write_text
from plots import Interval, intervals

DECIDED: dict[Way, str] = {"tuned": "auto", "half": "0.5"}
BASELINE = "flat"
FOLDER = "pictures"
FIGURES = {
    "parameters": ("micro_f1-parameters", "macro_f1-parameters"),
    "sizes": ("trainable_parameters",),
    "heights": ("micro_f1-height", "macro_f1-height"),
}
"""Which figures of a comparison stand in a block of each kind."""
PICTURES = ("intervals", *FIGURES)
KINDS = ("scores", "means", "against", "orders", "trees", "rare", *PICTURES)
SCORES = {metric: title[0].lower() + title[1:] for metric, title in SCORE_TITLES.items()}

Place = Sequence[str]
"""A study, a table, and perhaps a part of it."""

_BLOCK = re.compile(r"(?P<begin><!-- (?P<kind>\w+): (?P<place>[\w/-]+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)


def against(view: View, scores: ResampledScores, way: Way, metric: str) -> dict[str, dict[str, Interval]]:
    """By how many points each row is ahead of the baseline, row by row and set by set, with 95 % intervals.

    The intervals say what other test documents would change, not what other seeds would.
    """
    base = view.line(BASELINE)
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


def told_scores(view: View) -> Iterator[str]:
    """Micro and macro F1 of every row, decided in both ways; the best of each in bold."""
    columns = [(data, way) for data in view.data for way in DECIDED]
    yield f"| | {' | '.join(f'{data.title}, {DECIDED[way]}' for data, way in columns)} |"
    yield f"|---|{'---|' * len(columns)}"
    for line in view.lines:
        cells = [" / ".join(_bold(view, line, data.name, way, metric) for metric in METRICS) for data, way in columns]
        yield f"| {view.row_title(line)} | {' | '.join(cells)} |"


def _bold(view: View, line: Line, data: str, way: Way, metric: str) -> str:
    is_best = view.best.get((way, data, metric)) == line.row.name
    return f"**{_score(line, data, way, metric)}**" if is_best else _score(line, data, way, metric)


def told_means(views: Sequence[View]) -> Iterator[str]:
    """Micro and macro F1 of every row in the mean over all sets, for rows that have a result on each."""
    places = [(view, data.name) for view in views for data in view.data]
    yield f"| over {len(places)} sets | {' | '.join(DECIDED.values())} |\n|---|{'---|' * len(DECIDED)}"
    means: dict[str, dict[tuple[Way, str], float]] = {}
    for line in views[0].lines:
        entries = [
            other.entries[data] for view, data in places for other in view.lines if other.row.name == line.row.name
        ]
        if len(entries) == len(places) and all(entry.results for entry in entries):
            means[views[0].row_title(line)] = {
                (way, metric): fmean(fmean(entry.scores(way, metric)) for entry in entries)
                for way in DECIDED
                for metric in METRICS
            }
    best = {kind: max(means, key=lambda row: means[row][kind]) for kind in next(iter(means.values()), {})}
    for row, found in means.items():
        shown = {kind: f"**{percent(mean)}**" if best[kind] == row else percent(mean) for kind, mean in found.items()}
        yield f"| {row} | {' | '.join(' / '.join(shown[way, metric] for metric in METRICS) for way in DECIDED)} |"


def told_against(view: View, scores: ResampledScores) -> Iterator[str]:
    """Points ahead of the baseline, with 95 % intervals."""
    yield f"| | | {' | '.join(data.title for data in view.data)} |"
    yield f"|---|---|{'---|' * len(view.data)}"
    for way, decided in DECIDED.items():
        by_score = [against(view, scores, way, metric) for metric in METRICS]
        for row in by_score[0]:
            cells = [" / ".join(_interval(found[row].get(data.title)) for found in by_score) for data in view.data]
            yield f"| {row} | {decided} | {' | '.join(cells)} |"


def _interval(value: Interval | None) -> str:
    return "–" if value is None else f"{value[0]:+.2f} [{value[1]:+.2f}, {value[2]:+.2f}]"


def told_orders(view: View) -> Iterator[str]:
    """What decisions do to the order of the rows."""
    yield "| | score | best by auto | best by 0.5 | Kendall's tau | without linear | gain by auto |"
    yield "|---|---|---|---|---|---|---|"
    for data in view.data:
        for metric, title in SCORES.items():
            tuned, half = (order(view, data.name, way, metric) for way in DECIDED)
            if tuned and half:
                gains = [100 * _gain(line, data.name, metric) for line in tuned]
                ends = f"{min(gains):+.1f} to {max(gains):+.1f}"
                best = f"{view.row_title(tuned[0])} | {view.row_title(half[0])}"
                networks = kendall(*([line for line in each if line.row.name != LINEAR] for each in (tuned, half)))
                yield f"| {data.title} | {title} | {best} | {kendall(tuned, half):.2f} | {networks:.2f} | {ends} |"


def _gain(line: Line, data: str, metric: str) -> float:
    """By how much a finished row scores more with decisions that were tuned."""
    tuned, half = (fmean(line.entries[data].scores(way, metric)) for way in DECIDED)
    return tuned - half


def told_trees(view: View, folder: Path) -> Iterator[str]:
    """The structural entropy of each row's coding tree beside what it scores. The label trees are kept with results."""
    yield "| | | K | entropy, bits | auto, micro / macro | 0.5, micro / macro |\n|---|---|---|---|---|---|"
    for data in view.data:
        taxonomy = Taxonomy.read(folder / "data" / f"{data.name}.taxonomy.tsv")
        for line in view.lines:
            method = line.row.run.method
            if isinstance(method, HiTINSettings):
                tree = coding_tree(taxonomy, method.height, method.tree, seed=method.tree_seed)
                cells = [" / ".join(_score(line, data.name, way, metric) for metric in METRICS) for way in DECIDED]
                size = f"{method.height} | {tree.entropy:.3f}"
                yield f"| {data.title} | {view.row_title(line)} | {size} | {' | '.join(cells)} |"


def told_rare(view: View, folder: Path) -> Iterator[str]:
    """The mean F1 of the rarest third of labels, the middle one and the most frequent one, decided by `auto`."""
    yield "| | | rarest third | middle | most frequent |\n|---|---|---|---|---|"
    for data in view.data:
        truth = _unpacked(truth_file(folder, data.name), "truth")
        counts = truth.sum(axis=0)
        by_count = np.argsort(counts, kind="stable")
        thirds = np.array_split(by_count[counts[by_count] > 0], 3)
        ends = [f"{counts[third[0]]:,} to {counts[third[-1]]:,}" for third in thirds]
        yield f"| {data.title} | test documents of a label | {' | '.join(ends)} |"
        for line in view.lines:
            tables = [_unpacked(cell / DECISIONS, "tuned") for cell in line.entries[data.name].folders]
            if tables:
                by_label = np.mean([label_f1(Counts.of(given, truth)) for given in tables], axis=0)
                cells = [percent(float(by_label[third].mean())) for third in thirds]
                yield f"| {data.title} | {view.row_title(line)} | {' | '.join(cells)} |"


def _unpacked(file: Path, name: str) -> NDArray[np.bool_]:
    """(documents, labels): of a file of tables, one."""
    with np.load(file, allow_pickle=False) as found:
        return np.unpackbits(found[name], axis=1, count=int(found["labels"])).view(np.bool_)


def _score(line: Line, data: str, way: Way, metric: str) -> str:
    score = line.entries[data].score(way, metric)
    return "–" if score is None else percent(score.mean, score.deviation)


@dataclass
class Studies:
    """Those of a repository, each read when it is first wanted."""

    folder: Path
    """That of the benchmarks."""
    resamples: int = RESAMPLES
    known: dict[str, Results] = field(default_factory=dict)

    def view(self, name: str, table: str, part: str = "main") -> View:
        return next(view for view in self._results(name).views if (view.table.name, view.part) == (table, part))

    def views(self, name: str) -> list[View]:
        """The tables of a study, without their ablations."""
        return [view for view in self._results(name).views if view.part == "main"]

    def scores(self, name: str) -> ResampledScores:
        return ResampledScores(self.kept(name), resamples=self.resamples)

    def _results(self, name: str) -> Results:
        if name not in self.known:
            found = prepare(self.folder / "studies" / f"{name}.toml", self.kept(name), trains=False, writes=False)
            self.known[name] = gather(found.plan, found.cells, self.kept(name), resamples=self.resamples)
        return self.known[name]

    def kept(self, name: str) -> Path:
        return self.folder / "results" / "studies" / name


class Picture(NamedTuple):
    name: str
    title: str
    svg: str


def drawn(studies: Studies, kind: str, place: Place) -> Iterator[Picture]:
    """The pictures of a block."""
    view = studies.view(*place)
    if kind == "intervals":
        for metric, score in SCORES.items():
            title, found = f"{view.title}: {score}", against(view, studies.scores(place[0]), "tuned", metric)
            yield Picture(_file(place, metric), title, intervals(title, f"points ahead of {BASELINE}", found))
        return
    for data in view.data:
        for figure in figures(view, data):
            if figure.name in FIGURES[kind]:
                yield Picture(_file(place, data.name, figure.name), figure.title, standalone(figure.svg))


def _file(place: Place, *names: str) -> str:
    return f"{'-'.join(map(slug, ('study', *place, *names)))}.svg"


def told(studies: Studies, kind: str, place: Place) -> str:
    """A block that is a table."""
    if kind == "means":
        return "\n".join(told_means(studies.views(*place)))
    view = studies.view(*place)
    if kind == "against":
        return "\n".join(told_against(view, studies.scores(place[0])))
    if kind in ("rare", "trees"):
        return "\n".join({"rare": told_rare, "trees": told_trees}[kind](view, studies.kept(place[0])))
    return "\n".join({"scores": told_scores, "orders": told_orders}[kind](view))


class Page(NamedTuple):
    text: str
    pictures: tuple[Picture, ...] = ()
    """Those of the blocks that were written anew."""


def refreshed(page: str, studies: Studies, kinds: Collection[str] = KINDS) -> Page:
    """The page with all blocks of these kinds written anew."""
    pictures: list[Picture] = []

    def block(found: re.Match[str]) -> str:
        kind, place = found["kind"], found["place"].split("/")
        if kind not in kinds:
            return found[0]
        if kind in PICTURES:
            own = list(drawn(studies, kind, place))
            pictures.extend(own)
            text = "\n\n".join(f"![{each.title}]({FOLDER}/{each.name})" for each in own)
        else:
            text = told(studies, kind, place)
        return f"{found['begin']}\n{text}\n\n{found['end']}"

    return Page(_BLOCK.sub(block, page), tuple(pictures))


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=Path)
    path = parser.parse_args(given).page
    page = refreshed(path.read_text(encoding="utf-8"), Studies(Path(__file__).parent))
    write_text(path, [page.text])
    for picture in page.pictures:
        write_text(path.parent / FOLDER / picture.name, [picture.svg])


if __name__ == "__main__":
    main()
