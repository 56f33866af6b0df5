"""Explanations for a person at a terminal: the text with its words in colours, and tables."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hitin.errors import counted, printable
from hitin.explain.deletion import Deletions
from hitin.explain.explaining import Explanation
from hitin.explain.words import Word

USUAL_TOP = 8
"""Words in a table, where no one says otherwise."""
_SHOWN = 2000  # characters of a text
_STRONG, _WEAK = 0.5, 0.15  # of the greatest weight
_FOR, _AGAINST = "green", "red"


def explanation_shown(explanation: Explanation, text: str, top: int) -> Iterator[RenderableType]:
    """A label: how probable it is, the text with the words for it and against it, and the greatest weights."""
    title = Text(printable(explanation.label, most=400), style="bold")
    yield title.append(f"  {100 * explanation.probability:.1f} %", style="not bold")
    yield _coloured(text, explanation.words)
    yield _table(explanation, top)


def _coloured(text: str, words: list[Word]) -> Text:
    greatest = max((abs(word.weight) for word in words), default=0.0)
    shown, place = Text(), 0
    for word in words:
        if word.end > _SHOWN:
            break
        shown.append(_harmless(text[place : word.start]))
        shown.append(_harmless(text[word.start : word.end]), style=_style(word.weight, greatest))
        place = word.end
    shown.append(_harmless(text[place:_SHOWN]))
    return shown.append(" ..." if len(text) > _SHOWN else "")


def _style(weight: float, greatest: float) -> str:
    if abs(weight) <= _WEAK * greatest:
        return ""
    strength = "bold " if abs(weight) > _STRONG * greatest else ""
    return strength + (f"{_FOR} underline" if weight > 0 else _AGAINST)


def _table(explanation: Explanation, top: int) -> Table:
    """The words with the greatest weights, and how they add up."""
    table = Table(show_header=True, show_edge=False, pad_edge=False)
    table.add_column("word")
    table.add_column("weight", justify="right")
    order = sorted(explanation.words, key=lambda word: -abs(word.weight))
    for word in order[:top]:
        style = _FOR if word.weight > 0 else _AGAINST
        table.add_row(Text(printable(word.text, most=60)), Text(f"{word.weight:+.2f}", style=style))
    rest = sum(word.weight for word in order[top:])
    if order[top:]:
        table.add_row(Text(counted(len(order) - top, "other"), style="dim"), f"{rest:+.2f}")
    table.add_row(Text("without any word", style="dim"), f"{explanation.baseline:+.2f}")
    table.add_row(Text("score", style="bold"), f"{explanation.score:+.2f}")
    return table


def deletions_table(found: Deletions) -> Table:
    """What leaving out the top word does, beside what leaving out another does."""
    table = Table()
    table.add_column("")
    for name in ("top word", "another word"):
        table.add_column(name, justify="right")
    sides = ("top", "other")
    table.add_row("lowers the score", *(f"{100 * found.part_lowered(side):.1f} %" for side in sides))
    table.add_row("mean drop of the score", *(f"{found.mean_drop(side, 'score'):+.3f}" for side in sides))
    table.add_row("mean drop of the probability", *(f"{found.mean_drop(side, 'probability'):+.3f}" for side in sides))
    for measure in ("score", "probability"):
        better = found.part_better(measure)
        table.add_row(f"lowers the {measure} more", f"{100 * better:.1f} %", f"{100 * (1 - better):.1f} %")
    table.add_section()
    table.add_row("rank agreement of weights and drops", f"{found.agreement:.3f}", "")
    table.add_row("documents", f"{found.documents:,}", "")
    table.add_row("labels explained", f"{len(found.trials):,}", "")
    return table


def _harmless(text: str) -> str:
    """Without what moves a terminal's cursor; a line's end is a blank."""
    return "".join(char if char.isprintable() else " " for char in text)
