"""The file of a comparison: what it asks for, what it may not say, and which cells it makes."""

import json
import os
import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hitin import InputError, settings
from hitin.compare import data as compare_data
from hitin.compare.cells import Cell, cells_of, once
from hitin.compare.data import read_splits, settle_data
from hitin.compare.display import Count, LiveDisplay, bars_on, showing
from hitin.compare.places import THREADS, Place, places_of
from hitin.compare.plan import only, read_plan
from hitin.compare.worker import Task
from hitin.evaluation import truth_table
from tests.comparing import DATA, TINY, comparison, planned, table, write_documents
from tests.conftest import Run, Write


def rows(folder: Path, text: str) -> dict[str, Any]:
    """The runs of the first table, by name."""
    (folder / "run.toml").write_text(text)
    return {row.name: row.run for row in read_plan(folder / "run.toml").tables[0].rows}


def test_rows_are_linear_then_methods_then_those_of_the_user(tmp_path: Path) -> None:
    own = '[tables.first.rows.hitin]\ndropout = 0.5\n[tables.first.rows."deep one"]\nmethod = "hitin"\nheight = 4'
    found = rows(tmp_path, table(own, methods='["hitin", "flat"]'))
    assert list(found) == ["linear", "hitin", "flat", "deep one"]
    assert [run.method_name for run in found.values()] == ["linear", "hitin", "flat", "hitin"]
    assert (found["hitin"].method.dropout, found["deep one"].method.dropout) == (0.5, 0.2)
    assert (found["hitin"].method.height, found["deep one"].method.height) == (2, 4)


def test_settings_of_a_table_go_to_the_methods_that_know_them(tmp_path: Path) -> None:
    found = rows(tmp_path, table(settings="epochs = 7, width = 16, cost = 2.0, loss = 'focal', gamma_positive = 1.0"))
    assert found["hitin"].training.epochs == found["flat"].training.epochs == 7
    assert found["hitin"].method.width == 16
    assert found["linear"].method.cost == 2.0
    assert found["flat"].loss.gamma_positive == 1.0


def test_ablations_change_one_thing_of_the_row_of_hitin(tmp_path: Path) -> None:
    ablations = 'ablations = ["random-tree", "no-regularisation", "taxonomy-tree", "paper-tree", "pooling", "height"]'
    found = rows(tmp_path, table(f"{ablations}\n[tables.first.rows.hitin]\nheight = 3\npooling = 'max'"))
    base = found["hitin"]
    names = [*found][3:]
    trees = ["random-tree", "no-regularisation", "taxonomy-tree", "paper-tree"]
    poolings = ["pooling-sum", "pooling-mean", "pooling-root"]  # not the row's own
    assert names == [*trees, *poolings, *(f"height-{height}" for height in (2, 4, 5, 6, 7, 8))]
    for name in names:
        differ = [
            option
            for section, options in base.to_dict().items()
            for option, value in options.items()
            if found[name].to_dict()[section][option] != value
        ]
        assert len(differ) == 1, name
    assert found["height-6"].method.height == 6
    assert found["no-regularisation"].loss.regularisation == 0


def test_rows_of_ablations_are_of_their_own_kinds(tmp_path: Path) -> None:
    cells = planned(tmp_path, table('ablations = ["random-tree", "height"]'))
    kinds = {cell.row.name: cell.row.kind for cell in cells}
    assert (kinds["hitin"], kinds["random-tree"], kinds["height-5"]) == ("main", "ablation", "height")


def test_the_file_of_the_papers_tables_has_the_settings_of_the_preset() -> None:
    file = Path(__file__).parents[1] / "benchmarks" / "paper.toml"
    found: dict[str, Any] = {row.name: row.run for row in read_plan(file).tables[0].rows}
    assert [*found][:6] == ["linear", "flat", "hiagm-tp", "htcinfomax", "himatch", "hitin"]
    changed: dict[str, Any] = {"tree": "paper", "leaves": "mixed", "vectors": found["hitin"].encoder.vectors}
    assert found["hitin"] == settings.Run.of(preset="wos-glove", **changed)
    assert {found[name].method.fidelity for name in [*found][1:5]} == {"upstream"}


WRONG: dict[str, tuple[str, str, str]] = {
    "a misspelt option of a table": (table(settings="epoch = 3"), "'epoch'", "Did you mean epochs?"),
    "a misspelt option of a row": (table("[tables.first.rows.hitin]\nheigth = 3"), "'heigth'", "height"),
    "an option of another method": (table("[tables.first.rows.flat]\nheight = 3"), "'height'", "method hitin"),
    "an option that no row takes": (table(settings="freeze = true"), "freeze means nothing", "Leave it out"),
    "a bad value": (table("[tables.first.rows.hitin]\nheight = 'x'"), "height is 'x'", "whole number"),
    "an unknown method": (table(methods='["hitn"]'), "'hitn'", "Did you mean hitin? It is one of hitin, flat"),
    "a row of no method": (table('[tables.first.rows."my row"]\nepochs = 3'), "'my row'", 'method = "..."'),
    "an unknown ablation": (table('ablations = ["tree"]'), "'tree'", "random-tree"),
    "ablations without hitin": (table('ablations = ["height"]', methods='["flat"]'), "no row hitin", "methods"),
    "a method given twice": (table(methods='["flat", "flat"]'), "'flat'", "another name"),
    "a data set that is not there": (table('data = ["tidy"]'), "'tidy'", "tiny"),
    "two data sets that differ in case": (table('[data.Tiny]\ntaxonomy="a"\ntrain="a"\ntest="a"'), "'Tiny'", "another"),
    "a data set without documents": (table('[data.b]\ntaxonomy="a"'), "[data.b] has no train", "train ="),
    "a number for a table's rows": (table("rows = 3"), "tables.first.rows is 3", "[tables.first.rows.NAME]"),
    "a number for all data": ("data = 3", "data is 3", "[data.NAME]"),
    "an empty file": ("", "no section [data.NAME]", "--help"),
    "a data set with a bad name": (table('[data."a/b"]\ntaxonomy="a"\ntrain="a"\ntest="a"'), "'a/b'", "letters"),
    "a misspelt key of a data set": (table('[data.b]\ntaxonmy = "a"'), "'taxonmy'", "Did you mean taxonomy?"),
    "a misspelt key of the file": (table(head="seed = [1]"), "'seed'", "Did you mean seeds?"),
    "seeds twice": (table(head="seeds = [1, 1]"), "[1, 1]", "different"),
    "no table": ("seeds = [0]\n[data.a]\ntaxonomy='a'\ntrain='a'\ntest='a'", "[tables.NAME]", "--help"),
    "a name that is declared twice": (table("[tables.first]\ntitle = 'x'"), "not TOML", "--help"),
    "published numbers that are not there": (table('published = "gpt"'), "'gpt'", "textrcnn"),
    "published numbers for no data set": (table('published = "bert"'), "no data set of the table", "wos, rcv1, nyt"),
    "a list for a row's method": (table("[tables.first.rows.x]\nmethod = ['hitin']"), "method of the row x", "quotes"),
    "a seed as an option": (table(settings="seed = 1"), "seed cannot be set", "`seeds`"),
    "another selection": (table("[tables.first.rows.hitin]\nselect = 'micro'"), "select cannot be set", "One rule"),
    "other decisions": (table(settings="policy = 'raw'"), "policy cannot be set", "One rule"),
    "another part held out": (table(settings="validation = 0.2"), "validation cannot be set", "val"),
    "a table of no data": (table("data = []"), "data of [tables.first] is empty", "Leave it out"),
    "a method among settings": (table(settings="method = 'flat'"), "method cannot be among them", "methods ="),
    "an encoder among settings": (table(settings="encoder = 'bag'"), "encoder cannot be among them", "itself"),
    "an option of an odd name": (table("[tables.first.rows.flat]\ncls = 1"), "no option 'cls'", "The options are"),
    "sampled labels for all": (
        table(settings="negatives = 2", methods='["flat", "hiagm-tp"]'),
        "the row hiagm-tp of the table first: the method hiagm-tp needs all labels",
        "Leave out negatives",
    ),
    "tables that files cannot tell apart": (
        table('[tables."First!"]\nmethods = ["flat"]'),
        "two tables, as files and links name them, are called 'first'",
        "another name",
    ),
    "seeds that no row has": (table(head="seeds = [1]").replace("val =", "seeds = [2]\nval ="), "no seed", "some of"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_with_the_file_and_a_remedy(case: str, tmp_path: Path) -> None:
    text, problem, remedy = WRONG[case]
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(InputError) as caught:
        read_plan(tmp_path / "run.toml")
    assert caught.value.file == str(tmp_path / "run.toml")
    assert problem in caught.value.message
    assert remedy in (caught.value.remedy or "")


@pytest.mark.parametrize("file", [".", ""])
def test_a_folder_in_place_of_the_file_is_told(
    file: str, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("compare", file, "--json")
    assert result.exit_code == 2
    assert ".: this is a folder, not a file" in result.stderr
    assert json.loads(result.stdout)["problems"][0]["kind"] == "directory"


def test_a_file_whose_name_has_no_ending_needs_a_folder_for_its_results(tmp_path: Path, run: Run) -> None:
    write_documents(tmp_path)
    (tmp_path / "run").write_text(table())
    result = run("compare", tmp_path / "run", "--dry-run")
    assert result.exit_code == 2
    assert "Name the folder with --out" in result.stderr
    assert run("compare", tmp_path / "run", "--dry-run", "--out", tmp_path / "out").exit_code == 0
    assert "the name of the folder is empty" in run("compare", tmp_path / "run", "--out", "").stderr


def test_a_mistake_ends_the_command_before_anything_is_written(tmp_path: Path, run: Run) -> None:
    write_documents(tmp_path)
    (tmp_path / "run.toml").write_text(table("[tables.first.rows.flat]\nheight = 3"))
    result = run("compare", tmp_path / "run.toml", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "the row flat of the table first" in result.stderr
    assert not (tmp_path / "out").exists()


def test_an_encoder_that_cannot_be_loaded_is_told_before_anything_is_trained(tmp_path: Path, run: Run) -> None:
    write_documents(tmp_path)
    (tmp_path / "run.toml").write_text(table('encoder = "./no/such/folder"', settings="epochs = 1"))
    result = run("compare", tmp_path / "run.toml", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "there is no such folder" in result.stderr
    assert not (tmp_path / "out" / "cells").exists()


def test_an_unknown_label_is_told_with_file_and_line(tmp_path: Path, run: Run) -> None:
    write_documents(tmp_path)
    with (tmp_path / "test.jsonl").open("a") as file:
        file.write('{"text": "x", "label": "Catt"}\n')
    (tmp_path / "run.toml").write_text(table())
    result = run("compare", tmp_path / "run.toml", "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert f"{tmp_path / 'test.jsonl'}:41" in result.stderr
    assert "Did you mean 'Cat'?" in result.stderr


# Cells.


def test_the_first_seed_of_every_row_comes_before_second_ones(tmp_path: Path) -> None:
    more = '[data.other]\ntaxonomy="a"\ntrain="a"\ntest="a"\nseeds = [4]\n[tables.first.rows.flat]\nseeds = [4]'
    cells = planned(tmp_path, table(f"seeds = [3, 4]\n{more}"))
    found = [(cell.data, cell.row.name, cell.seed) for cell in cells]
    first = [("tiny", "linear", 3), ("tiny", "flat", 4), ("tiny", "hitin", 3)]
    other = [("other", "linear", 4), ("other", "flat", 4), ("other", "hitin", 4)]
    assert found == [*first, *other, ("tiny", "hitin", 4)]  # linear draws nothing by chance: one seed is enough


def test_the_same_run_in_two_tables_is_trained_once(tmp_path: Path) -> None:
    second = (
        f'[tables.second]\nmethods = ["hitin"]\nsettings = {{ {TINY} }}\n[tables.second.rows.mine]\nmethod = "flat"'
    )
    cells = planned(tmp_path, table(second))
    assert len(cells) == 6
    assert [cell.row.name for cell in once(cells)] == ["linear", "flat", "hitin"]
    assert next(cell for cell in cells if cell.row.name == "mine").folder.parent.name.startswith("flat-")


def folders(cells: list[Cell]) -> set[str]:
    return {cell.folder.parent.name for cell in cells}


def test_the_key_depends_on_options_and_documents_alone(tmp_path: Path) -> None:
    before = folders(planned(tmp_path, table()))
    assert folders(planned(tmp_path, table(settings=f"{TINY}, checkpoint_seconds = 1.0"))) == before
    assert folders(planned(tmp_path, table(settings=f"{TINY}, width = 9".replace("width = 8, ", "")))) - before
    assert not folders(planned(tmp_path, table(), key="others")) & before
    (tmp_path / "moved").mkdir()
    assert folders(planned(tmp_path / "moved", table())) == before


def test_a_result_stands_while_what_it_was_made_with_is_still_usual(tmp_path: Path) -> None:
    hitin = next(cell for cell in planned(tmp_path, table()) if cell.row.name == "hitin")
    hitin.folder.mkdir(parents=True)

    def written(run: str) -> bool:
        (hitin.folder / "result.json").write_text(json.dumps({"format": 1, "run": run}))
        return hitin.result() is not None

    text = hitin.row.text
    assert written(text)
    assert written(text.replace("\nseed = 0", "\nseed = 7"))
    assert written(text.replace("leaf_dropout = 0.1\n", ""))  # from before there was such an option
    assert not written(text.replace("width = 8\n", ""))  # an option that now is otherwise than by itself
    assert not written(text.replace("leaf_dropout = 0.1", "leaf_dropout = 0.2"))  # when that was usual
    assert not written(text + "\n[more]\nknob = 1\n")  # when there was another
    assert "leaf_dropout" not in hitin.row.chosen["method"]


def test_a_folder_of_an_encoder_is_found_beside_the_file_and_known_by_its_written_name(tmp_path: Path) -> None:
    found = []
    for place in ("one", "other"):
        (tmp_path / place / "models" / "mini").mkdir(parents=True)
        cells = planned(tmp_path / place, table('encoder = "models/mini"', settings="epochs = 1"))
        flat = next(cell for cell in cells if cell.row.name == "flat")
        assert flat.row.run.encoder_name == str((tmp_path / place / "models" / "mini").resolve())
        assert 'encoder = "models/mini"' in flat.row.text
        found.append(folders(cells))
    assert found[0] == found[1]


def test_a_row_with_another_name_keeps_its_folder(tmp_path: Path) -> None:
    text = table('[tables.first.rows.{}]\nmethod = "hitin"\nheight = 3')
    before = next(cell for cell in planned(tmp_path, text.replace("{}", "one")) if cell.row.name == "one")
    before.folder.mkdir(parents=True)
    after = next(cell for cell in planned(tmp_path, text.replace("{}", "two")) if cell.row.name == "two")
    assert after.folder == before.folder


def test_rows_leave_out_what_means_nothing_to_them(tmp_path: Path) -> None:
    own = '[tables.first.rows.random]\nmethod = "hitin"\ntree = "random"\nnorm = "batch"'
    shared = "layer_decay = 0.9, sync_norm = true, tree_seed = 3"
    found = rows(tmp_path, table(f'encoder = "bert-base-uncased"\n{own}\nencoder = "textrcnn"', settings=shared))
    assert [found[name].training.layer_decay for name in ("flat", "hitin", "random")] == [0.9, 0.9, 1.0]
    assert [found[name].training.sync_norm for name in ("flat", "hitin", "random")] == [False, False, True]
    assert (found["hitin"].method.tree_seed, found["random"].method.tree_seed) == (0, 3)


def test_ablations_of_a_random_tree_have_no_seed_of_a_tree(tmp_path: Path) -> None:
    own = 'ablations = ["paper-tree", "taxonomy-tree"]\n[tables.first.rows.hitin]\ntree = "random"\ntree_seed = 3'
    found = rows(tmp_path, table(own))
    seeds = {name: found[name].method.tree_seed for name in ("hitin", "paper-tree", "taxonomy-tree")}
    assert seeds == {"hitin": 3, "paper-tree": 0, "taxonomy-tree": 0}


def test_chosen_rows_have_the_folders_that_all_rows_have(tmp_path: Path) -> None:
    second = (
        f'[tables.second]\nmethods = ["hitin"]\nsettings = {{ {TINY} }}\n[tables.second.rows.mine]\nmethod = "flat"'
    )
    found = comparison(tmp_path, table(second), patterns=["second/mine"])
    (mine,) = found.wanted
    assert mine.folder in {cell.folder for cell in found.cells if cell.row.name == "flat"}


def test_a_file_that_no_name_can_be_is_told(tmp_path: Path, run: Run) -> None:
    write_documents(tmp_path)
    (tmp_path / "run.toml").write_text(table().replace('"taxonomy.json"', '"a\\u0000b"'))
    found = run("compare", tmp_path / "run.toml", "--out", tmp_path / "out")
    assert found.exit_code == 2
    assert "error:" in found.stderr
    assert found.exception is None or isinstance(found.exception, SystemExit)


def test_patterns_choose_rows(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(table('ablations = ["height"]'))
    plan = read_plan(tmp_path / "run.toml")
    assert [row.name for row in only(plan, ["first/h*n", "flat"]).tables[0].rows] == ["flat", "hitin"]
    with pytest.raises(InputError, match="second") as caught:
        only(plan, ["second/*"])
    assert caught.value.file == str(tmp_path / "run.toml")


def test_of_rows_that_are_not_trained_now_no_documents_are_needed_twice(tmp_path: Path) -> None:
    write_documents(tmp_path / "other")
    second = DATA.replace("tiny", "other").replace('"t', '"other/t').replace('"val', '"other/val')
    tables = '[tables.second]\nmethods = ["flat"]\ndata = ["other"]\n'
    text = table(more=tables).replace("methods", 'data = ["tiny"]\nmethods', 1).replace(DATA, DATA + second)
    everything = comparison(tmp_path, text)
    write_documents(tmp_path / "other", 50)
    changed = comparison(tmp_path, text, patterns=["first/*"]).data_keys
    assert changed["tiny"] == everything.data_keys["tiny"]
    assert changed["other"] != everything.data_keys["other"]
    write_documents(tmp_path / "other")
    everything = comparison(tmp_path, text)
    shutil.rmtree(tmp_path / "other")
    some = comparison(tmp_path, text, patterns=["first/*"])
    assert some.data_keys == everything.data_keys
    assert {cell.data for cell in some.wanted} == {"tiny"}
    with pytest.raises(InputError, match="other"):
        comparison(tmp_path, text, patterns=["second/*"])


# Documents.


def test_documents_are_read_once_and_again_when_a_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = comparison(tmp_path)
    data, key = found.plan.data[0], found.data_keys["tiny"]
    with monkeypatch.context() as patch:
        patch.setattr(compare_data, "read_splits", lambda *_: pytest.fail("it was read again"))
        assert settle_data(data, tmp_path / "out")[0] == key
    os.utime(data.test[0], (1, 1))
    assert settle_data(data, tmp_path / "out")[0] == key
    write_documents(tmp_path, count=61)
    assert settle_data(data, tmp_path / "out")[0] != key


def test_the_truth_of_the_test_documents_is_kept(tmp_path: Path) -> None:
    found = comparison(tmp_path)
    splits = read_splits(found.plan.data[0])
    with np.load(tmp_path / "out" / "data" / "tiny.npz", allow_pickle=False) as arrays:
        kept = np.unpackbits(arrays["truth"], axis=1, count=int(arrays["labels"]))
    assert np.array_equal(kept.astype(bool), truth_table(splits.test.labels, splits.taxonomy))


def test_without_validation_documents_the_same_part_is_held_out_for_all(tmp_path: Path) -> None:
    write_documents(tmp_path)
    text = table().replace('val = ["val.jsonl"]\n', "")
    found = comparison(tmp_path, text)
    splits = read_splits(found.plan.data[0])
    assert len(splits.val.texts) == pytest.approx(6, abs=3)
    assert len(splits.train.texts) + len(splits.val.texts) == 60
    assert not set(splits.train.texts) & set(splits.val.texts)
    assert read_splits(found.plan.data[0]).key == splits.key == found.data_keys["tiny"]
    assert cells_of(found.plan, tmp_path, found.data_keys)[0].folder != comparison(tmp_path, table()).cells[0].folder


def test_a_file_with_training_documents_alone_is_enough(tmp_path: Path) -> None:
    write_documents(tmp_path)
    text = table().replace('val = ["val.jsonl"]\n', "").replace('test = "test.jsonl"\n', "")
    splits = read_splits(comparison(tmp_path, text).plan.data[0])
    parts = [set(documents.texts) for documents in (splits.train, splits.val, splits.test)]
    assert len(splits.test.texts) == pytest.approx(12, abs=3)
    assert sum(len(documents.texts) for documents in (splits.train, splits.val, splits.test)) == 60
    assert sum(map(len, parts)) == len(set().union(*parts))


def test_a_missing_file_is_told_with_the_place_that_names_it(tmp_path: Path, run: Run) -> None:
    write_documents(tmp_path)
    (tmp_path / "run.toml").write_text(table().replace("train.jsonl", "trian.jsonl"))
    result = run("compare", tmp_path / "run.toml")
    assert result.exit_code == 2
    assert f"{tmp_path / 'trian.jsonl'}: there is no such file" in result.stderr
    assert "Did you mean" in result.stderr
    assert f"[data.tiny] of {tmp_path / 'run.toml'}" in result.stderr


# Devices.


def test_processes_share_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS, "7")
    assert [place.environment for place in places_of(["cpu"], 1)] == [{}]
    assert [place.environment for place in places_of(["cpu", "cpu"], 3)] == [{THREADS: "2"}] * 3
    with pytest.raises(InputError, match="no device"):
        places_of(["cuda:99"], 1)


# What is shown.

EVENTS: list[dict[str, Any]] = [
    {"kind": "note", "message": "preparing"},
    {"kind": "note", "message": "warning: it takes much memory"},
    {"kind": "begin", "epochs": 2, "documents": 10, "done": 0},
    {"kind": "step", "done": 5, "loss": 0.25},
    {"kind": "step", "done": 6, "loss": float("nan")},
    {"kind": "epoch", "epoch": 1, "micro_f1": 0.5, "macro_f1": 0.25, "is_best": True},
    {"kind": "work", "what": "testing", "done": 1, "total": 4},
]
RESULT = {"test": {"tuned": {"micro_f1": 0.5, "macro_f1": 0.25}}}


def test_without_a_terminal_warnings_and_ends_are_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cells = planned(tmp_path, table(head="seeds = [0, 1]"))
    flat = [cell for cell in cells if cell.row.name == "flat"]
    with showing(cells, 1) as audience:
        for cell in flat:
            audience.begin(cell, Place("cpu", "cpu"))
            for event in EVENTS:
                audience.event(cell, event)
        audience.finished(flat[0], RESULT, 81.2)
        audience.failed(flat[1], "it broke\nand more")
    assert capsys.readouterr().err.splitlines() == [
        "tiny / flat / seed 0: warning: it takes much memory",
        "[1/5] tiny / flat / seed 0: micro-F1 50.00, macro-F1 25.00 in 81 s",
        "[2/5] tiny / flat / seed 1: failed: it broke",
    ]


def test_a_terminal_shows_how_far_each_cell_is_and_the_time_left(tmp_path: Path) -> None:
    cells = planned(tmp_path, table())
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=120)
    with bars_on(console) as bars:
        display = LiveDisplay(Count(cells, 1), bars)
        display.begin(cells[1], Place("cpu", "cpu"))
        for event in EVENTS[:-1]:
            display.event(cells[1], event)
        bars.refresh()
        display.finished(cells[1], RESULT, 60)
        bars.refresh()
    for words in ("epoch 1: micro 50.00 macro 25.00", "about 2.0 min left", "warning: it takes much memory", "30%"):
        assert words in out.getvalue()


def test_the_files_of_a_data_set_are_read_as_it_says(tmp_path: Path, write: Write) -> None:
    rows = "body;category\ncafé au lait;Drink/Coffee,Hot\niced tea;Drink/Tea\nhot tea;Drink/Tea,Hot\n"
    write("train.csv", rows.encode("windows-1252"))
    write("taxonomy.csv", "parent,child\nDrink,Coffee\nDrink,Tea\nRoot,Hot\n")
    said = {"text_key": "body", "label_key": "category", "label_delimiter": ",", "separator": "/"}
    said |= {"encoding": "windows-1252", "taxonomy_encoding": "utf-8"}
    lines = "\n".join(f'{name} = "{value}"' for name, value in said.items())
    files = 'taxonomy = "taxonomy.csv"\ntrain = "train.csv"\nval = "train.csv"\ntest = "train.csv"\n'
    table = '[tables.one]\nmethods = ["flat"]\n'
    (data,) = read_plan(write("compare.toml", f"[data.mine]\n{files}{lines}\n{table}")).data
    assert data.reading == said
    task = Task(data, "flat", 0, str(tmp_path), "", "", {}, "", "textrcnn", "cpu")
    assert Task.from_json(task.to_json()).data == data
    splits = read_splits(data)
    assert splits.train.texts[0] == "café au lait"
    labels = splits.taxonomy.labels
    assert {labels[label] for label in splits.train.labels[0]} == {"Drink", "Coffee", "Hot"}
    for left_out, words in (
        ("text_key", "text_key in [data.mine]"),
        ("encoding", 'encoding = "windows-1252" in [data.mine]'),
        ("separator", 'separator = "/" in [data.mine]'),
        ("label_delimiter", 'label_delimiter = "," in [data.mine]'),
    ):
        fewer = replace(data, reading={name: value for name, value in said.items() if name != left_out})
        with pytest.raises(InputError) as caught:
            read_splits(fewer)
        assert words in str(caught.value.remedy), left_out
        assert "--" not in str(caught.value.remedy)
