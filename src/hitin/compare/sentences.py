"""Where HiTIN wins and where it loses, said plainly."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from hitin.compare.cells import DataSet
from hitin.compare.results import MAIN_WAY, Line, Results, Value, View
from hitin.compare.statistics import METRICS, Comparison
from hitin.compare.words import p_text, percent
from hitin.errors import counted

SUBJECT = "hitin"
_SCORES = {"micro_f1": "micro-F1", "macro_f1": "macro-F1"}

Outcome = Literal["won", "drawn", "lost", "open"]


@dataclass(frozen=True)
class Verdict:
    """How HiTIN did by one score on one data set."""

    outcome: Outcome
    """`drawn`: the documents cannot tell it from the best or, if it is the best, from the next; `open`: not known."""
    text: str


def verdicts(view: View) -> list[Verdict]:
    """One for each data set and score of a table."""
    subject = _subject(view)
    if subject is None:
        return []
    return [_verdict(view, subject, data, metric) for data in view.data for metric in METRICS]


def judged(results: Results) -> Iterator[tuple[str, str, list[Verdict]]]:
    """Each table with HiTIN: its title, the count, and the verdicts. What holds for both scores is said once."""
    for view in results.views:
        found = verdicts(view) if view.part == "main" else []
        if found:
            yield view.title, summary(view, found), [*{verdict.text: verdict for verdict in found}.values()]


def sentences(results: Results) -> Iterator[tuple[str, list[str]]]:
    """For each table its title and what there is to say: first the count, then each data set and score."""
    for title, count, found in judged(results):
        yield title, [count, *(verdict.text for verdict in found)]


def _subject(view: View) -> Line | None:
    """The row called hitin, or the first of that method."""
    known = [line for line in view.lines if line.row.run.method_name == SUBJECT]
    return next((line for line in known if line.row.name == SUBJECT), known[0] if known else None)


def summary(view: View, found: list[Verdict]) -> str:
    """In how many comparisons HiTIN wins, and loses."""
    subject = _subject(view)
    title = subject.row.title if subject else ""
    counts = {outcome: sum(verdict.outcome == outcome for verdict in found) for outcome in ("won", "drawn", "lost")}
    compared = sum(counts.values())
    if not compared:
        return f"{title} has nothing to be compared with yet."
    said = (
        f"{title} is clearly best in {counts['won']} of {counted(compared, 'comparison')} (a data set and a score "
        f"each), cannot be told from the best in {counts['drawn']}, and is clearly worse than the best in "
        f"{counts['lost']}."
    )
    return " ".join([said, *_doubts(view)])


def _doubts(view: View) -> Iterator[str]:
    """What stands against believing the count."""
    drawn = [entry for line in view.lines if line.row.depends_on_seed for entry in line.entries.values()]
    if any(len(entry.seeds) == 1 for entry in drawn):
        rows = "All" if all(len(entry.seeds) <= 1 for entry in drawn) else "Some"
        yield f"{rows} rows have 1 seed: what another seed would change is not known."
    missing = sum(any(len(entry.seeds) < entry.wanted for entry in line.entries.values()) for line in view.lines)
    if missing:
        yield f"{counted(missing, 'row')} of {len(view.lines)} {'is' if missing == 1 else 'are'} not complete."


def _verdict(view: View, subject: Line, data: DataSet, metric: str) -> Verdict:
    score, where = _SCORES[metric], data.title
    mine = subject.entries[data.name].score(MAIN_WAY, metric)
    title = subject.row.title
    if mine is None:
        state = subject.entries[data.name].state
        return Verdict("open", f"On {where} {title} has {'failed' if state == 'failed' else 'not been run yet'}.")
    best = view.line(view.best[MAIN_WAY, data.name, metric])
    if best is subject:
        return _leading(view, subject, data, metric)
    comparison = view.comparison(MAIN_WAY, subject.row.name, data.name, metric)
    leader = best.entries[data.name].score(MAIN_WAY, metric)
    if comparison is None or leader is None:
        return Verdict("open", f"On {where} {title} cannot be compared by {score}.")
    if comparison.difference == 0:
        return Verdict("drawn", _even(title, best, data, score, mine))
    behind = f"{-100 * comparison.difference:.2f}"
    numbers = f"{percent(mine.mean)} against {percent(leader.mean)}, p {p_text(comparison.corrected)}"
    if comparison.is_clear:
        return Verdict("lost", f"On {where} {title} loses to {best.row.title} by {behind} {score} ({numbers}).")
    return Verdict(
        "drawn",
        f"On {where} {title} is {behind} {score} behind {best.row.title}, which may be chance ({numbers}).",
    )


def _even(title: str, other: Line, data: DataSet, score: str, value: Value) -> str:
    return f"{title} and {other.row.title} have the same {score} on {data.title} ({percent(value.mean)}), the highest."


def _leading(view: View, subject: Line, data: DataSet, metric: str) -> Verdict:
    """HiTIN has the highest score; is it clearly higher than all others?"""
    score, title = _SCORES[metric], subject.row.title
    mine = subject.entries[data.name].score(MAIN_WAY, metric)
    others = [
        (value.mean, line, comparison)
        for line in view.lines
        if (value := line.entries[data.name].score(MAIN_WAY, metric))
        and (comparison := view.comparison(MAIN_WAY, line.row.name, data.name, metric))
    ]
    if mine is None or not others:
        return Verdict("open", f"On {data.title} {title} is the only row with results.")
    nearest, next_line, comparison = _rival(others)
    if nearest == mine.mean:
        return Verdict("drawn", _even(title, next_line, data, score, mine))
    numbers = f"{percent(mine.mean)}; {next_line.row.title} {percent(nearest)}, p {p_text(comparison.corrected)}"
    if comparison.is_clear:
        return Verdict("won", f"{title} is best by {score} on {data.title} ({numbers}).")
    return Verdict(
        "drawn",
        f"{title} scores highest by {score} on {data.title}, but {next_line.row.title} may be as good ({numbers}).",
    )


def _rival(others: list[tuple[float, Line, Comparison]]) -> tuple[float, Line, Comparison]:
    """The best of those that cannot be told from HiTIN, or simply the next. Variants of its own are no rivals."""
    of_others = [other for other in others if other[1].row.run.method_name != SUBJECT] or others
    unclear = [other for other in of_others if not other[2].is_clear]
    return max(unclear or of_others, key=lambda other: other[0])
