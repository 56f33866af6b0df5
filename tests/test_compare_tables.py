"""Tables of a comparison: what stands in them against plain means, and how Markdown, CSV and LaTeX write them."""

import csv
import io
import json
import re
import shutil
import statistics
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hitin.compare.cells import Cell, Plan, Row, cells_of
from hitin.compare.facts import facts
from hitin.compare.formats import to_latex, to_markdown, write_results
from hitin.compare.listing import to_csv
from hitin.compare.published import published_data, published_table
from hitin.compare.results import Results, gather
from hitin.compare.sentences import sentences, verdicts
from hitin.compare.tables import Grid, cost_grid, score_grid
from tests.comparison_harness import (
    FLAT,
    GPU,
    HEIGHTS,
    HITIN,
    LINEAR,
    RANDOM,
    comparison,
    data_set,
    keys,
    plan,
    row,
    titled,
)

ONE, TWO = data_set("one", title="One"), data_set("two", title="Two")
ERRORS = {"linear": 0.2, "flat": 0.101, "hitin": 0.1}
ATTACK = "</td><script>alert(1)</script> | **x** \\input{y} $z$ 50% & #1 _a_ ^~"


def gathered(folder: Path, wanted: Plan, cells: Iterable[Cell]) -> Results:
    return gather(wanted, cells, folder, resamples=200)


def results(folder: Path, wanted: Plan, errors: dict[str, float] = ERRORS, without: Iterable[str] = ()) -> Results:
    return gathered(folder, wanted, comparison(folder, wanted, errors, without=without))


def scores(found: Results, way: str, metric: str, data: str, name: str) -> list[float]:
    """Straight from the files."""
    return [
        cell_result(cell)["test"][way][metric] for cell in found.cells if (cell.data, cell.row.name) == (data, name)
    ]


def cell_result(cell: Cell) -> Any:
    return json.loads((cell.folder / "result.json").read_text())


def texts(grid: Grid) -> dict[str, list[str]]:
    return {each.title: [cell.text for cell in each.cells] for each in grid.rows}


def change(cell: Cell, **changes: Any) -> None:
    (cell.folder / "result.json").write_text(json.dumps(cell_result(cell) | changes))


# What stands in the tables.


def test_a_cell_is_the_mean_over_seeds_with_their_deviation(tmp_path: Path) -> None:
    found = results(tmp_path, plan([LINEAR, FLAT, HITIN], [ONE, TWO]))
    for way in ("tuned", "half", "per_metric"):
        shown = texts(score_grid(found.views[0], way, 200))
        for place, (data, metric) in enumerate((d, m) for d in ("one", "two") for m in ("micro_f1", "macro_f1")):
            values = [100 * score for score in scores(found, way, metric, data, "hitin")]
            expected = f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"
            assert shown["HiTIN"][place] == expected
            (alone,) = scores(found, way, metric, data, "linear")
            assert shown["linear"][place] == f"{100 * alone:.2f}"
        assert [row[-1] for row in shown.values()] == ["1", "2", "2"]


def test_averages_are_over_all_data_sets_or_missing(tmp_path: Path) -> None:
    wanted = plan([LINEAR, FLAT, HITIN], [ONE, TWO])
    cells = comparison(tmp_path, wanted, ERRORS)
    for cell in cells:
        if cell.row is FLAT and cell.data == "two":
            (cell.folder / "result.json").unlink()
    found = gathered(tmp_path, wanted, cells)
    shown = texts(score_grid(found.views[0], "tuned", 200))
    pairs = zip(*(scores(found, "tuned", "micro_f1", data, "hitin") for data in ("one", "two")), strict=True)
    averages = [100 * statistics.mean(pair) for pair in pairs]
    assert shown["HiTIN"][4] == f"{statistics.mean(averages):.2f} ± {statistics.stdev(averages):.2f}"
    assert shown["no hierarchy"][2:] == ["not run"] * 2 + ["–"] * 2 + ["2 of 4"]
    assert "Average" not in str(score_grid(gathered_one(tmp_path), "tuned", 200).groups)


def gathered_one(folder: Path) -> Any:
    wanted = plan([LINEAR, FLAT, HITIN], [ONE])
    return gathered(folder, wanted, cells_of(wanted, folder, keys(wanted))).views[0]


def test_the_best_is_bold_and_what_cannot_be_told_from_it_marked(tmp_path: Path) -> None:
    found = results(tmp_path, plan([LINEAR, FLAT, HITIN], [ONE]))
    grid = score_grid(found.views[0], "tuned", 200)
    linear, flat, hitin = (each.cells[0] for each in grid.rows)
    best, other = (hitin, flat) if (hitin.order or 0) > (flat.order or 0) else (flat, hitin)
    assert (best.is_best, best.mark) == (True, "")
    assert (other.is_best, other.mark) == (False, "†")
    assert (linear.is_best, linear.mark) == (False, "")
    assert "95 % interval" in linear.hint
    assert "1 seed" in linear.hint
    assert any("4 comparisons" in note for note in grid.notes)


def test_cells_that_are_not_run_or_failed_say_so(tmp_path: Path) -> None:
    wanted = plan([LINEAR, FLAT, HITIN], [ONE])
    cells = comparison(tmp_path, wanted, ERRORS, without=["flat", "hitin"])
    failed = next(cell for cell in cells if cell.row is HITIN)
    failed.folder.mkdir(parents=True)
    (failed.folder / "failure.json").write_text(json.dumps({"message": "out of memory"}))
    found = gathered(tmp_path, wanted, cells)
    grid = score_grid(found.views[0], "tuned", 200)
    assert texts(grid)["no hierarchy"] == ["not run", "not run", "0 of 2"]
    assert texts(grid)["HiTIN"] == ["failed", "failed", "0 of 2"]
    assert grid.rows[2].cells[0].hint == "out of memory"
    assert not grid.rows[0].cells[0].is_best  # of nothing
    assert any("failed" in note for note in grid.notes)
    assert dict(facts(found))["Results"] == "1 of 5 trainings finished, 1 failed"
    assert [verdict.text for verdict in verdicts(found.views[0])] == ["On One HiTIN has failed."] * 2


def test_nothing_run_at_all_is_written_too(tmp_path: Path) -> None:
    wanted = plan([LINEAR, FLAT, HITIN, RANDOM, *HEIGHTS], [ONE, TWO], published="bert")
    paths = write_results(wanted, cells_of(wanted, tmp_path, keys(wanted)), tmp_path)
    assert [path.name for path in paths] == ["tables.md", "tables.csv", "tables.tex", "index.html"]
    assert "On One HiTIN has not been run yet." in paths[0].read_text()
    assert all("nan" not in path.read_text() for path in paths[:3])


def test_costs_are_means_over_seeds_in_units_for_people(tmp_path: Path) -> None:
    found = results(tmp_path, plan([LINEAR, HITIN], [ONE]))
    shown = texts(cost_grid(found.views[0]))
    assert shown["HiTIN"] == ["15.0 M", "82 s", "3.22 GB", "1,234"]
    assert shown["linear"][1] == "82 s"


def test_times_of_different_machines_are_not_ranked_and_the_head_lists_them(tmp_path: Path) -> None:
    wanted = plan([LINEAR, HITIN], [ONE])
    cells = comparison(tmp_path, wanted, ERRORS)
    change(cells[0], machine={**GPU, "device": "some CPU"}, memory={"peak_bytes": 2**20, "of": "process"}, at_once=2)
    found = gathered(tmp_path, wanted, cells)
    grid = cost_grid(found.views[0])
    assert [[cell.is_best for cell in each.cells] for each in grid.rows] == [[False] * 4, [True, False, False, False]]
    head = dict(facts(found))
    assert head["Machines"] == (
        "NVIDIA H200 (2 trainings); some CPU, 2 threads (1 training); times, memory and speed are comparable within "
        "one kind only"
    )
    (note,) = grid.notes
    assert "(NVIDIA H200, 1 training at a time; some CPU, 2 threads, 2 trainings at a time)" in note


def test_times_are_ranked_among_trainings_under_the_conditions_of_most(tmp_path: Path) -> None:
    wanted = plan([LINEAR, FLAT, HITIN], [ONE])
    cells = comparison(tmp_path, wanted, ERRORS)
    for cell in cells:
        seconds = {"linear": 1.0, "flat": 9.0, "hitin": 5.0}[cell.row.name]
        device = {"linear": "some CPU"}.get(cell.row.name, "NVIDIA H200")
        change(cell, training={"seconds": seconds}, machine={**GPU, "device": device}, at_once=3)
    grid = cost_grid(gathered(tmp_path, wanted, cells).views[0])
    assert [each.cells[1].is_best for each in grid.rows] == [False, False, True]
    assert [each.cells[0].is_best for each in grid.rows] == [False, True, False]  # parameters are the same anywhere
    assert "bold is the best under those of most" in grid.notes[0]
    change(cells[0], machine=GPU)
    grid = cost_grid(gathered(tmp_path, wanted, cells).views[0])
    assert [each.cells[1].is_best for each in grid.rows] == [True, False, False]
    assert grid.notes == ("3 trainings ran at a time, which may make times longer.",)


def test_ablations_stand_apart_with_the_row_they_change(tmp_path: Path) -> None:
    found = results(tmp_path, plan([LINEAR, HITIN, RANDOM, *HEIGHTS], [ONE]))
    main, ablation = found.views
    assert list(texts(score_grid(main, "tuned", 200))) == ["linear", "HiTIN"]
    assert list(texts(score_grid(ablation, "tuned", 200))) == [
        *("HiTIN (K = 2)", "random coding tree", "K = 3", "K = 4")
    ]
    assert {place[0] for _, place in main.comparisons} <= {"linear", "hitin"}


def test_a_run_that_stands_in_two_tables_is_found_in_both(tmp_path: Path) -> None:
    wanted = plan([LINEAR, HITIN], [ONE])
    again = replace(wanted.tables[0], name="again", rows=(row("other name", "hitin", height=2),))
    both = replace(wanted, tables=(*wanted.tables, again))
    found = results(tmp_path, both)
    assert len(found.finished) == 3
    one, other = found.views
    assert one.line("hitin").entries["one"].results == other.line("other name").entries["one"].results


def test_a_method_without_epochs_has_one_half_in_place_of_its_best_epochs(tmp_path: Path) -> None:
    wanted = plan([LINEAR, HITIN], [ONE])
    cells = comparison(tmp_path, wanted, ERRORS)
    tests = cell_result(cells[0])["test"]
    change(cells[0], test={**tests, "per_metric": None})
    found = gathered(tmp_path, wanted, cells)
    assert texts(score_grid(found.views[0], "per_metric", 200))["linear"][0] == f"{100 * tests['half']['micro_f1']:.2f}"


# What is said.


@pytest.mark.parametrize(
    ("errors", "said", "outcome"),
    [
        (
            {"hitin": 0.05},
            r"HiTIN is best by macro-F1 on One \(\d\d\.\d\d; no hierarchy \d\d\.\d\d, p = 0\.\d+\)\.",
            "won",
        ),
        (
            {"hitin": 0.2},
            r"On One HiTIN loses to no hierarchy by \d+\.\d\d macro-F1 \(.* against .*, p = .*\)\.",
            "lost",
        ),
        ({}, r"(but no hierarchy may be as good|behind no hierarchy, which may be chance)", "drawn"),
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


def copied(cells: Iterable[Cell], source: Row, target: Row) -> None:
    """The target's cells get the results of the source's."""
    for one, other in zip(*([cell for cell in cells if cell.row is each] for each in (source, target)), strict=True):
        shutil.rmtree(other.folder, ignore_errors=True)
        shutil.copytree(one.folder, other.folder)


@pytest.mark.parametrize("rows", [(FLAT, HITIN), (HITIN, FLAT)], ids=["behind", "ahead"])
def test_a_tie_is_called_one_whoever_stands_first(tmp_path: Path, rows: tuple[Row, Row]) -> None:
    wanted = plan(rows, [ONE])
    cells = comparison(tmp_path, wanted, ERRORS)
    copied(cells, FLAT, HITIN)
    found = verdicts(gathered(tmp_path, wanted, cells).views[0])
    assert [verdict.outcome for verdict in found] == ["drawn", "drawn"]
    assert re.fullmatch(
        r"HiTIN and no hierarchy have the same micro-F1 on One \(\d\d\.\d\d\), the highest\.", found[0].text
    )


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


# The paper's numbers.


def test_the_papers_averages_are_those_of_its_numbers() -> None:
    for name, rows in (("textrcnn", 5), ("bert", 6), ("ablation", 3)):
        table = published_table(name)
        assert len(table.rows) == rows
        for each in table.rows:
            for metric in ("micro_f1", "macro_f1"):
                known = [each.score(data, metric) for data in published_data()]
                average = each.score("average", metric)
                assert (average is None) == (None in known or name == "ablation")
                if average is not None:
                    assert statistics.mean(filter(None, known)) == pytest.approx(average, abs=0.000051)
    assert published_table("bert").rows[-1].score("nyt", "macro_f1") == 0.6931
    hitin, base = (published_table(name).rows[-1] for name in ("textrcnn", "ablation"))
    assert {data: base.scores[data] for data in published_data()} == {d: hitin.scores[d] for d in published_data()}


def test_published_rows_stand_below_and_out_of_the_comparison(tmp_path: Path) -> None:
    sets = [data_set("mine"), data_set("one", title="WOS", published="wos")]
    with_them = results(tmp_path, plan([FLAT, HITIN], sets, published="textrcnn"))
    grid = score_grid(with_them.views[0], "half", 200)
    published = {each.title: [cell.text for cell in each.cells] for each in grid.rows if each.is_published}
    assert next(iter(published)) == "TextRCNN (published)"
    assert published["HiTIN (published)"] == ["–", "–", "86.66", "81.11", "–", "–", "–"]
    assert not any(cell.is_best or cell.mark for each in grid.rows if each.is_published for cell in each.cells)
    without = gathered(tmp_path, plan([FLAT, HITIN], sets), with_them.cells)
    assert without.views[0].comparisons == with_them.views[0].comparisons


def test_the_papers_averages_are_shown_beside_its_three_data_sets(tmp_path: Path) -> None:
    sets = [data_set(name, published=name) for name in ("nyt", "wos", "rcv1")]
    wanted = plan([HITIN, RANDOM], sets, published="textrcnn")
    main, ablation = gathered(tmp_path, wanted, cells_of(wanted, tmp_path, keys(wanted))).views
    assert texts(score_grid(main, "tuned", 200))["HiTIN (published)"][-3:] == ["82.20", "68.86", "–"]
    assert texts(score_grid(ablation, "tuned", 200))["HiTIN(Random) (published)"][:2] == ["71.99", "58.26"]
    wanted = plan([HITIN, RANDOM], sets, published="bert")
    assert gathered(tmp_path, wanted, ()).views[1].published is None  # the paper has ablations of TextRCNN only


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
    files = write_results(found.plan, found.cells, tmp_path, resamples=200)
    before = [path.read_bytes() for path in files]
    for kept in tmp_path.rglob("resampled.npz"):
        kept.unlink()
    again = write_results(found.plan, reversed(found.cells), tmp_path, resamples=200)
    assert [path.read_bytes() for path in again] == before
    assert not list(tmp_path.glob("*.part"))


def test_the_command_to_go_on_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    wanted = plan([HITIN], [ONE])
    absolute = replace(wanted, file=str(tmp_path / "my runs.toml"))
    head = dict(facts(gathered(tmp_path / "out", absolute, ())))
    assert head["Command"] == "hitin compare 'my runs.toml' --out out"
    head = dict(facts(gathered(Path("results/out"), replace(wanted, file="runs/a.toml"), ())))
    assert head["Command"] == "hitin compare runs/a.toml --out results/out"
    assert head["Data: One"] == "not read yet"
