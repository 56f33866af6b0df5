"""The page of a report: its template, style and script put together, with the data they draw."""

import html
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from hitin.cells import whole_characters
from hitin.pages import page, safe_json
from hitin.report.contents import Report
from hitin.report.examples import Example, whereabouts
from hitin.report.figures import BINS, difference_figures, figures, level_figures, reliability_curves

SCRIPTS = ("base", "scores", "scatter", "tree", "search", "reliability", "confusions", "documents", "start")
MOST_CONFUSIONS = 400  # that the page holds


def to_html(report: Report) -> str:
    """One page with everything in it."""
    folder = files("hitin.report")
    style = folder.joinpath("report.css").read_text(encoding="utf-8")
    parts = [folder.joinpath("script", f"{name}.js").read_text(encoding="utf-8") for name in SCRIPTS]
    script = "\n".join(["(() => {", "'use strict';", *parts, "})();"])
    return page(
        folder.joinpath("report.html").read_text(encoding="utf-8"),
        style=style,
        script=script,
        title=html.escape(whole_characters(f"{report.about.model}: evaluation")),
        data=safe_json(page_data(report)),
    )


def page_data(report: Report) -> dict[str, Any]:
    """What the script draws: labels as columns and by their numbers, since there may be thousands."""
    taxonomy, counts = report.taxonomy, report.counts
    return {
        "about": asdict(report.about),
        "documents": report.scores.documents,
        "scores": figures(report.scores),
        "levels": level_figures(report.scores),
        "baselines": [
            {
                "name": baseline.name,
                "scores": figures(baseline.scores),
                "differences": difference_figures(baseline.differences),
            }
            for baseline in report.baselines
        ],
        "names": list(taxonomy.labels),
        "levelSizes": list(taxonomy.level_sizes),
        "childCounts": taxonomy.child_counts.tolist(),
        "children": taxonomy.child_ids.tolist(),
        "actual": counts.actual.tolist(),
        "given": counts.predicted.tolist(),
        "right": counts.true_positives.tolist(),
        "training": None if report.train_counts is None else report.train_counts.tolist(),
        "reliability": reliability_curves(report.reliability),
        "bins": BINS,
        "confusions": [list(confusion) for confusion in report.confusions[:MOST_CONFUSIONS]],
        "confusedPairs": report.confused_pairs,
        "worst": [_card(example) for example in report.worst],
        "surprising": [_card(example) for example in report.surprising],
    }


def _card(example: Example) -> dict[str, Any]:
    kinds: dict[str, Sequence[Any]] = {"right": example.right, "wrong": example.wrong, "missed": example.missed}
    return {
        "name": whereabouts(example.document),
        "text": example.document.text,
        "cut": example.cut,
        "f1": round(example.f1, 4),
        "loss": round(example.log_loss, 2),
        **kinds,
        "more": example.left_out,
        "surprise": example.surprise,
    }
