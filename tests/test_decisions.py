"""From probabilities to labels: thresholds, and labels that never come without their ancestors."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hitin import InputError, Taxonomy
from hitin.decisions import Decisions, probabilities_of, with_ancestors
from tests.strategies import taxonomies


@st.composite
def decided(draw: st.DrawFn) -> tuple[Taxonomy, NDArray[np.float32]]:
    """A taxonomy, perhaps with several parents a label, and the probabilities of some documents."""
    taxonomy = draw(taxonomies())
    rows = draw(st.lists(st.lists(st.floats(0, 1), min_size=len(taxonomy), max_size=len(taxonomy)), max_size=4))
    return taxonomy, np.array(rows, dtype=np.float32).reshape(-1, len(taxonomy))


def above(taxonomy: Taxonomy, label: str) -> set[str]:
    """A label and all that stand above it, the plain way."""
    found = {label}
    for parent in taxonomy.parents(taxonomy.index(label)):
        found |= above(taxonomy, taxonomy.labels[parent])
    return found


@given(decided(), st.floats(0, 1))
def test_a_label_never_comes_without_its_ancestors(given: tuple[Taxonomy, NDArray[np.float32]], at: float) -> None:
    taxonomy, probabilities = given
    chosen = Decisions(threshold=at).decide(probabilities, taxonomy)
    assert chosen.shape == probabilities.shape
    assert chosen.dtype == np.bool_
    for row, likely in zip(chosen, probabilities, strict=True):
        wanted = {label for label, each in zip(taxonomy.labels, likely, strict=True) if each > np.float32(at)}
        names = {label for label, is_chosen in zip(taxonomy.labels, row, strict=True) if is_chosen}
        assert names == set().union(*(above(taxonomy, label) for label in wanted))


@given(decided())
def test_adding_ancestors_again_adds_nothing_and_the_input_stays(given: tuple[Taxonomy, NDArray[np.float32]]) -> None:
    taxonomy, probabilities = given
    raw = Decisions("raw").decide(probabilities, taxonomy)
    before = raw.copy()
    closed = with_ancestors(raw, taxonomy)
    assert np.array_equal(raw, before)
    assert np.array_equal(raw, probabilities > 0.5)
    assert np.array_equal(with_ancestors(closed, taxonomy), closed)


def test_a_long_chain_is_closed_to_the_top() -> None:
    taxonomy = Taxonomy.from_paths([[str(number) for number in range(500)]])
    chosen = np.zeros((1, 500), dtype=bool)
    chosen[0, -1] = True
    assert with_ancestors(chosen, taxonomy).all()


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), max_size=20))
def test_probabilities_are_those_of_the_logistic_function(logits: list[float]) -> None:
    values = np.array(logits, dtype=np.float32)
    with np.errstate(over="raise", invalid="raise"):
        found = probabilities_of(values)
    wide = values.astype(np.float64)
    expected = np.where(wide < 0, np.exp(np.minimum(wide, 0)), 1) / (1 + np.exp(-np.abs(wide)))
    assert found.dtype == np.float32
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-37)


def test_small_probabilities_keep_their_digits() -> None:
    assert probabilities_of(np.array([-20.0], dtype=np.float32))[0] == pytest.approx(np.exp(-20), rel=1e-5)


def test_decisions_come_back_from_json() -> None:
    decisions = Decisions("raw", 0.25)
    assert Decisions.from_json(decisions.to_json(), "file") == decisions
    assert json.loads(decisions.to_json()) == {"policy": "raw", "threshold": 0.25}


def test_what_is_no_policy_or_threshold_is_refused() -> None:
    with pytest.raises(InputError, match="no policy 'loud'") as caught:
        Decisions("loud")  # type: ignore[arg-type]
    assert "raw, consistent" in str(caught.value)
    for threshold in (-0.1, 1.1, float("nan"), True, "0.5", None):
        with pytest.raises(InputError, match="threshold"):
            Decisions(threshold=threshold)  # type: ignore[arg-type]
