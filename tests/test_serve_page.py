"""The page of the service in a real browser: one text, its tree, and what keeps it safe and quick."""

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from hitin import HierarchicalTextClassifier
from hitin.decisions import Policy
from tests.browser import Pages, in_a_browser
from tests.page_harness import (
    HOSTILE,
    choose,
    classify,
    colours,
    contrast,
    crossed_model,
    held,
    large_model,
    lit,
    no_request,
    opened,
    rows,
    run_all,
    share_of,
    slide,
    until,
    upload,
    wait_for_answer,
)
from tests.serving import LATE, Served, serving, train_tickets

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

pytestmark = in_a_browser
MIXED = "The refund for my broken screen has not arrived and the battery is empty"


@pytest.fixture(scope="module")
def site(tickets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of four models: tickets, another of tickets, one with 5,000 labels, one whose labels cross."""
    folder = tmp_path_factory.mktemp("site")
    flat = train_tickets(folder / "flat", method="flat", epochs=2)
    others = [large_model(folder / "large"), crossed_model(folder / "crossed")]
    with serving(folder, [tickets, f"another={flat}", *others]) as served:
        yield served


@pytest.fixture(scope="module")
def offline(tickets: Path) -> HierarchicalTextClassifier:
    return HierarchicalTextClassifier.load(tickets)


def given_offline(
    classifier: HierarchicalTextClassifier, text: str, *, policy: Policy | None = None, **options: float
) -> set[str]:
    decisions = classifier.decisions_.with_options(policy=policy, **options)  # type: ignore[arg-type]
    given = decisions.decide(classifier.model_.logits([text]), classifier.taxonomy_)[0]
    return {classifier.taxonomy_.labels[label] for label in np.flatnonzero(given)}


def test_a_typed_text_lights_up_the_path_that_is_predicted_with_the_score_of_every_node(
    page: "Page", site: Served, offline: HierarchicalTextClassifier
) -> None:
    opened(page, site)
    with page.expect_response("**/v1/predict"):
        page.type("#text", LATE)  # nothing else: it is sent when the typing pauses
    wait_for_answer(page, to=LATE)
    assert lit(page) == given_offline(offline, LATE) >= {"Delivery", "Late"}
    probabilities = dict(zip(offline.classes_, offline.predict_proba([LATE])[0], strict=True))
    assert all(abs(share_of(row["share"]) - probabilities[row["name"]]) < 0.006 for row in rows(page))
    assert re.search("Delivery › Late", page.inner_text("#given"))
    beside = {row["name"] for row in rows(page)} - lit(page)
    assert {"Damaged", "Wrong address"} <= beside, "siblings that nearly won stand beside the given ones"


def test_the_last_of_many_answers_wins(page: "Page", site: Served, offline: HierarchicalTextClassifier) -> None:
    opened(page, site)
    for text in ("battery", "battery and wifi", "password", MIXED, LATE):
        page.fill("#text", text)
        page.press("#text", "Control+Enter")
    wait_for_answer(page)
    page.wait_for_timeout(300)  # for those that are late
    assert lit(page) == given_offline(offline, LATE)


@pytest.mark.parametrize("policy", ["consistent", "raw", "top-down"])
def test_the_slider_gives_at_once_what_the_threshold_gives_offline(
    page: "Page", site: Served, offline: HierarchicalTextClassifier, policy: Policy
) -> None:
    opened(page, site)
    classify(page, MIXED)
    choose(page, "#policy", policy)
    tuned = lit(page)
    with no_request(page):
        for threshold in (0.0, 0.05, 0.3, 0.5, 0.9, 1.0):
            slide(page, threshold)
            assert lit(page) == given_offline(offline, MIXED, policy=policy, threshold=threshold)
        page.click("#as-tuned")
    assert lit(page) == tuned == given_offline(offline, MIXED, policy=policy)


def test_the_slider_of_a_policy_without_thresholds_is_where_it_stops(
    page: "Page", site: Served, offline: HierarchicalTextClassifier
) -> None:
    opened(page, site)
    classify(page, MIXED)
    choose(page, "#policy", "single-path")
    assert page.inner_text("#slider-label") == "Stop below"
    with no_request(page):
        for stop in (0.0, 0.3, 0.6, 1.0):
            slide(page, stop)
            assert lit(page) == given_offline(offline, MIXED, policy="single-path", stop=stop)


def test_another_model_brings_its_own_labels_and_answers(page: "Page", site: Served) -> None:
    opened(page, site)
    classify(page, LATE)
    first = rows(page)
    choose(page, "#model", "another")
    assert page.inner_text("#about-model").startswith("flat")
    assert [row["share"] for row in rows(page)] != [row["share"] for row in first]
    choose(page, "#model", "large")
    assert "5,000 labels" in page.inner_text("#about-model")


def test_a_text_is_classified_by_the_model_that_is_chosen_however_slow_its_labels_are(
    page: "Page", site: Served
) -> None:
    opened(page, site)
    with held(page, "**/v1/taxonomy?model=crossed"):
        with page.expect_request("**/v1/taxonomy?model=crossed"):  # else it may be heard of late, as one of the text
            page.select_option("#model", "crossed")
        with no_request(page):
            page.fill("#text", "a broken leg")
            page.press("#text", "Control+Enter")
    page.wait_for_selector(".row.lit")
    assert "Injury" in lit(page)


def test_a_label_with_two_parents_lights_up_under_both(page: "Page", site: Served) -> None:
    opened(page, site, model="crossed")
    classify(page, "a broken leg")
    found = [(row["name"], row["level"], row["lit"]) for row in rows(page)]
    assert found.count(("Injury", 2, True)) == 2
    classify(page, "the ball is round")
    assert {"Sport", "Ball"} <= lit(page), "a label that is called by its path is called by its end"
    assert "Sport › Ball" in page.inner_text("#given")


def test_of_five_thousand_labels_only_those_in_view_are_made(page: "Page", site: Served) -> None:
    opened(page, site, model="large")
    classify(page, "about topic7 only")
    page.get_by_role("treeitem", name="Show all 23 labels").click()
    assert len(rows(page)) < 120
    page.fill("#query", "topic")
    until(page, "document.querySelector('#found').textContent === '4,727 matches'")
    assert page.evaluate("document.querySelector('.tree-space').clientHeight") > 4727 * 30
    assert len(rows(page)) < 120
    page.press("#query", "Enter")
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("topic")
    page.fill("#query", "TÓPIC 4321")
    until(page, "document.querySelector('#found').textContent === '1 match'")
    assert [row["name"] for row in rows(page)][-1] == "topic 4321"
    assert page.inner_text(".row mark") == "topic"


def test_the_words_that_decided_are_told_with_their_weights(page: "Page", site: Served) -> None:
    opened(page, site)
    classify(page, f"😀 {LATE}")  # a character of two units in front
    page.get_by_role("treeitem", name=re.compile("^Late,")).click()
    page.wait_for_selector("#words .word")
    asked = {"text": f"😀 {LATE}", "labels": ["Late"]}
    [explanation] = site.post("/v1/explain", asked).json()["explanations"]
    weights = {word["text"]: word["weight"] for word in explanation["words"]}
    marked = page.evaluate(
        """() => [...document.querySelectorAll('#words [title]')].map(word => [
             word.textContent, parseFloat(word.title.replace('−', '-')), word.className])"""
    )
    assert page.inner_text("#words") == f"😀 {LATE}"
    assert [text for text, _, _ in marked] == [word["text"] for word in explanation["words"]]
    assert all(weight == pytest.approx(weights[text], abs=6e-4) for text, weight, _ in marked)
    strongest = max(weights, key=lambda word: abs(weights[word]))
    side = "for" if weights[strongest] > 0 else "against"
    assert {kind for text, _, kind in marked if text == strongest} == {f"word {side} s4"}
    page.click("#why summary")
    listed = page.evaluate("[...document.querySelectorAll('#why tbody th')].map(each => each.textContent)")
    assert listed[0] == strongest
    assert "score before calibration" in page.inner_text("#why-told")
    assert page.get_by_role("treeitem", selected=True).inner_text().startswith("Late")


def test_the_list_of_words_adds_up_and_a_word_without_weight_takes_no_side(page: "Page", site: Served) -> None:
    def without_the_first(route: "Route") -> None:
        answer = route.fetch().json()
        answer["explanations"][0]["words"][0]["weight"] = 0
        route.fulfill(json=answer)

    page.route("**/v1/explain", without_the_first)
    opened(page, site)
    text = f"{LATE}. {MIXED}"
    classify(page, text)
    page.get_by_role("treeitem", name=re.compile("^Late,")).click()
    page.wait_for_selector("#words .word")
    assert page.get_attribute("#words [title]", "title") == "0.000"
    page.click("#why summary")
    cells = (
        "[...document.querySelectorAll('#why tr')].slice(1).map(row => [...row.cells].map(cell => cell.textContent))"
    )
    names, weights, *_ = zip(*page.evaluate(cells), strict=True)
    *parts, score = (float(weight.replace("−", "-")) for weight in weights)
    assert names[-2:] == ("without any word", "score")
    assert re.fullmatch(r"\d+ others", names[-3])
    [told] = site.post("/v1/explain", {"text": text, "labels": ["Late"]}).json()["explanations"]
    assert sum(parts) + told["words"][0]["weight"] == pytest.approx(score, abs=0.1)


def test_of_very_many_labels_some_are_explained_at_a_time(page: "Page", site: Served) -> None:
    opened(page, site, model="large")
    classify(page, "about topic7 only")
    slide(page, 0)
    for explained in (16, 32):
        page.click("#explain")
        until(page, f"document.querySelectorAll('#why-labels button').length === {explained}")
        until(page, f"document.querySelector('#why-more').textContent.startsWith('{explained} of 5,000 labels')")


def test_labels_of_before_are_dimmed_while_an_answer_is_slow(page: "Page", site: Served) -> None:
    opened(page, site)
    classify(page, LATE)
    busy = "[...document.querySelectorAll('#given, #tree')].map(each => each.ariaBusy)"
    with held(page, "**/v1/predict"):
        page.fill("#text", MIXED)
        until(page, f"{busy}.every(each => each === 'true')")
        assert page.evaluate("getComputedStyle(document.querySelector('#tree')).opacity") == "0.5"
    wait_for_answer(page)
    assert page.evaluate(busy) == ["false", "false"]


def test_a_k_that_is_taken_away_is_the_tuned_one_again(page: "Page", site: Served) -> None:
    opened(page, site)
    classify(page, MIXED)
    choose(page, "#policy", "top-k")
    tuned = lit(page)
    for k in ("1" if len(tuned) > 2 else "9", ""):
        with page.expect_response("**/v1/predict"):
            page.fill("#k", k)
        wait_for_answer(page)
        assert (lit(page) == tuned) == (not k)
    wrong = "k => { k.blur(); k.value = '0'; k.dispatchEvent(new Event('input')); return document.activeElement.id; }"
    with no_request(page):
        assert page.locator("#k").evaluate(wrong) == "k", "what is wrong with it is told there"


def test_a_button_that_has_done_its_work_keeps_the_focus(page: "Page", site: Served) -> None:
    opened(page, site)
    classify(page, LATE)
    slide(page, 0.9)
    page.focus("#as-tuned")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id + document.activeElement.ariaDisabled") == "as-tunedtrue"
    upload(page, "a.csv", f"text\n{LATE}\n")
    page.focus("#run")
    page.keyboard.press("Enter")
    until(page, "document.querySelector('#run-told').textContent.startsWith('1 text classified')")
    assert page.evaluate("document.activeElement.id + document.activeElement.ariaDisabled") == "runfalse"


def test_a_table_says_which_model_has_filled_it(page: "Page", site: Served) -> None:
    opened(page, site)
    upload(page, "a.csv", f"text\n{LATE}\n{MIXED}\n")
    run_all(page)
    assert page.inner_text("#made-with").startswith("2 texts classified by tickets (")
    for model, has_changed in (("another", True), ("tickets", False)):
        with page.expect_response("**/v1/taxonomy*"):
            page.select_option("#model", model)
        until(
            page,
            f"document.querySelector('#made-with').textContent.includes('has changed') === {str(has_changed).lower()}",
        )
    assert "by tickets" in page.inner_text("#made-with")


def test_all_labels_that_are_given_are_explained_on_request(page: "Page", site: Served) -> None:
    opened(page, site)
    classify(page, LATE)
    with page.expect_response("**/v1/explain"):
        page.click("#explain")
    page.wait_for_selector("#words .word")
    choices = page.locator("#why-labels button")
    assert {*choices.all_inner_texts()} == lit(page)
    with no_request(page):
        choices.first.click()
    assert page.inner_text("#why-told b") == choices.first.inner_text()
    page.fill("#text", "")
    page.wait_for_selector("#why", state="hidden")


def test_what_is_hostile_in_texts_and_labels_is_shown_and_never_run(page: "Page", site: Served) -> None:
    opened(page, site, model="large")
    text = " ".join(HOSTILE)
    classify(page, text)
    page.get_by_role("treeitem", name="Show all 23 labels").click()
    assert {*HOSTILE} <= {row["name"] for row in rows(page)}
    for name in HOSTILE:
        page.get_by_role("treeitem").get_by_text(name, exact=True).click()
        until(page, "!document.querySelector('#why').ariaBusy")
        assert name in page.inner_text("#chosen")
    assert page.input_value("#text") == text
    assert page.evaluate("document.querySelectorAll('img, main script').length") == 0
    assert page.title() == "hitin"


def test_everything_is_done_with_the_keyboard_alone(page: "Page", site: Served) -> None:
    opened(page, site)
    focused = "document.activeElement.id || document.activeElement.getAttribute('aria-label')"
    seen = []
    while "fold" not in seen:
        page.keyboard.press("Tab")
        seen.append(page.evaluate(focused))
        assert len(seen) < 20
        if seen[-1] == "text":
            page.keyboard.type(LATE)
            wait_for_answer(page, to=LATE)
    order = ["model", "choose", "text", "explain", "policy", "slider", "query", "fold"]
    assert [name for name in seen if name in order] == order
    page.focus("#fold")
    page.keyboard.press("Tab")
    assert page.evaluate(focused).startswith("Delivery,")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused).startswith("Late,")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.ariaExpanded") == "false"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused).startswith("Late,")
    page.keyboard.press("Enter")
    page.wait_for_selector("#why:not([hidden])")
    assert page.evaluate("document.activeElement.ariaSelected") == "true"
    page.keyboard.press("/")
    assert page.evaluate(focused) == "query"


def test_everything_that_can_be_used_has_a_name(page: "Page", site: Served) -> None:
    opened(page, site)
    classify(page, LATE)
    nameless = """() => [...document.querySelectorAll('button, input, select, textarea, [role=treeitem], [role=tree]')]
      .filter(each => !(each.labels?.length || each.ariaLabel || each.getAttribute('aria-labelledby')
        || (each.tagName === 'BUTTON' && each.textContent.trim()) || each.hidden))
      .map(each => each.outerHTML)"""
    assert page.evaluate(nameless) == []


def test_a_narrow_screen_has_one_column_and_nothing_to_scroll_sideways(pages: Pages, site: Served) -> None:
    page = opened(pages(width=360, height=740), site)
    classify(page, MIXED)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    tops = [page.locator(each).bounding_box() for each in ("#text", "#given", "#tree")]
    assert all(box and box["width"] > 280 for box in tops)
    assert [box["y"] for box in tops if box] == sorted(box["y"] for box in tops if box)


def test_a_dark_screen_gets_a_dark_page(pages: Pages, site: Served) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    assert opened(pages(dark=True), site).evaluate(background) == "rgb(20, 23, 27)"
    assert opened(pages(), site).evaluate(background) == "rgb(245, 246, 248)"


def test_the_colours_of_texts_can_be_read() -> None:
    css = (files("hitin.serve") / "page" / "page.css").read_text(encoding="utf-8")
    papers = [
        "paper",
        "card",
        "hover",
        "chosen",
        "lit-paper",
        *(f"{side}{step}" for side in ("for", "against") for step in range(1, 5)),
    ]
    for named in colours(css):
        assert all(contrast(named["ink"], named[paper]) > 4.5 for paper in papers), named
        assert all(contrast(named[ink], named["card"]) > 4.5 for ink in ("soft", "accent", "bad"))
        assert contrast(named["lit"], named["lit-paper"]) > 4.5
        assert all(contrast(named["edge"], named[paper]) > 3 for paper in ("card", "paper")), "the edges of fields"
        assert contrast(named["bad"], named["bad-paper"]) > 4.5
        assert contrast(named["soft"], named["lit-paper"]) > 4.5
