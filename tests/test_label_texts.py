"""The texts of labels against slow counting."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin.batches import Examples
from hitin.methods.interface import Facts
from hitin.methods.label_texts import label_texts, split_frame
from hitin.tokens import Ragged


def facts(rows: list[list[int]], labels: list[list[int]], count: int, frame: list[int]) -> Facts:
    names = Ragged.of([[90 + label] for label in range(count)])
    return Facts(Examples(Ragged.of(rows), Ragged.of(labels), count), None, names, np.array(frame, dtype=np.int32))


def slow_weights(rows: list[list[int]], members: list[int], left_out: set[int]) -> dict[int, float]:
    """The mean TF-IDF of each token over some documents."""
    totals: dict[int, float] = defaultdict(float)
    for member in members:
        weights = {}
        for token in sorted(set(rows[member]) - left_out):
            having = sum(token in row for row in rows)
            weights[token] = rows[member].count(token) * math.log(len(rows) / having)
        length = math.sqrt(sum(weight**2 for weight in weights.values()))
        for token, weight in weights.items():
            totals[token] += weight / length if length else 0
    return {token: total / len(members) for token, total in totals.items()}


ROWS = st.lists(st.lists(st.integers(1, 12), min_size=1, max_size=8), min_size=1, max_size=12)


@given(ROWS, st.integers(1, 5), st.booleans(), st.data())
def test_a_label_has_the_tokens_that_tell_most_of_its_documents(
    rows: list[list[int]], words: int, framed: bool, data: st.DataObject
) -> None:
    if framed:
        rows = [[20, *row, 21] for row in rows]
    labels = [sorted(data.draw(st.sets(st.integers(0, 3)))) for _ in rows]
    known = facts(rows, labels, 4, [20, 21] if framed else [1])
    texts = label_texts(known, words, "clean")
    before, after = (part.tolist() for part in split_frame(known.frame, known.train.tokens))
    assert not framed or (before, after) == ([20], [21])
    room = max(1, max(map(len, rows)) - len(before) - len(after))
    for label in range(4):
        members = [row for row, names in enumerate(labels) if label in names]
        weights = {
            token: weight for token, weight in slow_weights(rows, members, set(known.frame)).items() if weight > 0
        }
        text = texts[label].tolist()
        if not weights:
            assert text == [90 + label]
            continue
        assert (text[: len(before)], text[len(text) - len(after) :]) == (before, after)
        text = text[len(before) : len(text) - len(after)]
        assert len(set(text)) == len(text) == min(words, room, len(weights))
        best = sorted(weights.values(), reverse=True)[: len(text)]
        np.testing.assert_allclose([weights[token] for token in text], best, rtol=1e-9)


@given(ROWS, st.data())
def test_as_published_a_label_has_tokens_that_neither_few_nor_most_of_its_documents_have(
    rows: list[list[int]], data: st.DataObject
) -> None:
    rows = [[2, *row, 2] for row in rows]  # so that the unknown token, 1, is no frame
    labels = [sorted(data.draw(st.sets(st.integers(0, 3)))) for _ in rows]
    texts = label_texts(facts(rows, labels, 4, [1]), 1, "upstream")
    for label in range(4):
        own = [row for row, names in zip(rows, labels, strict=True) if label in names]
        wanted = [
            token
            for token in range(2, 13)
            if any(token in row for row in own) and len(own) / 10 <= sum(token in row for row in own) <= 0.8 * len(own)
        ]
        assert texts[label].tolist() == (wanted[: max(map(len, rows))] or [90 + label])


@pytest.mark.parametrize(
    ("frame", "rows", "before", "after"),
    [
        ([2, 3], [[2, 5, 3], [2, 3], [2, 2, 3]], [2], [3]),
        ([2], [[2, 5], [2]], [2], []),
        ([3], [[5, 3], [6, 5, 3]], [], [3]),
        ([2, 7, 3], [[2, 7, 5, 3], [2, 7, 3]], [2, 7], [3]),
        ([1], [[5, 6], [1]], [], []),
        ([], [[5]], [], []),
        ([2, 3], [[2], [2, 3]], [], []),
    ],
)
def test_a_frame_is_what_stands_around_every_document(
    frame: list[int], rows: list[list[int]], before: list[int], after: list[int]
) -> None:
    found = split_frame(np.array(frame, dtype=np.int32), Ragged.of(rows))
    assert [part.tolist() for part in found] == [before, after]
