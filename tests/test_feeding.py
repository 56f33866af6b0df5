"""Batches made ahead: the same ones in the same order, and no thread is left behind."""

import threading
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from hitin.batches import Batch, Examples, Rows
from hitin.tokens import Ragged
from hitin.training.feeding import Feed

GPU = torch.device("cuda")
CPU = torch.device("cpu")


class Unpinned(Batch):
    """Memory cannot be pinned where there is no GPU."""

    def pinned(self) -> Batch:
        return self


@dataclass(frozen=True)
class Given(Examples):
    """Examples whose thirteenth document cannot be read."""

    def batch(self, rows: Rows) -> Batch:
        if 13 in rows:
            raise ValueError("document 13")
        made = super().batch(rows)
        return Unpinned(made.ids, made.lengths, made.targets, made.vectors)


def examples(count: int) -> Given:
    return Given(Ragged.of([[number + 1] * (number % 5 + 1) for number in range(count)]), Ragged.of([[0]] * count), 1)


def batches_of(count: int) -> list[Rows]:
    return [np.arange(start, start + 2) for start in range(0, count, 2)]


@pytest.mark.parametrize("device", [GPU, CPU])
def test_batches_come_in_the_order_in_which_they_are_wanted(device: torch.device) -> None:
    given, wanted = examples(12), batches_of(12)
    with Feed(given, wanted, device) as feed:
        for rows in wanted:
            made, expected = feed.batch(rows), given.batch(rows)
            assert made.ids is not None
            assert expected.ids is not None
            assert made.ids.tolist() == expected.ids.tolist()
            assert made.targets.tolist() == expected.targets.tolist()


def test_what_goes_wrong_is_raised_where_the_batch_is_wanted() -> None:
    wanted = batches_of(20)
    with Feed(examples(20), wanted, GPU) as feed:
        for rows in wanted[:6]:
            feed.batch(rows)
        with pytest.raises(ValueError, match="document 13"):
            feed.batch(wanted[6])


def test_a_feed_that_is_left_early_leaves_no_thread() -> None:
    before = threading.active_count()
    for _ in range(3):
        with Feed(examples(12), batches_of(12), GPU) as feed:
            feed.batch(np.arange(2))
    assert threading.active_count() == before
