"""The page of the service when not all is well: keys, a server that is gone or busy, a model that is replaced."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser import Pages, in_a_browser
from tests.conftest import Run
from tests.page_harness import (
    RIGHT_TO_LEFT,
    classify,
    crossed_model,
    held,
    lit,
    odd_model,
    opened,
    rows,
    run_all,
    share_of,
    until,
    upload,
)
from tests.serving import LATE, Served, copied, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = in_a_browser
KEY = "a-key-of-tests"


def test_a_model_that_is_replaced_shows_its_new_labels(page: "Page", tickets: Path, tmp_path: Path) -> None:
    model = copied(tickets, tmp_path / "model")
    with serving(tmp_path, [model], "--reload-every", "0.2") as served:
        opened(page, served)
        classify(page, LATE)
        shutil.rmtree(model)
        crossed_model(model)
        served.wait_for("model loaded anew")
        page.fill("#text", "a broken leg")
        page.get_by_role("treeitem", name="Injury").first.wait_for()
        page.wait_for_selector(".row.lit")
        assert "Injury" in lit(page)


def test_a_file_is_classified_from_the_start_when_the_model_is_replaced(
    page: "Page", tickets: Path, tmp_path: Path
) -> None:
    model, other = copied(tickets, tmp_path / "model"), crossed_model(tmp_path / "other")
    with serving(tmp_path, [model], "--reload-every", "0.2") as served:
        opened(page, served)
        upload(page, "a.csv", "text\na broken leg\nthe ball is round\n")
        run_all(page)
        shutil.rmtree(model)
        other.rename(model)
        served.wait_for("model loaded anew")
        run_all(page)
        assert page.inner_text("#made-with").startswith("2 texts classified by model (")
        assert "Injury" in page.inner_text("#results tbody")
        assert page.is_hidden("#message")


def test_a_model_that_is_replaced_by_one_of_another_order_shows_its_own_probabilities(
    page: "Page", tmp_path: Path
) -> None:
    model, other = crossed_model(tmp_path / "model"), crossed_model(tmp_path / "other", reordered=True)
    with serving(tmp_path, [model], "--reload-every", "0.2") as served:
        opened(page, served)
        before = served.get("/v1/taxonomy").json()["labels"]
        shutil.rmtree(model)
        other.rename(model)
        served.wait_for("model loaded anew")
        told = served.predict("the ball is round", all_scores=True)["documents"][0]["probabilities"]
        labels = served.get("/v1/taxonomy").json()["labels"]
        assert sorted(labels) == sorted(before)
        assert labels != before
        classify(page, "the ball is round")
        until(page, "document.querySelectorAll('.row.lit').length > 0")
        shares = dict(zip(labels, told, strict=True))
        shares["Ball"] = shares["Sport > Ball"]
        assert all(abs(share_of(row["share"]) - shares[row["name"]]) < 0.006 for row in rows(page))


def test_a_text_that_is_typed_before_the_labels_are_there_is_classified_then(
    page: "Page", served_tickets: Served
) -> None:
    with held(page, "**/v1/taxonomy*"):
        page.goto(served_tickets.address)
        page.wait_for_selector("#model option", state="attached")
        page.fill("#text", LATE)
        page.press("#text", "Control+Enter")
        page.wait_for_timeout(100)
    page.wait_for_selector(".row.lit")
    assert "Late" in lit(page)


def test_models_that_are_being_loaded_are_told_and_waited_for(pages: Pages, served_tickets: Served) -> None:
    page, is_loading = pages(expected="503"), [True]
    loading = {"error": {"kind": "loading", "message": "the models are being loaded"}}
    page.route(
        "**/v1/models",
        lambda route: route.fulfill(status=503, json=loading) if is_loading else route.continue_(),
    )
    page.goto(served_tickets.address)
    until(page, "document.querySelector('#told').textContent.includes('being loaded')")
    is_loading.clear()
    page.wait_for_selector(".row")
    assert page.inner_text("#told") == ""


def test_a_start_that_failed_is_tried_again_with_the_next_text(pages: Pages, served_tickets: Served) -> None:
    page = pages(expected="ERR_FAILED")
    page.route("**/v1/models", lambda route: route.abort())
    page.goto(served_tickets.address)
    page.wait_for_selector("#message:not([hidden])")
    page.unroute("**/v1/models")
    classify(page, LATE)
    assert "Late" in lit(page)
    assert page.is_hidden("#message")


def test_names_of_any_length_and_script_leave_room_for_the_others(page: "Page", tmp_path: Path) -> None:
    with serving(tmp_path, [odd_model(tmp_path / "odd")]) as served:
        opened(page, served)
        for text in ("one alpha", "two beta"):
            classify(page, text)
            page.click("#explain")
            page.wait_for_selector("#why-body:not([hidden])")
            heights = "['#given', '#chosen', '#why-labels'].map(each => document.querySelector(each).offsetHeight)"
            assert max(page.evaluate(heights)) < 200
        left = "each => { const range = document.createRange(); range.selectNodeContents(each); \
            return range.getBoundingClientRect().left - each.getBoundingClientRect().left; }"
        name = page.locator(".row .name", has_text=RIGHT_TO_LEFT)
        assert name.first.evaluate(left) < 2, "it stands beside its node"
        assert page.inner_text("#chosen").startswith(f"{RIGHT_TO_LEFT} › ")


def test_a_model_that_cannot_be_explained_says_so(page: "Page", tickets: Path, tmp_path: Path, run: Run) -> None:
    assert run("export", tickets, "--out", tmp_path / "exported").exit_code == 0
    with serving(tmp_path, [tmp_path / "exported"]) as served:
        opened(page, served)
        assert "exported" in page.inner_text("#chosen")
        classify(page, LATE)
        assert page.is_disabled("#explain")
        assert "exported" in str(page.get_attribute("#explain", "title"))


def test_a_key_is_asked_for_and_kept_for_the_session_only(pages: Pages, tickets: Path, tmp_path: Path) -> None:
    with serving(tmp_path, [tickets], HITIN_API_KEY=KEY) as served:
        page = pages(expected="401")
        page.goto(served.address)
        page.click("#key-cancel")
        page.wait_for_selector("#message:not([hidden])")
        assert "Authorization" not in page.inner_text("#message")
        page.fill("#text", LATE)  # which asks for the key again
        page.wait_for_selector("#key-dialog[open]")
        page.fill("#key", "clé€")  # no header can hold it
        page.keyboard.press("Enter")
        assert page.is_visible("#key-dialog")
        assert page.evaluate("sessionStorage.length") == 0
        page.fill("#key", "wrong")
        page.keyboard.press("Enter")
        until(page, "document.querySelector('#key-told').textContent.includes('did not take')")
        page.fill("#key", KEY)
        page.keyboard.press("Enter")
        page.wait_for_selector(".row")
        classify(page, LATE)
        page.reload()
        page.wait_for_selector(".row")
        assert page.evaluate("Object.values(sessionStorage)") == [KEY]
        assert page.evaluate("Object.keys(localStorage).length + document.cookie.length") == 0


def test_a_server_that_is_gone_is_told_and_taken_up_again(pages: Pages, tickets: Path, tmp_path: Path) -> None:
    page = pages(expected="ERR_CONNECTION|Failed to load")
    with serving(tmp_path, [tickets]) as served:
        opened(page, served)
        classify(page, LATE)
        port = served.address.rpartition(":")[2]
    page.fill("#text", "another text")
    page.wait_for_selector("#message:not([hidden])")
    assert "does not answer" in page.inner_text("#message")
    page.click("#clear")
    assert page.is_hidden("#message"), "there is nothing to be answered"
    with serving(tmp_path, [tickets], "--port", port):
        classify(page, LATE)
        assert page.is_hidden("#message")


def test_a_text_that_is_too_long_is_told(pages: Pages, served_tickets: Served) -> None:
    page = opened(pages(expected="413"), served_tickets)
    classify(page, LATE)
    page.fill("#text", "word " * 50_000)
    page.wait_for_selector("#message:not([hidden])")
    assert "200,000" in page.inner_text("#message")
    assert lit(page) == set(), "the answer of before is not that of this text"


def test_a_busy_server_is_asked_again_after_the_time_it_names(pages: Pages, served_tickets: Served) -> None:
    page, busy = opened(pages(expected="429"), served_tickets), [True]

    def answer(route: object) -> None:
        if busy:
            busy.pop()
            route.fulfill(status=429, headers={"Retry-After": "1"}, body="{}")  # type: ignore[attr-defined]
        else:
            route.continue_()  # type: ignore[attr-defined]

    page.route("**/v1/predict", answer)
    page.fill("#text", LATE)
    page.wait_for_selector(".row.lit")
    assert not busy
    assert "Late" in lit(page)
