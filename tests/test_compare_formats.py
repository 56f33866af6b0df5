"""What is said of a comparison, and how Markdown, CSV and LaTeX write its tables."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hitin.compare.cells import Row
from hitin.compare.facts import facts
from hitin.compare.figures import figures
from hitin.compare.formats import to_latex, to_markdown, write_results
from hitin.compare.listing import to_csv
from hitin.compare.results import Results
from hitin.compare.sentences import sentences, verdicts
from tests.comparison_harness import (
    ERRORS,
    FLAT,
    HEIGHTS,
    HITIN,
    LINEAR,
    ONE,
    RANDOM,
    TWO,
    comparison,
    copied,
    data_set,
    gathered,
    plan,
    results,
    row,
    titled,
)

ATTACK = "</td><script>alert(1)</script> | **x** \\input{y} $z$ 50% & #1 _a_ ^~"


# What is said.


@pytest.mark.parametrize(
    ("errors", "said", "outcome"),
    [
        (
            {"hitin": 0.05},
            r"HiTIN is best by macro-F1 on One \(\d\d\.\d\d; flat \d\d\.\d\d, p = 0\.\d+\)\.",
            "won",
        ),
        (
            {"hitin": 0.2},
            r"On One HiTIN loses to flat by \d+\.\d\d macro-F1 \(.* against .*, p = .*\)\.",
            "lost",
        ),
        ({}, r"(but flat may be as good|behind flat, which may be chance)", "drawn"),
    ],
)
def test_wins_losses_and_draws_are_said_plainly(tmp_path: Path, errors: Any, said: str, outcome: str) -> None:
    found = results(tmp_path, plan([LINEAR, FLAT, HITIN], [ONE]), ERRORS | errors)
    (_, (summary, _, macro)) = next(iter(sentences(found)))
    assert re.search(said, macro)
    assert {verdict.outcome for verdict in verdicts(found.views[0])} == {outcome}
    expected = {"won": "clearly best in 2 of", "lost": "worse than the best in 2.", "drawn": "from the best in 2,"}
    assert expected[outcome] in summary
    assert macro in to_markdown(found).replace("\\", "").split("## ")[0]


@pytest.mark.parametrize("rows", [(FLAT, HITIN), (HITIN, FLAT)], ids=["behind", "ahead"])
def test_a_tie_is_called_one_whoever_stands_first(tmp_path: Path, rows: tuple[Row, Row]) -> None:
    wanted = plan(rows, [ONE])
    cells = comparison(tmp_path, wanted, ERRORS)
    copied(cells, FLAT, HITIN)
    found = verdicts(gathered(tmp_path, wanted, cells).views[0])
    assert [verdict.outcome for verdict in found] == ["drawn", "drawn"]
    assert re.fullmatch(r"HiTIN and flat have the same micro-F1 on One \(\d\d\.\d\d\), the highest\.", found[0].text)


def test_variants_of_hitin_are_not_its_rivals(tmp_path: Path) -> None:
    variant = row("HiTIN, K = 3", "hitin", height=3)
    wanted = plan([LINEAR, HITIN, variant], [ONE])
    cells = comparison(tmp_path, wanted, ERRORS | {"hitin": 0.05, "HiTIN, K = 3": 0.051})
    copied(cells, HITIN, variant)
    assert {verdict.outcome for verdict in verdicts(gathered(tmp_path, wanted, cells).views[0])} == {"won"}


def test_what_stands_against_the_count_is_said_with_it(tmp_path: Path) -> None:
    alone = [replace(each, seeds=(0,)) for each in (FLAT, HITIN)]
    for rows, doubt in (
        ((LINEAR, *alone), "All rows have 1 seed: what another seed would change is not known."),
        ((LINEAR, FLAT, alone[1]), "Some rows have 1 seed"),
    ):
        found = results(tmp_path / doubt[:3], plan(rows, [ONE]))
        assert doubt in next(iter(sentences(found)))[1][0]
    found = results(tmp_path / "seeds", plan([LINEAR, FLAT, HITIN], [ONE]))
    assert "1 seed" not in next(iter(sentences(found)))[1][0]
    found = results(tmp_path / "missing", plan([LINEAR, FLAT, HITIN], [ONE]), without=["flat"])
    assert "1 row of 3 is not complete." in next(iter(sentences(found)))[1][0]


# How they are written.


def everything(folder: Path, title: str = "bag") -> Results:
    wanted = titled(plan([LINEAR, FLAT, HITIN, RANDOM, *HEIGHTS], [ONE, TWO], published="textrcnn"), title)
    return results(folder, wanted)


def test_the_list_has_every_number_of_the_tables_and_figures(tmp_path: Path) -> None:
    found = everything(tmp_path)
    lines = list(csv.DictReader(io.StringIO(to_csv(found))))
    told = {tuple(line[name] for name in ("part", "way", "data", "row", "seed", "metric")): line for line in lines}
    assert len(told) == len(lines)
    for view in found.views:
        for line in view.lines:
            for data, entry in line.entries.items():
                for way in ("tuned", "half", "per_metric"):
                    for metric in ("micro_f1", "macro_f1"):
                        mean = told[view.part, way, data, line.row.name, "mean", metric]
                        value, comparison = entry.score(way, metric), view.comparison(way, line.row.name, data, metric)
                        assert value is not None
                        assert float(mean["value"]) == value.mean
                        assert mean["deviation"] == ("" if value.deviation is None else repr(value.deviation))
                        assert mean["p_holm"] == ("" if comparison is None else repr(comparison.corrected))
                        assert (mean["is_best"] == "yes") == (comparison is None)
                        each = [told[view.part, way, data, line.row.name, str(s), metric]["value"] for s in entry.seeds]
                        assert list(map(float, each)) == entry.scores(way, metric)
    parameters = told["main", "", "one", "hitin", "mean", "trainable_parameters"]
    assert float(parameters["value"]) == 15_005_000
    assert told["ablation", "tuned", "one", "height-3", "mean", "micro_f1"]["height"] == "3"
    assert told["main", "tuned", "average", "hitin", "mean", "micro_f1"]["seeds"] == "2"


def test_published_numbers_are_in_the_list_by_themselves(tmp_path: Path) -> None:
    wanted = plan([HITIN], [data_set("mine", published="rcv1")], published="bert")
    lines = csv.DictReader(io.StringIO(to_csv(gathered(tmp_path, wanted, ()))))
    found = {(line["row"], line["metric"]): line["value"] for line in lines if line["way"] == "published"}
    assert found["HiTIN", "micro_f1"] == "0.8671"
    assert len(found) == 12


def test_markdown_tables_have_as_many_cells_in_each_line(tmp_path: Path) -> None:
    text = to_markdown(everything(tmp_path, ATTACK))
    for block in re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1
        assert len({len(line) for line in block.splitlines()}) == 1  # a terminal shows columns
    assert "<script" not in text.replace("\\<", "")
    assert len(re.findall("^### ", text, re.MULTILINE)) == 8
    assert "`hitin compare compare.toml --out" in text


def test_latex_tables_are_whole_and_no_title_is_a_command(tmp_path: Path) -> None:
    found = everything(tmp_path, ATTACK)
    text = to_latex(found)
    assert text.count("\\begin{") == text.count("\\end{") == 2 * 4 * len(found.views)
    bare = re.sub(r"\\[{}$&%#_]", "", text.replace("\\\\", ""))
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    commands = set(re.findall(r"\\([a-z]+)", text))
    assert commands == {
        *("begin", "end", "centering", "small", "toprule", "midrule", "bottomrule", "cmidrule", "multicolumn"),
        *("textbf", "caption", "pm", "dagger", "textbackslash", "textasciitilde", "textasciicircum", "usepackage"),
    }
    for table in re.findall(r"\\begin\{tabular\}\{(l r*|lr*)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        for line in table[1].splitlines():
            if line.endswith("\\\\") and "multicolumn" not in line:
                assert len(re.findall(r"(?<!\\)&", line)) == len(table[0]) - 1
    assert not re.search(r"[±†–]", text)


def test_the_same_results_give_the_same_bytes_in_whatever_order_cells_come(tmp_path: Path) -> None:
    found = everything(tmp_path)

    def written() -> dict[str, bytes]:
        paths = [path for path in tmp_path.rglob("*") if path.suffix in (".md", ".csv", ".tex", ".html", ".svg")]
        return {path.name: path.read_bytes() for path in paths}

    files = write_results(found.plan, found.cells, tmp_path, resamples=200)
    before = written()
    assert len(before) > len(files)
    for kept in tmp_path.rglob("resampled.npz"):
        kept.unlink()
    assert write_results(found.plan, reversed(found.cells), tmp_path, resamples=200) == files
    assert written() == before
    assert not list(tmp_path.glob("*.part"))


def test_figures_are_files_that_stand_by_themselves(tmp_path: Path) -> None:
    found = everything(tmp_path)
    *_, folder = write_results(found.plan, found.cells, tmp_path, resamples=200)
    shown = sorted(folder.iterdir())
    on_page = [figure for view in found.views for data in view.data for figure in figures(view, data)]
    assert len(shown) == len(on_page) > 4
    for path in shown:
        root = ElementTree.fromstring(path.read_text())
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert "var(" not in path.read_text()
    assert any(path.name.endswith("-micro-f1-height.svg") for path in shown)


def test_the_command_to_go_on_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    wanted = plan([HITIN], [ONE])
    absolute = replace(wanted, file=str(tmp_path / "my runs.toml"))
    head = dict(facts(gathered(tmp_path / "out", absolute, ())))
    assert head["Command"] == "hitin compare 'my runs.toml' --out out"
    head = dict(facts(gathered(Path("results/out"), replace(wanted, file="runs/a.toml"), ())))
    assert head["Command"] == "hitin compare runs/a.toml --out results/out"
    assert head["Data: One"] == "not read yet"
