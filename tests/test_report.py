"""The report: what it collects, against hand and brute force; its files; and the page at work in a real browser."""

import csv
import io
import json
import math
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, log_loss

from hitin import Taxonomy
from hitin.documents import Document
from hitin.errors import InputError
from hitin.metrics import Tally
from hitin.report import About, Report, ReportBuilder, ReportDocument, report_files
from hitin.report.confusions import SiblingConfusions
from tests.browser import Pages, in_a_browser
from tests.report_harness import ABOUT, Answers, answers, assert_edges, browse, picture_bytes, shown
from tests.strategies import taxonomies

if TYPE_CHECKING:
    from playwright.sync_api import Page

TOPICS = Taxonomy.from_edges(
    [
        ("Science", "Physics"),
        ("Science", "Chemistry"),
        ("Science", "Acoustics"),
        ("Arts", "Music"),
        ("Arts", "Acoustics"),
    ]
)
ATTACK = "</script><img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


def told(rows: list[tuple[str, dict[str, float]]]) -> Answers:
    """From a line a document: its true labels in a row, and the probabilities that are not 0.1."""
    probabilities = np.full((len(rows), len(TOPICS)), 0.1, dtype=np.float32)
    truth = np.zeros(probabilities.shape, dtype=np.bool_)
    for number, (labels, said) in enumerate(rows):
        truth[number, list(TOPICS.closure(map(TOPICS.index, labels.split())))] = True
        for label, probability in said.items():
            probabilities[number, TOPICS.index(label)] = probability
    documents = [Document(f"text {number}", file="test.jsonl", line=number + 1) for number in range(len(rows))]
    return Answers(TOPICS, documents, probabilities, probabilities >= 0.5, truth)


ALL_RIGHT = {"Science": 0.9, "Physics": 0.9}
FOUR = told(
    [
        ("Physics", ALL_RIGHT),
        ("Physics", {"Science": 0.9, "Chemistry": 0.8}),
        ("Physics", {"Arts": 0.7, "Music": 0.6}),
        ("Music", {"Science": 0.99, "Physics": 0.6}),
    ]
)


def island(page: str) -> Any:
    """The data that the page draws."""
    return json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[0])


# What is collected.


def test_siblings_given_for_each_other_are_counted_under_their_parent() -> None:
    found = FOUR.report().to_json()["confusions"]
    assert [tuple(each.values()) for each in found] == [
        ("Science", "Physics", "Chemistry", 1, 1 / 3),
        (None, "Science", "Arts", 1, 1 / 3),
        (None, "Arts", "Science", 1, 1.0),
    ]


@st.composite
def decided(draw: st.DrawFn) -> tuple[Taxonomy, Any, Any, Any]:
    taxonomy = draw(taxonomies())
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    shape = (draw(st.integers(1, 12)), len(taxonomy))
    truth, guess = chance.random(shape) < 0.4, chance.random(shape) < 0.4
    return taxonomy, guess, truth, np.where(guess, 0.75, chance.integers(0, 3, shape) / 8).astype(np.float32)


def plain_confusions(taxonomy: Taxonomy, guess: Any, truth: Any) -> Counter[tuple[int | None, int, int]]:
    above: list[set[int | None]] = [set(taxonomy.parents(label).tolist()) or {None} for label in range(len(taxonomy))]
    return Counter(
        (parent, a, b)
        for row in range(len(truth))
        for a in np.flatnonzero(truth[row] & ~guess[row]).tolist()
        for b in np.flatnonzero(guess[row] & ~truth[row]).tolist()
        for parent in above[a] & above[b]
    )


@given(decided())
def test_confusions_are_those_of_a_plain_loop_over_documents_and_pairs(case: tuple[Taxonomy, Any, Any, Any]) -> None:
    taxonomy, guess, truth, _ = case
    counted = SiblingConfusions(taxonomy)
    for row in range(0, len(truth), 5):
        counted.add(guess[row : row + 5], truth[row : row + 5])
    expected = plain_confusions(taxonomy, guess, truth)
    found = counted.most()
    assert {(each.parent, each.label, each.instead): each.documents for each in found} == dict(expected)
    assert [each.documents for each in found] == sorted(expected.values(), reverse=True)
    assert len(counted) == len(expected)


def test_thousands_of_labels_given_to_each_document_are_counted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitin.report.confusions._AT_ONCE", 50)
    taxonomy = Taxonomy.from_edges([], labels=map(str, range(60)))
    truth = np.eye(60, dtype=np.bool_)
    counted = SiblingConfusions(taxonomy)
    for start in range(0, 60, 7):
        counted.add(~truth[start : start + 7], truth[start : start + 7])
    assert len(counted) == 60 * 59
    assert {each.documents for each in counted.most(100)} == {1}


def test_the_worst_documents_come_first_and_of_equals_the_one_that_was_surest() -> None:
    found = FOUR.report().to_json()["documents"]["worst"]
    assert [(each["line"], each["f1"]) for each in found] == [(4, 0.0), (3, 0.0), (2, 0.5)]
    assert found[2]["right"] == [{"label": "Science", "probability": 0.9}]
    assert found[2]["wrong"] == [{"label": "Chemistry", "probability": 0.8}]
    assert found[2]["missed"] == [{"label": "Physics", "probability": 0.1}]


def test_the_most_surprising_documents_have_the_highest_log_loss() -> None:
    found = FOUR.report().to_json()["documents"]["most_surprising"]
    losses = [
        log_loss(truth, probabilities, normalize=False)
        for truth, probabilities in zip(FOUR.truth, FOUR.probabilities.astype(float), strict=True)
    ]
    assert [each["line"] for each in found] == [1 + place for place in np.argsort(losses)[::-1]]
    assert [each["log_loss"] for each in found] == pytest.approx(sorted(losses, reverse=True))
    assert found[0]["surprise"] == {"label": "Science", "probability": 0.99, "true": False}


@given(decided(), st.integers(1, 12), st.integers(1, 4))
def test_the_report_is_the_same_in_whatever_chunks_documents_come(
    case: tuple[Taxonomy, Any, Any, Any], chunk: int, worst: int
) -> None:
    taxonomy, guess, truth, probabilities = case
    documents = [ReportDocument(str(number), str(number)) for number in range(len(truth))]
    scores = Tally(taxonomy, blocks=0).scores()
    reports = []
    for size in (chunk, len(truth)):
        builder = ReportBuilder(taxonomy, worst=worst)
        for start in range(0, len(truth), size):
            part = slice(start, start + size)
            builder.add(documents[part], probabilities[part], guess[part], truth[part])
        reports.append(builder.finish(scores, about=ABOUT))
    assert reports[0].to_json() == reports[1].to_json()
    assert reports[0].to_html() == reports[1].to_html()
    f1s = [
        1.0 if not (g.any() or t.any()) else float(f1_score(t, g, zero_division=0))
        for g, t in zip(guess, truth, strict=True)
    ]
    assert [each.f1 for each in reports[0].worst] == pytest.approx(sorted(f1 for f1 in f1s if f1 < 1)[:worst])
    assert len(reports[0].surprising) == min(worst, len(truth))


def test_no_more_documents_and_text_are_kept_than_are_shown() -> None:
    many = answers(40, 500)
    many.documents = [ReportDocument("long " * 10_000, f"d{number}") for number in range(500)]
    report = many.report(worst=7)
    assert len(report.worst) == len(report.surprising) == 7
    assert all(len(example.document.text) == 600 and example.cut for example in report.worst)
    taxonomy = Taxonomy.from_edges([], labels=map(str, range(1000)))
    builder = ReportBuilder(taxonomy)
    everything = np.ones((1, 1000), dtype=np.bool_)
    builder.add([ReportDocument("x")], everything.astype(np.float32), everything, ~everything)
    (example,) = builder.finish(Tally(taxonomy, blocks=0).scores(), about=ABOUT).worst
    assert len(example.wrong) == 40
    assert example.left_out == 960


def test_tables_that_do_not_fit_are_refused() -> None:
    builder = ReportBuilder(TOPICS)
    tables = FOUR.probabilities, FOUR.given, FOUR.truth
    with pytest.raises(InputError, match="the given labels have the shape"):
        builder.add(FOUR.documents, tables[0], tables[1][:, 1:], tables[2])
    with pytest.raises(InputError, match="from 0 to 1"):
        builder.add(FOUR.documents, np.full_like(tables[0], math.nan), *tables[1:])
    with pytest.raises(ValueError, match="training counts"):
        ReportBuilder(TOPICS, train_counts=np.zeros(3, dtype=np.int64))
    assert not builder.counts.actual.any()


# The files.


def test_a_label_with_a_line_end_stays_in_its_cell_of_the_csv() -> None:
    taxonomy = Taxonomy.from_nested({"A\rB": {"C\nD": {}}})
    report = ReportBuilder(taxonomy).finish(Tally(taxonomy, blocks=0).scores(), about=About("one"))
    table = [*csv.DictReader(io.StringIO(report.to_csv(), newline=""))]
    assert [(row["label"], row["parents"]) for row in table] == [("A\rB", ""), ("C\nD", "A\rB")]


def test_page_json_and_csv_say_the_same_numbers(tmp_path: Path) -> None:
    many = answers(60, 300)
    report = many.report(train_counts=np.arange(60))
    paths = report.write(tmp_path / "out.html")
    assert [path.name for path in paths] == ["out.html", "out.report.json", "out.labels.csv"]
    page, everything = island(paths[0].read_text()), json.loads(paths[1].read_text())
    table = list(csv.DictReader(io.StringIO(paths[2].read_text())))
    names = [row["label"] for row in table]
    assert names == page["names"] == [row["label"] for row in everything["labels"]] == list(many.taxonomy.labels)
    for key, column in (("documents", "actual"), ("given", "given"), ("right", "right")):
        expected = page[column]
        assert [int(row[key]) for row in table] == [row[key] for row in everything["labels"]] == expected
    assert [int(row["training_documents"]) for row in table] == page["training"] == list(range(60))
    f1 = [float(row["f1"]) for row in table if row["f1"]]
    assert np.mean(f1) == pytest.approx(everything["scores"]["macro_f1_present"])
    assert f1 == [row["f1"] for row in everything["labels"] if row["f1"] is not None]
    shown = page["scores"]
    assert shown["micro_f1"]["value"] == pytest.approx(everything["scores"]["micro_f1"], abs=1e-6)
    assert [shown["micro_f1"]["low"], shown["micro_f1"]["high"]] == pytest.approx(
        everything["scores"]["intervals"]["micro_f1"], abs=1e-6
    )
    assert len(page["confusions"]) == len(everything["confusions"]) == everything["confused_pairs"]
    assert page["reliability"][0]["ece"] == everything["reliability"]["all"]["ece"]
    assert table[-1]["parents"].count(" | ") == len(many.taxonomy.parents(59)) - 1


def test_a_label_without_documents_has_no_score_rather_than_zero() -> None:
    rows = {row.label: row for row in FOUR.report().labels}
    assert (rows["Acoustics"].f1, rows["Acoustics"].precision, rows["Acoustics"].recall) == (None, None, None)
    assert (rows["Chemistry"].f1, rows["Chemistry"].precision, rows["Chemistry"].recall) == (None, 0.0, None)
    assert (rows["Physics"].precision, rows["Physics"].recall, rows["Physics"].f1) == (0.5, 1 / 3, 0.4)


def test_all_files_are_written_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out.labels.csv").mkdir()
    with pytest.raises(InputError, match="directory"):
        FOUR.report().write(tmp_path / "out.html")
    assert [path.name for path in tmp_path.iterdir()] == ["out.labels.csv"]
    written = Path.write_text

    def full(path: Path, text: str, **rest: Any) -> int:
        if text.startswith("label,"):
            raise OSError(28, "No space left on device")
        return written(path, text, **rest)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match="No space left"):
        FOUR.report().write(tmp_path / "other.html")
    assert [path.name for path in tmp_path.iterdir()] == ["out.labels.csv"]


def test_a_report_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ends in \.html"):
        report_files(tmp_path / "out.json")
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="not a directory"):
        report_files(tmp_path / "file" / "out.html")


def test_a_report_replaces_neither_the_documents_it_is_about_nor_files_of_a_model(tmp_path: Path) -> None:
    (tmp_path / "test.json").touch()
    (tmp_path / "test.labels.csv").touch()
    assert len(report_files(tmp_path / "test.html", [tmp_path / "test.json", "-"])) == 3
    with pytest.raises(InputError, match="documents it is about"):
        report_files(
            tmp_path / "test.html", [tmp_path / "sub" / ".." / "test.labels.csv", tmp_path / "test.labels.csv"]
        )
    (tmp_path / "model.json").touch()
    with pytest.raises(InputError, match="holds a model"):
        report_files(tmp_path / "other.html")


def test_the_page_loads_nothing_and_no_name_can_run_a_script() -> None:
    hostile = Taxonomy.from_edges([(ATTACK, "@@data@@"), (ATTACK, "\u2028 & \x85")])
    builder = ReportBuilder(hostile)
    yes = np.ones((1, 3), dtype=np.bool_)
    builder.add([ReportDocument(f"{ATTACK} \ud800 \x00", "\ud83d")], np.full((1, 3), 0.5, np.float32), yes, ~yes)
    report = builder.finish(Tally(hostile, blocks=0).scores(), about=About(ATTACK + "\ud800", files=(ATTACK,)))
    page = report.to_html()
    page.encode()
    report.to_csv().encode()
    assert len(re.findall("<script", page)) == len(re.findall("</script", page)) == 2
    assert "<img" not in page
    assert island(page)["names"] == list(hostile.labels)
    assert "default-src 'none'" in page
    assert not re.search(
        r"(https?:)?//[a-z]+\.|@import|url\(|fetch\(|XMLHttp", page.replace("http://www.w3.org/2000/svg", "")
    )


def test_three_thousand_labels_stay_below_one_and_a_half_megabytes() -> None:
    long = {
        number: f"a rather long name of the label with the number {number}, as catalogues have"
        for number in range(3000)
    }
    page = answers(3000, 400, names=long).report(train_counts=np.arange(3000)).to_html()
    assert len(page.encode()) < 1_500_000


# The page at work.


def test_a_single_document_has_differences_without_intervals_on_the_page() -> None:
    page = told([("Physics", {"Science": 0.9, "Physics": 0.8})]).report().to_html()
    (baseline,) = island(page)["baselines"]
    assert {frozenset(each) for each in baseline["differences"].values()} == {frozenset({"value"})}


@in_a_browser
def test_a_page_on_a_single_document_calls_no_model_better(tmp_path: Path) -> None:
    report = told([("Physics", {"Science": 0.9, "Physics": 0.8})]).report()
    seen = """
    return [texts('.interval').length, texts('.verdict').length, text('#scores .about'), text('.baselines')];
    """
    intervals, verdicts, about, baselines = browse(report.to_html(), tmp_path, seen)
    assert (intervals, verdicts, about) == (0, 0, "All scores are out of 100.")
    assert "by how much this one scores more" in baselines
    assert "NaN" not in baselines


@in_a_browser
def test_the_page_shows_scores_levels_points_and_what_is_searched_for(tmp_path: Path) -> None:
    many = answers(300, 800)
    report = many.report(train_counts=np.arange(300) * 3)
    script = """
    const seen = { title: document.title, lead: text('.lead') };
    seen.loaded = performance.getEntriesByType('resource').length;
    seen.cards = [...document.querySelectorAll('.card')].map(card => [card.dataset.score,
      card.querySelector('.value').firstChild.textContent, card.querySelectorAll('.range .interval').length]);
    seen.levels = texts('#levels tbody tr').length; seen.whiskers = texts('#levels .whisker').length;
    seen.points = texts('#scatter circle:not(.ring)').length; seen.empty = texts('#scatter circle.empty').length;
    seen.baseline = ['tbody tr', '.better', '.worse', '.even'].map(kind => texts(`.baselines ${kind}`).length);
    seen.found = [text('#found'), name(document.querySelector('.row.current'))];
    seen.marks = [...document.querySelector('.row.current').querySelectorAll('mark')].map(each => each.textContent);
    seen.visible = rows().some(each => each.matches('.current') && inTree(each)); seen.chosen = text('.chosen-label');
    seen.both = rows().filter(each => name(each) === 'label 299').length;
    seen.marked = texts('.row.current .note');
    const picture = document.querySelector('#scatter svg'), box = picture.getBoundingClientRect();
    const dot = document.querySelectorAll('#scatter circle')[7].getBoundingClientRect();
    const pointed = kind => picture.dispatchEvent(new PointerEvent(kind, { bubbles: true,
      clientX: dot.left + dot.width / 2, clientY: dot.top + dot.height / 2 }));
    pointed('pointermove'); seen.tip = text('.tip b'); pointed('click');
    seen.opened = [name(document.querySelector('.row.chosen')), document.activeElement.className.includes('row')];
    picture.focus(); press('Home'); seen.first = text('.tip b'); press('ArrowRight'); seen.second = text('.tip b');
    seen.aloud = text('#scatter [role=status]');
    type('#scatter-level', '2', 'change'); seen.level = texts('#scatter circle:not(.ring):not(.off)').length;
    type('#query', 'nothing like it'); await tick(); seen.none = text('#found');
    type('#query', 'LABEL 29'); await tick(); seen.many = text('#found');
    document.querySelector('#previous').click(); seen.last = text('#found');
    seen.saying = text('.saying'); seen.curve = texts('#curve .dots circle').length;
    type('#reliability-level', '1', 'change'); seen.other = text('.saying');
    seen.pairs = texts('.pair').length; document.querySelector('.pair button').click();
    seen.pair = [text('.pair button'), name(document.querySelector('.row.chosen'))];
    return seen;
    """
    seen = browse(report.to_html(), tmp_path, script, fragment="#q=label+299")
    scores = report.scores.by_name()
    assert seen["title"] == "a model: evaluation"
    assert seen["lead"] == f"Scored on 800 documents with 300 labels on {many.taxonomy.depth} levels."
    assert seen["loaded"] == 0
    assert {name for name, *_ in seen["cards"]} >= {
        "micro_f1",
        "macro_f1",
        "hierarchical_f1",
        "samples_f1",
        "exact_match",
        "hierarchical_precision",
        "hierarchical_recall",
    }
    for name, value, intervals in seen["cards"]:
        assert float(value) == pytest.approx(100 * scores[name], abs=0.051)
        assert intervals == 1
    assert (seen["levels"], seen["whiskers"]) == (many.taxonomy.depth, 2 * many.taxonomy.depth)
    assert seen["points"] == 300
    assert seen["empty"] == (report.counts.actual == 0).sum() > 0
    more = report.baselines[0].differences or {}
    told = [more[name] for name, *_ in seen["cards"]]
    clear = [sum(each.low > 0 for each in told), sum(each.high < 0 for each in told)]
    assert seen["baseline"] == [len(told), *clear, len(told) - sum(clear)]
    assert min(seen["baseline"]) > 0
    assert seen["found"] == ["1 of 1 match", "label 299"]
    assert seen["marks"] == ["label", "299"]
    assert seen["visible"]
    assert seen["both"] == len(many.taxonomy.parents(many.taxonomy.index("label 299"))) > 1
    assert seen["marked"][0].endswith("parents")
    assert "label 299" in seen["chosen"]
    assert seen["tip"] == many.taxonomy.labels[7]
    assert seen["opened"] == [many.taxonomy.labels[7], True]
    assert seen["first"] == many.taxonomy.labels[0]
    assert seen["second"] == many.taxonomy.labels[1]
    assert seen["aloud"].startswith(many.taxonomy.labels[1])
    assert seen["level"] == many.taxonomy.level_sizes[1]
    assert seen["none"] == "No match"
    assert seen["many"] == "1 of 13 matches"
    assert seen["last"] == "13 of 13 matches"
    assert seen["saying"].startswith("On average a probability is off by ")
    assert f"{100 * report.reliability['all']['ece']:.1f} points" in seen["saying"]  # type: ignore[index]
    assert seen["curve"] == len(report.reliability["all"]["bins"])  # type: ignore[index]
    assert "level 1" in seen["other"]
    assert seen["pairs"] > 0
    assert seen["pair"][0] == seen["pair"][1]


@in_a_browser
def test_the_tree_is_walked_with_the_keyboard_and_documents_are_filtered(tmp_path: Path) -> None:
    report = FOUR.report()
    script = """
    const at = () => name(document.activeElement), open = () => document.activeElement.getAttribute('aria-expanded');
    const seen = { rows: rows().map(each => each.textContent), roles: rows().every(each => each.ariaLevel) };
    document.querySelector('#close-all').click();
    rows()[0].focus(); seen.walk = [];
    for (const key of ['ArrowDown', 'ArrowRight', 'ArrowRight', 'End', 'ArrowLeft', 'ArrowLeft', 'Home', 'Enter',
      'Enter']) { press(key); seen.walk.push([key, at(), open()]); }
    press('/'); seen.search = document.activeElement.id;
    type('#order', 'f1', 'change'); document.querySelector('#open-all').click(); seen.order = rows().map(name);
    seen.worst = texts('.example h3'); seen.chips = texts('.example:first-child .chip');
    type('#of-label', 'chemistry'); seen.some = [texts('.example h3'), text('.matching')];
    document.querySelector('#surprising').click(); seen.surprising = texts('.example h3');
    type('#of-label', ''); seen.all = texts('.example h3');
    row('Music').click(); document.querySelector('.chosen-label button').click(); seen.of = texts('.example h3');
    return seen;
    """
    seen = browse(report.to_html(), tmp_path, script)
    assert seen["roles"]
    assert [text[:4] for text in seen["rows"]] == ["Scie", "Phys", "Chem", "Acou", "Arts", "Musi", "Acou"]
    assert "66.766.766.733" in seen["rows"][0]  # F1, precision, recall, documents, given
    assert seen["walk"] == [
        ["ArrowDown", "Arts", "false"],
        ["ArrowRight", "Arts", "true"],
        ["ArrowRight", "Music", None],
        ["End", "Acoustics", None],
        ["ArrowLeft", "Arts", "true"],
        ["ArrowLeft", "Arts", "false"],
        ["Home", "Science", "false"],
        ["Enter", "Science", "true"],
        ["Enter", "Science", "false"],
    ]
    assert seen["search"] == "query"
    assert seen["order"] == ["Arts", "Music", "Acoustics", "Science", "Physics", "Chemistry", "Acoustics"]
    assert seen["worst"] == ["test.jsonl:4", "test.jsonl:3", "test.jsonl:2"]
    assert seen["chips"] == ["✗Science99%", "✗Physics60%", "○Arts10%", "○Music10%"]
    assert seen["some"] == [["test.jsonl:2"], "1 of 3 documents"]
    assert seen["surprising"] == ["test.jsonl:2"]
    assert len(seen["all"]) == 4
    assert sorted(seen["of"]) == ["test.jsonl:3", "test.jsonl:4"]


@in_a_browser
def test_a_search_follows_the_order_shown_and_the_order_of_the_taxonomy_comes_back(tmp_path: Path) -> None:
    script = """
    const order = value => type('#order', value, 'change'), matches = () => [...new Set(texts('.match .name'))];
    const seen = { before: rows().map(name) };
    type('#query', 'label 1'); await tick(); seen.matches = [text('#found'), matches()];
    document.querySelector('#next').click(); const current = text('.current .name');
    order('f1'); seen.sorted = matches(); seen.kept = [text('#found'), text('.current .name') === current];
    const walk = () => { document.querySelector('#next').click(); return text('.current .name'); };
    seen.walked = seen.sorted.map(walk);
    order('taxonomy'); seen.back = matches();
    document.querySelector('#close-all').click(); seen.after = rows().map(name);
    return seen;
    """
    seen = browse(answers(120, 300).report().to_html(), tmp_path, script)
    many = sum("1" in str(number) for number in range(120))
    assert seen["matches"][0] == f"1 of {many} matches"
    assert len(seen["matches"][1]) == len(seen["sorted"]) == many
    assert seen["sorted"] != seen["matches"][1] == seen["back"]
    place = seen["sorted"].index(seen["matches"][1][1])
    assert seen["kept"] == [f"{place + 1} of {many} matches", True]
    assert seen["walked"] == [*seen["sorted"][place + 1 :], *seen["sorted"][: place + 1]]
    assert seen["after"] == seen["before"]


@in_a_browser
def test_rounding_makes_nothing_perfect_nor_zero_that_is_not(page: "Page", tmp_path: Path) -> None:
    given = {"Science": 0.95, "Physics": 0.95}
    rows = [("Physics", given)] * 2994 + [("Physics", given | {"Physics": 0.8})] * 5
    rows += [("Physics", given | {"Arts": 0.95}), ("Chemistry", {"Science": 0.95, "Chemistry": 0.95})]
    report = told(rows + [("Chemistry", {})] * 2999).report()
    shown(page, report.to_html(), tmp_path)
    assert page.locator('[data-score="precision"] .value').inner_text().startswith(">99.9")
    chemistry = page.locator(".row", has_text="Chemistry")
    assert chemistry.locator(".score").text_content() == "<0.1"
    recall = page.locator(".baselines tr", has=page.locator("th", has_text=re.compile("^Recall$")))
    better = report.baselines[0].differences["recall"]  # type: ignore[index]
    assert 0 < better.low < better.estimate < 0.0005
    assert recall.locator(".verdict").inner_text() == "▲ 0.04 better"
    assert re.fullmatch(r"\+0\.0[1-9] to \+0\.0[1-9]", recall.locator(".soft").inner_text())


@in_a_browser
def test_after_more_confusions_are_shown_the_first_of_them_has_the_focus(page: "Page", tmp_path: Path) -> None:
    edges = [(f"p{parent}", f"p{parent} c{child}") for parent in range(11) for child in range(8)]
    taxonomy = Taxonomy.from_edges(edges)
    wrong = [("p0 c0", f"p0 c{child}") for child in range(1, 8)] + [
        (f"p{each} c0", f"p{each} c1") for each in range(11)
    ]
    tables = np.zeros((2, len(wrong), len(taxonomy)), dtype=np.bool_)
    for number, pair in enumerate(wrong):
        for table, label in zip(tables, pair, strict=True):
            table[number, list(taxonomy.closure([taxonomy.index(label)]))] = True
    truth, given = tables
    report = Answers(taxonomy, [ReportDocument("x")] * len(wrong), given.astype(np.float32), given, truth).report()
    shown(page, report.to_html(), tmp_path)
    for words, place in (("Show 1 more pair", ".pair >> nth=6"), ("Show 1 more parent", ".group >> nth=10")):
        page.get_by_role("button", name=words).press("Enter")
        first = page.locator(place).get_by_role("button").first
        assert first.evaluate("button => button === document.activeElement")


@in_a_browser
def test_a_level_on_which_nothing_was_given_has_no_precision(page: "Page", tmp_path: Path) -> None:
    shown(page, told([("Physics", {"Science": 0.9})]).report().to_html(), tmp_path)
    cells = page.locator("#levels tbody tr").nth(1).locator("td")
    assert cells.all_inner_texts()[3:5] == ["–", "0.0"]


@in_a_browser
def test_what_is_below_a_label_is_told_in_words_too(page: "Page", tmp_path: Path) -> None:
    shown(page, FOUR.report().to_html(), tmp_path)
    arts = page.locator(".row", has_text="Arts").locator("[role=gridcell]").nth(1)
    assert arts.text_content() == "2 labels below by F1: 1 from 0 to 20, 1 without documents"


@in_a_browser
def test_a_count_stands_behind_its_label_whatever_its_script(page: "Page", tmp_path: Path) -> None:
    hebrew = ("\u05de\u05d5\u05d6\u05d9\u05e7\u05d4", "\u05ea\u05d9\u05d0\u05d8\u05e8\u05d5\u05df")
    taxonomy = Taxonomy.from_edges([], labels=["Arts", *hebrew])
    truth, given = np.zeros((3, 3), dtype=np.bool_), np.eye(3, dtype=np.bool_)[[1, 1, 2]]
    truth[:, 0] = True
    documents = [ReportDocument("x")] * 3
    report = Answers(taxonomy, documents, given.astype(np.float32), given, truth).report()
    shown(page, report.to_html(), tmp_path)
    page.locator(".row", has_text="Arts").click()
    places = """() => [...document.querySelectorAll('.chosen-label bdi')].flatMap(name => {
        const count = document.createRange();
        count.selectNode(name.nextSibling);
        return [name, count].map(each => each.getBoundingClientRect().left);
    })"""
    assert page.locator(".chosen-label .soft").inner_text() == (
        f"Most often taken for {hebrew[0]} (2), {hebrew[1]} (1)."
    )
    found = page.evaluate(places)
    assert len(found) == 4
    assert found == sorted(found)


@in_a_browser
def test_colours_of_scores_are_printed_also_without_backgrounds(page: "Page", tmp_path: Path) -> None:
    shown(page, FOUR.report().to_html(), tmp_path)
    printed = page.pdf(print_background=False)
    drawn = b"".join(map(_inflated, re.findall(rb"stream\r?\n(.*?)endstream", printed, re.DOTALL)))
    fills = {tuple(round(255 * float(part)) for part in found) for found in re.findall(_FILL, drawn)}
    band, bad, good = (0xA9, 0xC8, 0xF2), (0xB4, 0x53, 0x0A), (0x22, 0x68, 0xB0)  # bars; chips of 0-20 and 80-100
    assert {band, bad, good} <= fills


_FILL = rb"([\d.]+) ([\d.]+) ([\d.]+) rg"


def _inflated(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


@in_a_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_fields_have_an_edge_that_can_be_seen(dark: bool, pages: Pages, tmp_path: Path) -> None:
    assert_edges(shown(pages(dark=dark), FOUR.report().to_html(), tmp_path))


@in_a_browser
def test_of_three_thousand_labels_all_are_points_and_rows_are_made_when_they_are_opened(tmp_path: Path) -> None:
    many = answers(3000, 600)
    script = """
    const seen = { rows: rows().length };
    seen.points = texts('#scatter circle:not(.ring)').length;
    type('#query', 'label 2999'); await tick();
    seen.found = [name(document.querySelector('.row.current')), inTree(document.querySelector('.row.current'))];
    seen.some = rows().length;
    document.querySelector('#open-all').click();
    seen.all = rows().length;
    return seen;
    """
    seen = browse(many.report().to_html(), tmp_path, script)
    assert seen["points"] == 3000
    assert seen["rows"] == many.taxonomy.level_sizes[0]
    assert seen["found"] == ["label 2999", True]
    assert seen["rows"] < seen["some"] < 1000
    assert seen["all"] >= 3000


def alone() -> Report:
    """One label, nothing wrong, no reliability, no baseline, no interval."""
    taxonomy, yes = Taxonomy.from_edges([], labels=["only"]), np.ones((2, 1), dtype=np.bool_)
    builder, tally = ReportBuilder(taxonomy), Tally(taxonomy, blocks=0)
    builder.add([ReportDocument(""), ReportDocument("b")], np.ones((2, 1), dtype=np.float32), yes, yes)
    tally.add(yes, yes)
    return builder.finish(tally.scores(), about=About(""))


@in_a_browser
def test_a_report_with_nothing_in_it_says_so(tmp_path: Path) -> None:
    script = """
    const seen = { notes: texts('.empty-note'), body: document.body.innerText, tree: rows().map(name) };
    document.querySelector('#surprising').click();
    seen.documents = texts('.example h3'); seen.points = texts('#scatter circle:not(.ring)').length;
    return seen;
    """
    seen = browse(alone().to_html(), tmp_path, script)
    assert seen["notes"] == [
        "Reliability was not measured.",
        "No sibling was given in place of another.",
        "Every document got exactly its labels.",
    ]
    assert not re.search(r"NaN|undefined|null|Infinity", seen["body"])
    assert seen["tree"] == ["only"]
    assert seen["points"] == 1
    assert seen["documents"] == ["Document 1", "Document 2"]


@in_a_browser
def test_a_report_may_keep_no_documents(tmp_path: Path) -> None:
    script = "row('Science').click(); return [text('#documents .empty-note'), texts('#documents .example')];"
    seen = browse(FOUR.report(worst=0).to_html(), tmp_path, script)
    assert seen == ["No documents are kept in this report.", []]


@in_a_browser
def test_hostile_names_are_shown_as_they_are(tmp_path: Path) -> None:
    names = {0: ATTACK, 1: "\u202eright to left", 2: "\x00\x07", 3: "🎉 وسم", 4: "very long " * 60}
    many = answers(12, 60, names=names)
    many.documents = [ReportDocument(f"{ATTACK}\x00\ud800", ATTACK) for _ in many.documents]
    script = """
    return { title: document.title, tree: rows().map(name),
      made: document.querySelectorAll('main img, main script').length,
      text: text('.example .text'), wide: document.documentElement.scrollWidth <= window.innerWidth };
    """
    seen = browse(many.report().to_html(), tmp_path, script)
    assert seen["title"] == "a model: evaluation"
    assert seen["made"] == 0
    assert {ATTACK, "\u202eright to left", "(no name)", "🎉 وسم", ("very long " * 60).strip()} <= set(seen["tree"])
    assert seen["text"].startswith(ATTACK)
    assert seen["wide"]


@in_a_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_is_painted_in_light_and_dark(dark: bool, tmp_path: Path) -> None:
    page = answers(80, 200).report().to_html()
    lines = picture_bytes(page, tmp_path, dark=dark)
    assert len(np.unique(lines)) > 100  # a blank page has a handful
