"""Tables of a comparison: what stands in them against plain means, and the paper's numbers beside."""

import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hitin.compare.cells import Cell, cells_of
from hitin.compare.facts import facts
from hitin.compare.formats import write_results
from hitin.compare.published import published_data, published_table
from hitin.compare.results import Results
from hitin.compare.sentences import verdicts
from hitin.compare.tables import Grid, cost_grid, score_grid
from tests.comparison_harness import (
    ERRORS,
    FLAT,
    GPU,
    HEIGHTS,
    HITIN,
    LINEAR,
    ONE,
    RANDOM,
    TWO,
    comparison,
    data_set,
    gathered,
    keys,
    plan,
    results,
    row,
)


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
    assert shown["flat"][2:] == ["not run"] * 2 + ["–"] * 2 + ["2 of 4"]
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
    assert texts(grid)["flat"] == ["not run", "not run", "0 of 2"]
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


def test_what_knows_nothing_of_the_hierarchy_says_so_below_the_table(tmp_path: Path) -> None:
    other = row("flat, more dropout", "flat", dropout=0.5)
    (view,) = results(tmp_path, plan([LINEAR, FLAT, other, HITIN], [ONE])).views
    told = "flat, flat, more dropout: the text encoder and one linear map, which knows nothing of the hierarchy."
    assert told in score_grid(view, "tuned", 200).notes
    (without,) = results(tmp_path / "without", plan([LINEAR, HITIN], [ONE])).views
    assert not any("nothing of the hierarchy" in note for note in score_grid(without, "tuned", 200).notes)
