"""What a model keeps of its decisions: policy, thresholds, calibration; and how they turn logits into labels."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hitin import InputError, Taxonomy
from hitin.calibration import Calibration, LogOdds
from hitin.decisions import Decisions, Policy
from hitin.decisions.policies import POLICIES, WITH_THRESHOLDS
from hitin.loading import Deciding
from hitin.taxonomy.levels import with_ancestors
from tests.strategies import taxonomies

TAXONOMY = Taxonomy.from_nested({"a": {"b": {"c": {}}, "d": {}}, "e": {}})


def odds(*probabilities: float) -> NDArray[np.float32]:
    """One document, by the probabilities of its labels."""
    values = np.array([probabilities])
    return np.asarray(np.log(values) - np.log1p(-values), dtype=np.float32)


def names(decisions: Decisions, logits: NDArray[np.float32]) -> str:
    given = decisions.decide(logits, TAXONOMY)[0]
    return "".join(sorted(TAXONOMY.labels[label] for label in np.flatnonzero(given)))


@st.composite
def decided(draw: st.DrawFn) -> tuple[Taxonomy, NDArray[np.float32], Decisions]:
    """A taxonomy, perhaps with several parents a label, the logits of some documents, and any decisions."""
    taxonomy = draw(taxonomies())
    values = st.lists(st.floats(-30, 30, width=32), min_size=len(taxonomy), max_size=len(taxonomy))
    rows = np.array(draw(st.lists(values, max_size=4)), dtype=np.float32).reshape(-1, len(taxonomy))
    share = st.floats(0, 1)
    threshold: Any = draw(
        st.one_of(
            share,
            st.tuples(*[share] * taxonomy.depth),
            st.fixed_dictionaries(dict.fromkeys(taxonomy.labels, share)),
        )
    )
    temperatures = draw(st.tuples(*[st.floats(0.1, 10)] * taxonomy.depth))
    calibration = draw(st.sampled_from([Calibration(), Calibration("temperature", temperatures)]))
    policy, k, stop = draw(st.sampled_from(POLICIES)), draw(st.integers(1, 5)), draw(st.sampled_from([0.0, 0.3, 0.9]))
    return taxonomy, rows, Decisions(policy, threshold, k=k, stop=stop, calibration=calibration)


@given(decided())
def test_nothing_is_given_below_a_label_that_stops(case: tuple[Taxonomy, NDArray[np.float32], Decisions]) -> None:
    taxonomy, logits, decisions = case
    unsure = decisions.probabilities(logits, taxonomy) < decisions.stop
    for row, chosen in zip(unsure, decisions.decide(logits, taxonomy), strict=True):
        for label in np.flatnonzero(chosen).tolist():
            assert not row[list(taxonomy.closure((label,)))].any()


def test_raw_labels_are_not_given_below_one_that_stops() -> None:
    logits = odds(0.3, 0.8, 0.9, 0.9, 0.9)
    assert names(Decisions("raw", 0.1), logits) == "abcde"
    assert names(Decisions("raw", 0.1, stop=0.5), logits) == "e"
    assert Decisions("raw", 0.1, stop=0.5).decide_and_stop(logits, TAXONOMY)[1].sum() == 4


def test_uncalibrated_decisions_leave_all_that_was_tuned_aside() -> None:
    calibration = Calibration("temperature", (1.0, 2.0, 3.0))
    raw = {"threshold": 0.4, "k": 3, "stop": 0.2, "calibration": calibration.to_json()}
    for own in (Calibration(), calibration):
        decisions = Decisions("top-down", (0.1, 0.2, 0.3), stop=0.1, calibration=own, others={"raw": raw})
        assert decisions.uncalibrated() == Decisions("top-down")
        assert Deciding(uncalibrated=True).changed(decisions) == Decisions("top-down")
        assert Deciding("raw", uncalibrated=True).changed(decisions) == Decisions("raw")
        assert Deciding("raw", 0.3, uncalibrated=True).changed(decisions) == Decisions("raw", 0.3)


@given(decided())
def test_a_label_never_comes_without_its_ancestors(case: tuple[Taxonomy, NDArray[np.float32], Decisions]) -> None:
    taxonomy, logits, decisions = case
    before = logits.copy()
    chosen, stopped = decisions.decide_and_stop(logits, taxonomy)
    assert np.array_equal(logits, before)
    assert chosen.shape == stopped.shape == logits.shape
    assert not (chosen & stopped).any()
    if decisions.policy != "raw":
        assert np.array_equal(with_ancestors(chosen, taxonomy), chosen)
    if decisions.stop:
        assert (decisions.probabilities(logits, taxonomy)[chosen] >= decisions.stop).all()
        assert np.array_equal(chosen | stopped, replace(decisions, stop=0.0).decide(logits, taxonomy))
    else:
        assert not stopped.any()


@given(decided())
def test_decisions_come_back_from_json(case: tuple[Taxonomy, NDArray[np.float32], Decisions]) -> None:
    taxonomy, logits, decisions = case
    found = Decisions.from_json(decisions.to_json(), "file")
    assert found == decisions
    assert np.array_equal(found.decide(logits, taxonomy), decisions.decide(logits, taxonomy))


def test_thresholds_are_for_all_labels_for_each_level_or_for_each_label() -> None:
    logits = odds(0.6, 0.4, 0.5, 0.3, 0.35)  # a e b d c
    assert names(Decisions("raw", 0.45), logits) == "ab"
    assert names(Decisions("raw", (0.7, 0.4, 0.3)), logits) == "bc"
    by_label = {"a": 0.9, "b": 0.9, "c": 0.9, "d": 0.2, "e": 0.3}
    assert names(Decisions("raw", by_label), logits) == "de"
    assert names(Decisions("top-down", by_label), logits) == "e"


def test_thresholds_of_0_and_1_give_every_label_and_none() -> None:
    logits = np.array([[-80.0, 0, 80, 5, -5]], dtype=np.float32)
    policies: tuple[Policy, ...] = ("raw", "consistent", "top-down")
    for policy in policies:
        assert names(Decisions(policy, 0.0), logits) == "abcde"
        assert names(Decisions(policy, 1.0), logits) == ""


def test_a_likely_child_brings_its_parent_or_falls_with_it() -> None:
    likely, unlikely = odds(0.4, 0.1, 0.7, 0.1, 0.1), odds(0.1, 0.1, 0.7, 0.1, 0.1)
    assert names(Decisions("consistent"), likely) == "ab"
    assert names(Decisions("consistent"), unlikely) == ""
    assert names(Decisions("top-down"), likely) == ""


def test_a_single_path_ends_above_what_is_unsure() -> None:
    logits = odds(0.9, 0.2, 0.6, 0.1, 0.4)
    assert names(Decisions("single-path"), logits) == "abc"
    assert names(Decisions("single-path", stop=0.5), logits) == "ab"
    assert names(Decisions("single-path", stop=0.7), logits) == "a"
    assert names(Decisions("single-path", stop=0.95), logits) == ""


def test_another_policy_comes_with_what_was_tuned_for_it() -> None:
    others: dict[Policy, dict[str, Any]] = {"top-down": {"threshold": [0.1, 0.2, 0.3], "k": 3, "stop": 0.0}}
    decisions = Decisions("single-path", stop=0.2, others=others)
    assert decisions.with_options() == decisions
    assert decisions.with_options(policy="top-down").threshold == (0.1, 0.2, 0.3)
    assert decisions.with_options(policy="top-down").stop == 0.0
    assert decisions.with_options(policy="top-down", threshold=0.7).threshold == 0.7
    assert decisions.with_options(policy="consistent") == Decisions("consistent")
    assert decisions.with_options(stop=0.5) == Decisions("single-path", stop=0.5)


def test_what_was_tuned_is_there_again_after_other_policies() -> None:
    tuned = Calibration("temperature", (1.0, 4.0, 2.0))
    plain = {"kind": "none", "temperatures": [], "curves": []}
    others: dict[Policy, dict[str, Any]] = {
        "raw": {"threshold": 0.6, "k": 3, "stop": 0.0, "calibration": plain},
        "top-down": {"threshold": [0.1, 0.2, 0.3], "k": 3, "stop": 0.0},
    }
    first = Decisions("consistent", threshold=0.3, stop=0.1, calibration=tuned, others=others)
    raw = Decisions.from_json(first.with_options(policy="raw", threshold=0.7).to_json(), "decisions.json")
    assert (raw.threshold, raw.calibration) == (0.7, Calibration())
    assert raw.with_options(policy="consistent") == first
    assert raw.with_options(policy="top-down") == first.with_options(policy="top-down")
    assert first.with_options(policy="top-down").calibration == tuned
    assert raw.with_options(policy="consistent").with_options(policy="raw").threshold == 0.7


def test_limits_go_by_probabilities_as_they_are_kept() -> None:
    taxonomy, decisions = Taxonomy.from_paths([["a"]]), Decisions("single-path")
    for hundredth in range(1, 100):
        sure = LogOdds(np.ones((1, 1), dtype=np.float32), taxonomy, is_coherent=True)
        sure.__dict__["probabilities"] = np.array([[hundredth / 100]], dtype=np.float32)
        (limit,) = decisions.limits(sure, taxonomy)
        assert limit == hundredth / 100
        assert decisions.with_options(stop=limit).decide_odds(sure, taxonomy)[0].all()


@pytest.mark.parametrize("policy", ["single-path", "top-k"])
def test_a_threshold_alone_makes_consistent_of_a_policy_without_one(policy: Policy) -> None:
    assert Decisions(policy).with_options(threshold=0.3) == Decisions("consistent", threshold=0.3)


def test_options_that_a_policy_does_not_have_are_refused() -> None:
    with pytest.raises(InputError, match="single-path has no threshold"):
        Decisions("consistent").with_options(policy="single-path", threshold=0.3)
    with pytest.raises(InputError, match="consistent has no k"):
        Decisions().with_options(k=3)
    assert Decisions().with_options(policy="top-k", k=7).k == 7


WRONG: dict[str, tuple[str, list[Any]]] = {
    "policy": ("no policy 'loud'", ["loud"]),
    "threshold": ("threshold", [-0.1, 1.1, float("nan"), True, "0.5", None, (), {"a": 2}]),
    "k": ("k is", [0, 1.5, True, None]),
    "stop": ("stop is", [-1, 2, "x", None]),
    "others": ("other policies", [3, {"loud": {}}, {"raw": {}}, {"raw": 3}]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_sense_is_refused(name: str) -> None:
    told, values = WRONG[name]
    for value in values:
        with pytest.raises(InputError, match=told):
            Decisions(**{name: value})


def test_thresholds_must_fit_the_taxonomy() -> None:
    logits = np.zeros((1, 5), dtype=np.float32)
    with pytest.raises(InputError, match="2 thresholds for 3 levels"):
        Decisions(threshold=(0.5, 0.5)).decide(logits, TAXONOMY)
    with pytest.raises(InputError, match="'e' has no threshold"):
        Decisions(threshold=dict.fromkeys("abcd", 0.5)).decide(logits, TAXONOMY)
    with pytest.raises(InputError, match="'f' is not in the taxonomy"):
        Decisions(threshold=dict.fromkeys("abcdef", 0.5)).decide(logits, TAXONOMY)


def test_decisions_of_models_before_thresholds_were_tuned_are_read() -> None:
    assert Decisions.from_json('{"policy": "raw", "threshold": 0.25}', "file") == Decisions("raw", 0.25)
    assert Decisions.from_json("{}", "file") == Decisions("consistent", 0.5)


@pytest.mark.parametrize("text", ["[]", "3", "{", '{"speed": 3}', '{"calibration": 3}', '{"threshold": {"a": 7}}'])
def test_damaged_decisions_are_told_with_their_file(text: str) -> None:
    with pytest.raises(InputError) as caught:
        Decisions.from_json(text, "decisions.json")
    assert caught.value.file == "decisions.json"
    assert caught.value.remedy


def test_decisions_that_were_changed_by_hand_are_taken_once_their_checksum_is_deleted() -> None:
    written = json.loads(Decisions("raw", 0.25).to_json())
    changed = written | {"threshold": 0.26}
    with pytest.raises(InputError, match="damaged, or changed by hand") as caught:
        Decisions.from_json(json.dumps(changed), "decisions.json")
    assert 'delete its "checksum"' in str(caught.value.remedy)
    del changed["checksum"]
    assert Decisions.from_json(json.dumps(changed), "decisions.json") == Decisions("raw", 0.26)


def test_the_words_for_decisions_name_what_matters() -> None:
    assert Decisions().describe() == "consistent, threshold 0.5"
    assert Decisions("top-k", k=4).describe() == "top-k, k = 4"
    assert Decisions("single-path", stop=0.25).describe() == "single-path, stopping below 0.25"
    assert Decisions(threshold=(0.1, 0.2)).describe() == "consistent, thresholds by level 0.1, 0.2"
    assert Decisions(threshold={"a": 0.1}).describe() == "consistent, a threshold a label"
    assert json.loads(Decisions().to_json())["threshold"] == 0.5


def test_a_misspelt_key_one_that_comes_twice_and_a_wrong_threshold_are_named() -> None:
    for text, told in (
        ('{"polcy": "raw"}', "Did you mean policy?"),
        ('{"policy": "raw", "policy": "top-k"}', "a name comes twice"),
        ('{"threshold": {"a": 0.5, "a": 0.9}}', "a name comes twice"),
        ('{"threshold": {"a": 0.5, "b": 2}}', "the threshold of 'b' is 2"),
        ('{"policy": "raw",}', "cannot be read"),
    ):
        with pytest.raises(InputError) as caught:
            Decisions.from_json(text, "decisions.json")
        assert told in str(caught.value)


def test_thresholds_are_looked_up_once_and_for_each_taxonomy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service asks for every document."""
    first = Taxonomy.from_nested({"A": ["a", "b"], "B": []})
    other = Taxonomy.from_nested({"B": ["b"], "A": ["a"]})
    thresholds = {"A": 0.1, "B": 0.9, "a": 0.3, "b": 0.6}
    decisions = Decisions("raw", thresholds)
    asked: list[Taxonomy] = []
    look = Decisions.thresholds

    def looked(self: Decisions, taxonomy: Taxonomy) -> NDArray[np.float64]:
        asked.append(taxonomy)
        return look(self, taxonomy)

    monkeypatch.setattr(Decisions, "thresholds", looked)
    logits = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    for taxonomy in (first, first, other, other, first):
        at = np.array([thresholds[label] for label in taxonomy.labels])
        assert (decisions.decide(logits, taxonomy) == (logits > np.log(at / (1 - at)))).all()
    assert asked == [first, other, first]
    again = replace(decisions, threshold={"A": 0.9, "B": 0.1, "a": 0.3, "b": 0.6})
    assert (again.decide(logits, first)[:, 0] == (logits[:, 0] > np.log(9))).all()


@settings(max_examples=50)
@given(decided())
def test_a_limit_is_the_highest_threshold_at_which_a_label_is_given(
    case: tuple[Taxonomy, NDArray[np.float32], Decisions],
) -> None:
    taxonomy, rows, decisions = case
    for row in rows[:1]:
        odds = decisions.calibration.odds(row[None], taxonomy)
        limits = decisions.limits(odds, taxonomy, steps=10)
        for step in range(11):
            at = step / 10
            option: dict[str, Any] = {"threshold": at} if decisions.policy in WITH_THRESHOLDS else {"stop": at}
            given = decisions.with_options(**option).decide_odds(odds, taxonomy)[0][0]
            assert ((limits >= at - 1e-9) == given).all()
