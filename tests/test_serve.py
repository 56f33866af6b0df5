"""What a real server answers: the same as the library and `hitin predict`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from hitin import HierarchicalTextClassifier, Taxonomy
from hitin.calibration import Calibration
from hitin.decisions import Decisions
from hitin.decisions.policies import POLICIES
from hitin.serve.predicting import rounded
from tests.conftest import Run, Write
from tests.serving import LATE, TICKETS, Served, copied, serving, train_tickets

TEXTS = [LATE, "the battery is empty after an hour", "I forgot my password", "nothing of this kind", "", "\U0001f600"]


@pytest.fixture(scope="module")
def classifier(tickets: Path) -> HierarchicalTextClassifier:
    return HierarchicalTextClassifier.load(tickets, device="cpu")


def test_labels_and_probabilities_are_those_of_the_library(
    served_tickets: Served, classifier: HierarchicalTextClassifier
) -> None:
    answer = served_tickets.predict(*TEXTS, all_scores=True)
    scored = classifier.scored(TEXTS)
    assert answer["model"] == "tickets"
    assert answer["taxonomy"] == served_tickets.get("/v1/taxonomy").json()["id"]
    assert answer["decisions"] == json.loads(json.dumps(classifier.decisions_.summary()))
    for document, given, row in zip(answer["documents"], scored.given, scored.probabilities, strict=True):
        assert document["labels"] == [classifier.classes_[label] for label in np.flatnonzero(given)]
        assert np.abs(np.array(document["probabilities"]) - row).max() < 1e-5
        for label, score in document["scores"].items():
            assert abs(score - row[classifier.taxonomy_.index(label)]) < 1e-5


def test_records_are_those_of_the_command(served_tickets: Served, tickets: Path, write: Write, run: Run) -> None:
    texts = [text for text in TEXTS if text]
    file = write("texts.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in texts))
    lines = run("predict", tickets, file, "--top", 3, "--deepest", "--stop", 0.3).stdout.splitlines()
    answer = served_tickets.predict(*texts, top=3, deepest=True, stop=0.3)
    for line, document in zip(lines, answer["documents"], strict=True):
        record = json.loads(line)
        assert list(record) == list(document)
        assert record["labels"] == document["labels"]
        assert record["paths"] == document["paths"]
        for name in ("scores", "top", *(["unsure"] if "unsure" in record else [])):
            assert list(record[name]) == list(document[name])
            assert [*record[name].values()] == pytest.approx([*document[name].values()], rel=1e-3)


def test_one_text_is_answered_like_a_list_of_one(served_tickets: Served) -> None:
    one = served_tickets.post("/v1/predict", {"text": LATE}).json()
    assert one == served_tickets.predict(LATE)
    assert one["documents"][0]["paths"] == ["Delivery > Late"]


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_are_those_of_the_library(
    served_tickets: Served, classifier: HierarchicalTextClassifier, policy: Any
) -> None:
    options: dict[str, Any] = {"k": 2} if policy == "top-k" else {}
    if policy in ("raw", "consistent", "top-down"):
        options["threshold"] = 0.2
    answer = served_tickets.predict(*TEXTS, policy=policy, **options)
    decisions = classifier.decisions_.with_options(policy=policy, **options)
    given = classifier.decided(classifier.model_.logits(TEXTS), decisions).given
    assert answer["decisions"]["policy"] == policy
    for document, row in zip(answer["documents"], given, strict=True):
        assert document["labels"] == [classifier.classes_[label] for label in np.flatnonzero(row)]


@pytest.mark.parametrize("policy", POLICIES)
def test_limits_tell_what_every_threshold_would_give(served_tickets: Served, policy: str) -> None:
    told = served_tickets.predict(LATE, policy=policy, limits=True)["documents"][0]["limits"]
    labels = served_tickets.get("/v1/taxonomy").json()["labels"]
    name = "threshold" if policy in ("raw", "consistent", "top-down") else "stop"
    for at in (0.0, 0.05, 0.3, 0.77, 1.0):
        given = served_tickets.predict(LATE, policy=policy, **{name: at})["documents"][0]["labels"]
        assert given == [label for label, limit in zip(labels, told, strict=True) if limit >= at]


def test_the_taxonomy_is_told_and_remembered(served_tickets: Served) -> None:
    answer = served_tickets.get("/v1/taxonomy")
    told, taxonomy = answer.json(), Taxonomy.read(TICKETS / "taxonomy.tsv")
    assert tuple(told["labels"]) == taxonomy.labels
    assert told["edges"] == taxonomy.edges.tolist()
    assert tuple(told["level_sizes"]) == tuple(taxonomy.level_sizes)
    assert answer.headers["etag"] == f'"{told["id"]}"'
    again = served_tickets.get("/v1/taxonomy", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert served_tickets.get("/v1/taxonomy", headers={"If-None-Match": '"another"'}).content == answer.content


def test_models_are_told(served_tickets: Served, classifier: HierarchicalTextClassifier) -> None:
    (told,) = served_tickets.get("/v1/models").json()["models"]
    assert told["name"] == "tickets"
    assert (told["method"], told["encoder"], told["runtime"]) == ("hitin", "bag", "torch")
    assert told["labels"] == len(classifier.taxonomy_) == sum(told["levels"])
    assert told["documents"] == classifier.sizes_["train"]
    assert told["explains"] is True
    assert told["problem"] is None


def test_the_page_and_its_files_are_served(served_tickets: Served) -> None:
    index = served_tickets.get("/")
    assert index.status_code == 200
    assert index.headers["content-type"].startswith("text/html")
    policy = index.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for name in ("..%2fapp.py", "app.py", "%2e%2e/app.py", "index.html%00", "nothing.js"):
        assert served_tickets.get(f"/page/{name}").status_code in (404, 405)


def test_words_are_told_in_either_unit(served_tickets: Served) -> None:
    text = "\U0001f600 my parcel is late"
    for units, size in (("characters", 1), ("utf-16", 2)):
        answer = served_tickets.post("/v1/explain", {"text": text, "labels": ["Late"], "units": units}).json()
        (explanation,) = answer["explanations"]
        assert explanation["label"] == "Late"
        encoded = text.encode("utf-16-le")
        for word in explanation["words"]:
            start, end = word["start"], word["end"]
            piece = text[start:end] if size == 1 else encoded[2 * start : 2 * end].decode("utf-16-le")
            assert piece == word["text"]
        total = sum(word["weight"] for word in explanation["words"])
        assert total == pytest.approx(explanation["score"] - explanation["baseline"], rel=0.011)


def test_without_labels_those_that_are_given_are_explained(served_tickets: Served) -> None:
    asked = {"text": LATE, "policy": "consistent", "threshold": 0.3}
    given = served_tickets.post("/v1/predict", asked).json()["documents"][0]
    explained = served_tickets.post("/v1/explain", asked).json()["explanations"]
    assert [each["label"] for each in explained] == given["labels"] != []
    assert [each["probability"] for each in explained] == pytest.approx([*given["scores"].values()], abs=1e-5)
    none = served_tickets.post("/v1/explain", asked | {"threshold": 1}).json()["explanations"]
    assert none, "where none is given, the most probable path"
    refused = served_tickets.post("/v1/explain", {"text": LATE, "labels": ["Nonsense"]})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "unknown-label")


@pytest.fixture(scope="module")
def several(tickets: Path, exported_tickets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The model, its export by itself, and a linear one."""
    folder = tmp_path_factory.mktemp("several")
    exported, linear = copied(exported_tickets / "onnx", folder / "exported"), folder / "linear"
    train_tickets(linear, method="linear", encoder="tfidf", epochs=None, word_dropout=None, min_count=None)
    single = copied(tickets, folder / "single")
    (single / "decisions.json").write_text(Decisions("single-path").to_json())
    with serving(folder, [tickets, exported, f"straight={linear}", single]) as served:
        yield served


def test_a_threshold_without_a_policy_that_has_one_means_consistent(several: Served) -> None:
    assert several.predict(LATE, model="single")["decisions"]["policy"] == "single-path"
    assert several.predict(LATE, model="single", threshold=0.3)["decisions"]["policy"] == "consistent"
    asked = {"text": LATE, "model": "single", "threshold": 0.3, "policy": "single-path"}
    answer = several.post("/v1/predict", asked)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "bad-option")


def test_several_models_each_by_its_name(several: Served) -> None:
    told = several.get("/v1/models").json()["models"]
    assert [(each["name"], each["runtime"], each["explains"]) for each in told] == [
        ("tickets", "torch", True),
        ("exported", "onnx", False),
        ("straight", "torch", True),
        ("single", "torch", True),
    ]
    first, *others = (several.predict(*TEXTS, model=each["name"], all_scores=True) for each in told)
    assert several.predict(*TEXTS, all_scores=True) == first
    for name in ("labels", "paths"):
        assert [each[name] for each in first["documents"]] == [each[name] for each in others[0]["documents"]]
    one, other = (np.array([each["probabilities"] for each in answer["documents"]]) for answer in (first, others[0]))
    assert np.abs(one - other).max() < 1e-5
    assert others[1]["documents"][0]["probabilities"] != first["documents"][0]["probabilities"]


def test_an_exported_model_is_not_explained_and_a_linear_one_is(several: Served) -> None:
    refused = several.post("/v1/explain", {"text": LATE, "model": "exported"})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "no-explanation")
    assert refused.json()["error"]["remedy"]
    linear = several.post("/v1/explain", {"text": LATE, "model": "straight", "labels": ["Delivery"]})
    assert linear.status_code == 200, linear.text
    assert linear.json()["explanations"][0]["words"]


def test_a_model_computed_by_onnx_is_explained_by_torch(exported_tickets: Path, tmp_path: Path) -> None:
    with serving(tmp_path, [exported_tickets], "--runtime", "onnx") as served:
        (told,) = served.get("/v1/models").json()["models"]
        assert (told["runtime"], told["explains"]) == ("onnx", True)
        explained = served.post("/v1/explain", {"text": LATE}).json()["explanations"]
        scores = served.predict(LATE)["documents"][0]["scores"]
        assert {each["label"]: each["probability"] for each in explained} == pytest.approx(scores, abs=1e-5)


def test_without_batching_answers_are_the_same(tickets: Path, tmp_path: Path, served_tickets: Served) -> None:
    with serving(tmp_path, [tickets], "--no-batching") as served, httpx.Client(base_url=served.address) as client:
        answers = [client.post("/v1/predict", json={"text": text}).json() for text in TEXTS]
        assert answers == [served_tickets.predict(text) for text in TEXTS]
        sizes = [line for line in served.get("/metrics").text.splitlines() if 'le="1.0"' in line and "batch" in line]
        assert sizes
        assert float(sizes[0].split()[-1]) == len(TEXTS)


def test_rounding_keeps_six_digits() -> None:
    chance = np.random.default_rng(0)
    values = np.concatenate([10 ** chance.uniform(-30, 0, 5000), [0, 1, 0.5, 1e-5]]).astype(np.float32)
    for exact, found in zip(values, rounded(values), strict=True):
        assert found == pytest.approx(float(f"{exact:.6g}"), rel=2e-6)
    large = values[values > 1e-15]
    assert [float(f"{each:.6g}") for each in large] == rounded(large).tolist()


def test_calibration_is_the_models_own(served_tickets: Served, classifier: HierarchicalTextClassifier) -> None:
    assert classifier.decisions_.calibration != Calibration()
    assert served_tickets.predict(LATE)["decisions"]["calibration"] == classifier.decisions_.calibration.kind
