"""Rows of a table: a method with the options of the file, and the ablations of HiTIN."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

from hitin.compare.cells import Kind, Row
from hitin.decisions.settings import DecisionSettings
from hitin.encoders.names import BAG, TEXTRCNN, TFIDF
from hitin.errors import InputError
from hitin.files import is_there
from hitin.methods import METHODS, WholeMethod
from hitin.methods.hitin import Pooling
from hitin.option_values import bad_option
from hitin.options_together import idle_options
from hitin.settings import Run, options_of

Options = Mapping[str, Any]

HITIN = "hitin"
HEIGHTS = range(2, 9)
ABLATIONS = ("random-tree", "no-regularisation", "taxonomy-tree", "paper-tree", "pooling", "height")

_PATHS = ("encoder", "vectors")
"""Options that may name a file or folder beside the comparison's own."""
_NO_PATHS = (TEXTRCNN, BAG, TFIDF)

_SET_HERE = {
    "seed": "Seeds stand in `seeds`, of the file, a data set, a table or a row.",
    "select": "One rule holds for all: the epoch with the best mean of micro-F1 and macro-F1 on validation documents.",
    "validation": "All methods see the same documents: give the data set `val`, or a tenth of `train` is held out.",
    "preset": "Write its options out: a table shows what it compares.",
}
_DECISIONS = frozenset(field.name for field in fields(DecisionSettings))
_DECIDED = "One rule holds for all: decisions are chosen on validation documents for the mean of micro-F1 and macro-F1."


@dataclass(frozen=True)
class RowBuilder:
    """What the rows of a table have in common."""

    folder: Path
    """That of the file, where relative paths begin."""
    encoder: str | None
    settings: Options
    """Options of every method of the table that knows them."""
    seeds: tuple[int, ...]

    def row(
        self,
        name: str,
        options: Options,
        *,
        method: str,
        title: str | None = None,
        seeds: tuple[int, ...] | None = None,
        kind: Kind = "main",
    ) -> Row:
        """A method with the table's settings, and over them its own options."""
        for option in options:
            check_may_be_set(option)
        given = {**self._shared(method, options.get("encoder")), **options}
        idle = idle_options(Run.unchecked({"method": method, **given}))
        given = {option: value for option, value in given.items() if option in options or option not in idle}
        run, written = self._run(method, given), Run.of(method=method, **given)
        title = title or (METHODS[method].title if name == method else "") or name
        return Row(name, title, run, kind, self.seeds if seeds is None else seeds, None if run == written else written)

    def _run(self, method: str, given: Options) -> Run:
        """The run on this machine, where paths lead to files."""
        found = dict(given)
        for option in _PATHS:
            value = found.get(option)
            if isinstance(value, str) and value and value not in _NO_PATHS and is_there(self.folder / value):
                found[option] = str((self.folder / value).resolve())
        return Run.of(method=method, **found)

    def _shared(self, method: str, encoder: Any) -> dict[str, Any]:
        """The table's encoder and settings, as far as they mean something to a method."""
        if method not in METHODS:
            return {}  # which is told by those who know the methods
        chosen = None if isinstance(METHODS[method], WholeMethod) else encoder or self.encoder
        known = options_of(Run.of(method=method, encoder=chosen))
        found = {name: value for name, value in self.settings.items() if name in known}
        return found if chosen is None else found | {"encoder": chosen}


def check_may_be_set(name: str) -> None:
    """Refuse options that would have rows compared by different rules."""
    if name in _SET_HERE or name in _DECISIONS:
        raise bad_option(f"{name} cannot be set in a comparison", _SET_HERE.get(name, _DECIDED))


def ablation_rows(builder: RowBuilder, base: Row, options: Options, wanted: tuple[str, ...]) -> Iterator[Row]:
    """Rows that differ from HiTIN in one thing each; `options` are those of its own row."""
    for ablation in wanted:
        for name, title, change in _CHANGES[ablation]:
            kind: Kind = "height" if ablation == "height" else "ablation"
            try:
                row = builder.row(name, {**options, **change}, method=HITIN, title=title, seeds=base.seeds, kind=kind)
            except InputError as error:
                error.message = f"{name}: {error.message}"
                raise
            if row.run != base.run:
                yield row


_CHANGES: dict[str, list[tuple[str, str, dict[str, object]]]] = {
    "random-tree": [("random-tree", "random coding tree", {"tree": "random"})],
    "no-regularisation": [("no-regularisation", "no recursive regularisation", {"regularisation": 0.0})],
    "taxonomy-tree": [("taxonomy-tree", "the label tree itself", {"tree": "taxonomy", "tree_seed": 0})],
    "paper-tree": [("paper-tree", "the paper's coding tree", {"tree": "paper", "tree_seed": 0})],
    "pooling": [(f"pooling-{each}", f"pooling: {each}", {"pooling": each}) for each in get_args(Pooling)],
    "height": [(f"height-{each}", f"K = {each}", {"height": each}) for each in HEIGHTS],
}
"""For each ablation the name, the title and the options of its rows."""
