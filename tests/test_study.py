"""What the programs of the study work out: intervals against a baseline, orders, tries of a recipe."""

import json
import lzma
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import f1_score

import plots
import recipe
import study
from hitin.compare.resampling import ResampledScores
from tests.comparison_harness import FLAT, HITIN, LINEAR, ONE, TWO, copy_of_studies, plan, results
from tests.conftest import REPOSITORY


def test_rows_are_told_by_how_much_they_are_ahead_of_the_baseline(tmp_path: Path) -> None:
    found = results(tmp_path, plan([LINEAR, FLAT, HITIN], [ONE, TWO]), {"linear": 0.2, "flat": 0.1, "hitin": 0.02})
    view = found.views[0]
    ahead = study.against(view, ResampledScores(tmp_path, resamples=200), "tuned", "micro_f1")
    assert list(ahead) == ["linear", "HiTIN"]
    for data in ("One", "Two"):
        middle, low, high = ahead["HiTIN"][data]
        entry, base = (view.line(name).entries[data.lower()].scores("tuned", "micro_f1") for name in ("hitin", "flat"))
        assert middle == pytest.approx(100 * (np.mean(entry) - np.mean(base)))
        assert 0 < low < middle < high
        assert ahead["linear"][data][2] < 0


def test_orders_agree_as_scipy_says(tmp_path: Path) -> None:
    view = results(tmp_path, plan([LINEAR, FLAT, HITIN], [ONE])).views[0]
    one = study.order(view, "one", "tuned", "micro_f1")
    assert one[-1].row.name == "linear"
    assert study.kendall(one, one) == 1
    assert study.kendall(one, one[::-1]) == -1
    mixed = [one[1], one[0], one[2]]
    assert study.kendall(one, mixed) == pytest.approx(kendalltau([0, 1, 2], [1, 0, 2]).statistic)


def test_what_is_told_names_every_row_and_way(tmp_path: Path) -> None:
    found = results(tmp_path, plan([LINEAR, FLAT, HITIN], [ONE, TWO]))
    view, scores = found.views[0], ResampledScores(tmp_path, resamples=200)
    for cell in ("| linear | auto |", "| HiTIN | 0.5 |"):
        assert cell in "\n".join(study.told_against(view, scores))
    for cell in ("| One | micro-F1 |", "| Two | macro-F1 |"):
        assert cell in "\n".join(study.told_orders(view))


def test_scores_are_told_in_both_ways_with_the_best_in_bold(tmp_path: Path) -> None:
    view = results(tmp_path, plan([LINEAR, FLAT, HITIN], [ONE]), {"linear": 0.2, "flat": 0.1, "hitin": 0.02}).views[0]
    head, _, *rows = study.told_scores(view)
    assert head == "| | One, auto | One, 0.5 |"
    assert [row.count("**") for row in rows] == [0, 0, 8]
    for row, line in zip(rows, view.lines, strict=True):
        mean = np.mean(line.entries["one"].scores("tuned", "micro_f1"))
        assert f"{100 * mean:.2f}" in row.split("|")[2]


def test_means_are_over_the_sets_of_all_tables_for_rows_that_have_them_all(tmp_path: Path) -> None:
    one = results(tmp_path / "one", plan([FLAT, HITIN], [ONE]), {"flat": 0.1, "hitin": 0.02}).views[0]
    two = results(tmp_path / "two", plan([HITIN], [TWO]), {"hitin": 0.02}).views[0]
    head, *rows = study.told_means([one, two])
    assert head.startswith("| over 2 sets | auto | 0.5 |")
    assert len(rows) == 1
    entries = one.line("hitin").entries["one"], two.line("hitin").entries["two"]
    micro = np.mean([np.mean(entry.scores("tuned", "micro_f1")) for entry in entries])
    assert rows[0].startswith(f"| HiTIN | **{100 * micro:.2f}** / **")


def test_rare_labels_are_scored_apart_from_frequent_ones(tmp_path: Path) -> None:
    view = results(tmp_path, plan([FLAT, HITIN], [ONE])).views[0]
    _, documents, *rows = study.told_rare(view, tmp_path)
    with np.load(tmp_path / "data" / "one.npz") as kept:
        truth = np.unpackbits(kept["truth"], axis=1, count=int(kept["labels"]))
    rarest = sorted(range(truth.shape[1]), key=lambda label: truth[:, label].sum())[: truth.shape[1] // 3]
    counts = truth.sum(axis=0)[rarest]
    assert f"| {counts.min()} to {counts.max()} |" in documents
    for row, line in zip(rows, view.lines, strict=True):
        scores = []
        for cell in line.entries["one"].folders:
            with np.load(cell / "decisions.npz") as kept:
                given = np.unpackbits(kept["tuned"], axis=1, count=int(kept["labels"]))
            scores.append(f1_score(truth[:, rarest], given[:, rarest], average="macro"))
        assert row.split(" | ")[2] == f"{100 * np.mean(scores):.2f}"


PAGE = REPOSITORY / "docs" / "study.md"


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> study.Studies:
    """Of a copy, to be worked on."""
    return study.Studies(copy_of_studies(tmp_path_factory.mktemp("repository")), resamples=20)


def test_a_block_of_a_page_is_written_anew_and_the_rest_is_left(studies: study.Studies) -> None:
    rest = "<!-- against: plain/minilm -->\nkept\n<!-- end -->\n"
    page = f"# One\n\n<!-- scores: plain/minilm -->\nold\n<!-- end -->\n\n{rest}"
    found = study.refreshed(page, studies, ["scores"])
    assert found.text.startswith("# One\n\n<!-- scores: plain/minilm -->\n\n| | arXiv, auto |")
    assert "old" not in found.text
    assert found.text.endswith(rest)
    assert not found.pictures
    assert study.refreshed(found.text, studies, ["scores"]) == found


QUICK = [kind for kind in study.KINDS if kind not in ("against", "trees")]


def test_scores_and_orders_in_the_page_of_the_study_are_those_that_were_measured(studies: study.Studies) -> None:
    page = PAGE.read_text()
    found = study.refreshed(page, studies, QUICK)
    assert found.text == page
    assert re.findall(rf"\({study.FOLDER}/(\S+)\)", page) == [picture.name for picture in found.pictures]
    for picture in found.pictures:
        assert (PAGE.parent / study.FOLDER / picture.name).exists(), picture.name


def test_trees_in_the_page_of_the_study_have_the_entropy_that_is_said(studies: study.Studies) -> None:
    page = PAGE.read_text()
    assert study.refreshed(page, studies, ["trees"]).text == page


def test_label_trees_that_are_kept_are_those_of_the_sets(shared: Path) -> None:
    found = [*(REPOSITORY / "benchmarks" / "results" / "studies").rglob("*.taxonomy.tsv")]
    assert found
    for kept in found:
        assert kept.read_bytes() == (shared / kept.name.removesuffix(".taxonomy.tsv") / "taxonomy.tsv").read_bytes()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_intervals_and_pictures_of_the_study_are_those_of_its_results(studies: study.Studies) -> None:
    page = PAGE.read_text()
    found = study.refreshed(page, study.Studies(studies.folder), ["against", *study.PICTURES])
    assert found.text == page
    for picture in found.pictures:
        assert picture.svg == (PAGE.parent / study.FOLDER / picture.name).read_text()


def test_intervals_are_drawn_where_they_are() -> None:
    svg = plots.intervals("a < b", "points", {"one": {"x": (1.0, 0.5, 2.0)}, "two": {"x": (-1.0, -3.0, 0.0)}})
    root = ElementTree.fromstring(svg)
    circles = [float(each.get("cx", "")) for each in root.iter() if each.tag.endswith("circle")]
    lines = [[float(each.get(end, "")) for end in ("x1", "x2")] for each in root.iter() if each.tag.endswith("line")]
    whiskers = [line for line in lines if line[0] != line[1]]
    zero = next(float(each.get("x1", "")) for each in root.iter() if each.get("stroke") == "#888888")
    for middle, (left, right) in zip(circles, whiskers, strict=True):
        assert left < middle < right
    assert whiskers[0][0] > zero
    assert whiskers[1][1] == zero
    assert (circles[0] - zero) == pytest.approx(zero - circles[1], abs=0.2)


@pytest.fixture
def searched(tmp_path: Path) -> Path:
    """A file of two tries on a copy of the tickets, which have no test documents there."""
    folder = tmp_path / "data" / "tickets"
    folder.mkdir(parents=True)
    tickets = REPOSITORY / "examples" / "tickets"
    (folder / "taxonomy.tsv").write_bytes((tickets / "taxonomy.tsv").read_bytes())
    for split in ("train", "val"):
        (folder / f"{split}.jsonl.xz").write_bytes(lzma.compress((tickets / "train.jsonl").read_bytes()))
    file = tmp_path / "recipe.toml"
    file.write_text("""
folder = "data"
[groups.bag]
settings = { encoder = "bag", width = 8, embedding = 16 }
tries = [{ data = "tickets", epochs = 1 }, { data = ["tickets"], epochs = 2, consistency = 1.0 }]
""")
    return file


def test_tries_are_trained_once_and_scored_on_validation_documents(
    searched: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recipe.main([str(searched), "--out", str(tmp_path / "out"), "--only", "bag/*"])
    table = capfd.readouterr().out
    assert "| bag/tickets | `epochs=2 consistency=1.0` |" in table
    found = {path: json.loads(path.read_text()) for path in (tmp_path / "out").glob("*.json")}
    assert [0 <= score <= 1 for each in found.values() for score in each["crossed"]] == [True] * 4
    marked = next(iter(found))
    marked.write_text(json.dumps(found[marked] | {"crossed": [0.125, 0.25]}))
    recipe.main([str(searched), "--out", str(tmp_path / "out")])
    assert "| 12.50 / 25.00 |" in capfd.readouterr().out  # it was not trained again


def test_a_try_is_known_by_its_settings_alone(searched: Path) -> None:
    keys = [one.key for one in recipe.tries(searched)]
    assert len(set(keys)) == 2
    moved = searched.parent / "elsewhere.toml"
    moved.write_text(
        searched.read_text().replace('folder = "data"', 'folder = "other"').replace("groups.bag", "groups.b")
    )
    assert [one.key for one in recipe.tries(moved)] == keys
