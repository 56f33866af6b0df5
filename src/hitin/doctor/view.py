"""The doctor's findings as tables for a person at a terminal."""

from collections.abc import Callable, Iterator
from pathlib import PurePath

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from hitin.doctor.facts import CheckUp, SplitFacts, TaxonomyFacts
from hitin.doctor.problems import Problem, Severity
from hitin.errors import counted, printable
from hitin.taxonomy.reading import FORMATS

_STYLES = {Severity.WARNING: "yellow", Severity.WRONG: "red", Severity.UNREADABLE: "bold red"}
_WORDS = {Severity.WARNING: "warning", Severity.WRONG: "wrong", Severity.UNREADABLE: "unreadable"}
_VERDICTS = {
    0: ("green", "Fit to train on."),
    1: ("red", "Training would go wrong: mend what is marked wrong."),
    2: ("bold red", "The input cannot be read as it stands: mend what is marked unreadable."),
}


def show(check_up: CheckUp, console: Console) -> None:
    """Print the tables, the problems and the verdict; of input that cannot be read, what is in the way and no more."""
    problems = check_up.problems
    if check_up.exit_code == Severity.UNREADABLE:
        problems = [problem for problem in problems if problem.severity == Severity.UNREADABLE]
    else:
        tables = list(_tables(check_up))
        wide = console.options.update(max_width=10_000)
        needed = max(Measurement.get(console, wide, table).maximum for table in tables)
        console.width = max(console.width, needed)  # a terminal may wrap lines, but no number is cut
        for table in tables:
            console.print(table)
    for problem in problems:
        console.print(_problem(problem), soft_wrap=True)
    style, verdict = _VERDICTS[check_up.exit_code]
    if check_up.exit_code == 0 and not check_up.splits:
        verdict = "The taxonomy is sound. Name files of documents to have them examined too."
    warnings = sum(problem.severity == Severity.WARNING for problem in problems)
    suffix = f" ({counted(warnings, 'kind', 'kinds')} of warnings above)" if warnings else ""
    console.print(Text(verdict + suffix, style=style), soft_wrap=True)


def _tables(check_up: CheckUp) -> Iterator[Table]:
    names = _short([split.name for split in check_up.splits])
    yield _taxonomy_table(check_up.taxonomy)
    yield _level_table(check_up, names)
    if check_up.splits:
        yield _split_table(check_up.splits, names)


def _taxonomy_table(facts: TaxonomyFacts) -> Table:
    table = Table(title=Text(printable(facts.file, most=400), style="bold"), title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column()
    if facts.format:
        table.add_row("read as", f"{FORMATS[facts.format]} ({facts.encoding})")
    table.add_row("labels", f"{facts.labels:,}, {facts.leaves:,} of them leaves")
    table.add_row("depth", str(facts.depth))
    table.add_row("children of a parent", f"{facts.mean_children:g} on average, {facts.max_children:,} at most")
    table.add_row("shape", _shape(facts))
    if facts.homonym_policy:
        table.add_row("same name, several parents", _homonyms(facts))
    return table


def _shape(facts: TaxonomyFacts) -> str:
    if facts.several_parents:
        return f"DAG: {counted(facts.several_parents, 'label has', 'labels have')} several parents"
    return "tree"


def _homonyms(facts: TaxonomyFacts) -> str:
    if not facts.homonyms:
        return "none"
    if facts.homonym_policy == "separate":
        return f"{counted(facts.homonyms, 'name')}, a label of its own in each place"
    return f"{counted(facts.homonyms, 'name')}, one label each (--homonyms separate makes them several)"


def _level_table(check_up: CheckUp, names: list[str], most: int = 20) -> Table:
    """Labels by level, and how many of each level a document has."""
    facts = check_up.taxonomy
    title = "labels by level" + (", and how many of them a document has" if check_up.splits else "")
    table = Table(title=title, title_justify="left")
    for heading in ("level", "labels", "leaves"):
        table.add_column(heading, justify="right")
    for name in names:
        table.add_column(Text(printable(name, most=200)), justify="right")
    for level, (labels, leaves) in enumerate(zip(facts.levels, facts.leaves_by_level, strict=True)):
        if level == most:
            table.add_row("...", *[""] * (2 + len(check_up.splits)))
            break
        means = [f"{split.mean_labels_by_level[level]:.2f}" for split in check_up.splits]
        table.add_row(str(level + 1), f"{labels:,}", f"{leaves:,}", *means)
    return table


def _split_table(splits: list[SplitFacts], names: list[str]) -> Table:
    table = Table(title="documents", title_justify="left")
    table.add_column("")
    for name in names:
        table.add_column(Text(printable(name, most=200)), justify="right")
    rows: dict[str, Callable[[SplitFacts], str]] = {
        "documents": lambda split: f"{split.documents:,}",
        "labels that occur": lambda split: f"{split.labels_used:,}",
        "labels a document": lambda split: f"{split.mean_labels:.2f}",
        "with several paths": lambda split: f"{split.several_paths:.0%}",
        "words: median": lambda split: f"{split.words['p50']:,.0f}",
        "words: 95 % have up to": lambda split: f"{split.words['p95']:,.0f}",
        "words: longest": lambda split: f"{split.words['max']:,.0f}",
        "repeated texts": lambda split: f"{split.duplicates:,}",
        "texts also in earlier files": lambda split: f"{split.leaked:,}",
    }
    for name, cell in rows.items():
        table.add_row(name, *[cell(split) for split in splits])
    return table


def _problem(problem: Problem) -> Text:
    """The kind, how often, the remedy; then one place a line, never wrapped, so that `file:line` can be clicked."""
    lines = [
        Text.assemble(
            (_WORDS[problem.severity], _STYLES[problem.severity]),
            f": {problem.title}. {problem.remedy}",
        ),
        *(Text.assemble("  ", (place, "bold"), f"  {detail}") for place, detail in problem.examples),
    ]
    if problem.places > len(problem.examples):
        lines.append(Text(f"  ... and {problem.places - len(problem.examples):,} more"))
    return Text("\n").join(lines)


def _short(names: list[str]) -> list[str]:
    """The last parts of paths, as many as it takes to tell them apart."""
    parts = [PurePath(name).parts or (name,) for name in names]
    for count in range(1, max(map(len, parts), default=0) + 1):
        short = ["/".join(each[-count:]) for each in parts]
        if len(set(short)) == len(set(names)):
            return short
    return names
