"""A model that changes in its folder is served anew, and no request is lost meanwhile."""

import json
import re
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from hitin import HierarchicalTextClassifier
from hitin.decisions import Decisions
from hitin.errors import InputError
from hitin.serve.models import Loading, Models, ServedModel, named
from tests.conftest import Run
from tests.serving import LATE, Served, copied, serving, train_tickets
from tests.waiting import until

Answer = tuple[int, str]


@pytest.fixture
def model(tickets: Path, tmp_path: Path) -> Path:
    return copied(tickets, tmp_path / "tickets")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another model of the same labels."""
    return train_tickets(tmp_path_factory.mktemp("other") / "tickets", method="flat", epochs=3)


@pytest.fixture
def models(model: Path) -> Iterator[Models]:
    found = Models.load([str(model)], Loading(device="cpu"))
    yield found
    found.close()


def test_decisions_are_read_anew_without_the_weights(models: Models, model: Path) -> None:
    before = models.all()[0]
    (model / "decisions.json").write_text(Decisions("raw", threshold=0.123).to_json())
    assert models.look() == ["tickets"]
    after = models.all()[0]
    assert (after.decisions.policy, after.decisions.threshold) == ("raw", 0.123)
    assert before.decisions.policy != "raw", "what was begun ends as it began"
    assert after.computing is before.computing
    assert models.look() == []


def test_a_folder_that_is_damaged_leaves_the_model_as_it_is(models: Models, model: Path) -> None:
    weights = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(weights[:-1] + b"x")
    (model / "model.json").touch()
    assert models.look() == []
    assert "tickets" in models.problems
    assert str(model) not in models.problems["tickets"]
    assert len(models.all()[0].computing.submit([LATE]).result(20)) == 1
    (model / "model.safetensors").write_bytes(weights)
    (model / "model.json").touch()
    assert models.look() == ["tickets"]
    assert models.problems == {}


def failing(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Folders that were tried in vain, as if they could not be read."""
    tried: list[Path] = []

    def load(_: str, folder: Path, __: Loading) -> ServedModel:
        tried.append(folder)
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(ServedModel, "load", load)
    return tried


def test_a_folder_that_could_not_be_read_is_tried_again_when_its_permissions_change(
    models: Models, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (model / "model.json").touch()
    with monkeypatch.context() as patched:
        tried = failing(patched)
        assert (models.look(), models.look(), len(tried)) == ([], [], 1)
    (model / "model.safetensors").chmod(0o600)
    assert models.look() == ["tickets"]
    assert models.problems == {}


def test_a_folder_that_could_not_be_read_is_tried_again_when_that_is_asked_for(
    models: Models, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (model / "model.json").touch()
    with monkeypatch.context() as patched:
        tried = failing(patched)
        assert (models.look(), models.look(again=True), len(tried)) == ([], [], 2)
    assert (models.look(), models.look(again=True)) == ([], ["tickets"])


@pytest.mark.parametrize("name", ["model.json", "run.toml", "model.safetensors", "tokenizer.json", "decisions.json"])
def test_what_is_wrong_with_a_file_is_told_without_where_it_lies(models: Models, model: Path, name: str) -> None:
    (model / name).unlink()
    (model / name).mkdir()
    assert models.look() == []
    assert models.problems["tickets"]
    assert str(model) not in models.problems["tickets"]


@pytest.mark.parametrize("broken", ["{", '{"policy": "nonsense"}', "[]", '{"threshold": [0.1]}'])
def test_decisions_that_make_no_sense_are_told(models: Models, model: Path, broken: str) -> None:
    good = (model / "decisions.json").read_text()
    (model / "decisions.json").write_text(broken)
    assert models.look() == []
    assert models.problems["tickets"]
    (model / "decisions.json").write_text(good)
    assert models.look() == ["tickets"]
    assert not models.problems


def test_a_folder_that_is_gone_and_comes_back(models: Models, model: Path, tmp_path: Path) -> None:
    model.rename(tmp_path / "away")
    assert models.look() == []
    assert models.problems
    assert len(models.all()[0].computing.submit([LATE]).result(20)) == 1
    (tmp_path / "away").rename(model)
    models.look()
    assert not models.problems


def test_models_are_called_by_folder_or_name(tmp_path: Path) -> None:
    assert named([f"{tmp_path}/one/", f"second={tmp_path}/one"]) == {
        "one": tmp_path / "one",
        "second": tmp_path / "one",
    }
    with pytest.raises(InputError, match="two models are called one"):
        named([f"{tmp_path}/one", f"{tmp_path}/two/../one"])
    with pytest.raises(InputError, match="no name"):
        named(["=somewhere"])


@contextmanager
def asking(served: Served, clients: int = 4) -> Iterator[list[Answer]]:
    """A stream of requests; the status of each and its policy, or what went wrong."""
    found: list[Answer] = []
    is_over = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=served.address, timeout=30, trust_env=False) as client:
            while not is_over.is_set():
                answer = client.post("/v1/predict", json={"texts": [LATE] * 3, "all_scores": True})
                found.append((answer.status_code, answer.text))

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield found
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def kind_of(text: str) -> tuple[object, ...]:
    """By what answers of different models differ, but for the last digits, which depend on the batch."""
    answer = json.loads(text)
    probabilities = answer["documents"][2]["probabilities"]
    return (answer["decisions"]["words"], *(round(each, 4) for each in probabilities))


def told_of(served: Served) -> dict[str, Any]:
    """What the server says of its only model."""
    [told] = served.get("/v1/models").json()["models"]
    return dict(told)


def test_a_stream_of_requests_sees_the_old_model_or_the_new_one(
    model: Path, other: Path, tmp_path: Path, run: Run
) -> None:
    with serving(tmp_path, [model], "--reload-every", 0.1) as served, asking(served) as found:
        until(lambda: len(found) > 10)
        HierarchicalTextClassifier.load(other, device="cpu").save(model)  # file by file, the list of them last
        served.wait_for("model loaded anew")
        assert run("tune", model, "--policy", "top-down", "--thresholds", "one").exit_code == 0
        until(lambda: told_of(served)["decisions"]["policy"] == "top-down")  # by the first look, or one more
        seen = len(found)
        until(lambda: len(found) > seen + 10)
        assert (told_of(served)["method"], told_of(served)["problem"]) == ("flat", None)
        metrics = served.get("/metrics").text
        [loaded] = re.findall(r'hitin_model_reloads_total\{model="tickets",outcome="loaded"\} (\S+)', metrics)
        assert float(loaded) >= 2
    assert {status for status, _ in found} == {200}
    assert len({kind_of(text) for _, text in found}) == 3, "of the first model, the second, and the second tuned"
    final = json.loads(found[-1][1])
    expected = HierarchicalTextClassifier.load(model, device="cpu").predict_proba([LATE])[0]
    assert final["documents"][0]["probabilities"] == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_signal_has_it_look_and_a_problem_is_told(model: Path, tmp_path: Path) -> None:
    with serving(tmp_path, [model], "--reload-every", 0) as served:
        decisions = (model / "decisions.json").read_text()
        shutil.copy(model / "run.toml", model / "decisions.json")
        served.process.send_signal(signal.SIGHUP)
        served.wait_for("model not loaded anew")
        (told,) = served.get("/v1/models").json()["models"]
        assert told["problem"]
        assert str(tmp_path) not in json.dumps(told)
        assert 'hitin_model_problem{model="tickets"} 1.0' in served.get("/metrics").text
        assert served.predict(LATE)["documents"][0]["paths"] == ["Delivery > Late"]
        (model / "decisions.json").write_text(decisions)
        served.process.send_signal(signal.SIGHUP)
        served.wait_for("model loaded anew")
        assert served.get("/v1/models").json()["models"][0]["problem"] is None


def test_a_signal_has_it_try_again_what_could_not_be_loaded(model: Path, tmp_path: Path) -> None:
    """Also where no file has changed, but only the way to one: a link out of the folder is refused."""
    outside, way = tmp_path / "outside", model / "way"
    with serving(tmp_path, [model], "--reload-every", 0) as served:
        outside.mkdir()
        (model / "decisions.json").rename(outside / "decisions.json")
        way.symlink_to(outside)
        (model / "decisions.json").symlink_to("way/decisions.json")
        served.process.send_signal(signal.SIGHUP)
        served.wait_for("model not loaded anew")
        way.unlink()
        outside.rename(model / "inside")
        way.symlink_to("inside")
        served.process.send_signal(signal.SIGHUP)
        served.wait_for("model loaded anew")
