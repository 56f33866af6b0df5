"""Batches: every document once, about equally long together, the same for the same seed and epoch."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hitin.batches import Batch, Epochs, Examples, Judgements, by_length, multiple_for, shuffled
from hitin.tokens import Ragged

LENGTHS = st.lists(st.integers(1, 40), min_size=1, max_size=60).map(np.array)
SIZES = st.integers(1, 9)


def examples() -> Examples:
    return Examples(Ragged.of([[5, 6, 7], [8], [9, 4]]), Ragged.of([[0, 2], [], [1]]), label_count=3)


@given(LENGTHS, SIZES, st.integers(0, 99), st.integers(0, 99))
def test_an_epoch_has_every_document_once(lengths: np.ndarray, size: int, seed: int, epoch: int) -> None:
    batches = shuffled(lengths, size, seed, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert len(batches) == -(-len(lengths) // size)
    sizes = sorted(map(len, batches))
    assert sizes[2:] == [size] * (len(batches) - 2)
    assert sizes[-1] - sizes[0] <= 1 or len(batches) > 2
    assert len(sizes) < 2 or sizes[1] - sizes[0] <= 1  # two share what is left


def test_small_sets_have_other_batches_in_every_epoch() -> None:
    for documents in (65, 500, 3000):
        lengths = np.random.default_rng(0).permutation(documents) + 1  # no two alike
        epochs = [shuffled(lengths, 64, seed=0, epoch=epoch) for epoch in range(10)]
        assert len({frozenset(frozenset(batch.tolist()) for batch in batches) for batches in epochs}) == 10
        longest = int(lengths.argmax())
        assert len({frozenset(batch.tolist()) for batches in epochs for batch in batches if longest in batch}) == 10


@given(LENGTHS, SIZES, st.integers(0, 99), st.integers(0, 99))
def test_batches_depend_on_the_seed_and_the_epoch_alone(lengths: np.ndarray, size: int, seed: int, epoch: int) -> None:
    first, second = (shuffled(lengths, size, seed, epoch) for _ in range(2))
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in second]


def test_every_epoch_and_every_seed_has_an_order_of_its_own() -> None:
    lengths = np.arange(1000) % 7
    orders = {
        tuple(np.concatenate(shuffled(lengths, 8, seed, epoch)).tolist()) for seed in range(3) for epoch in range(3)
    }
    assert len(orders) == 9


def test_documents_of_a_batch_are_about_equally_long() -> None:
    lengths = np.random.default_rng(0).integers(1, 500, 4096)
    batches = shuffled(lengths, 32, seed=0, epoch=0)
    padded = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
    assert padded < 1.05 * lengths.sum()
    longest = [int(lengths[batch].max()) for batch in batches]
    assert longest != sorted(longest)  # batches themselves come in any order
    assert longest != sorted(longest, reverse=True)


def test_large_sets_are_shuffled_before_they_are_sorted() -> None:
    batches = shuffled(np.full(10_000, 5), 10, seed=0, epoch=0)
    firsts = np.array([batch.mean() for batch in batches])
    assert abs(firsts - 5000).mean() < 1500  # a batch holds documents from everywhere


@given(LENGTHS, SIZES)
def test_scoring_goes_from_the_longest_document_to_the_shortest(lengths: np.ndarray, size: int) -> None:
    batches = list(by_length(lengths, size))
    order = np.concatenate(batches)
    assert sorted(order.tolist()) == list(range(len(lengths)))
    assert lengths[order].tolist() == sorted(lengths.tolist(), reverse=True)
    assert {len(batch) for batch in batches[:-1]} <= {size}


def test_no_documents_have_no_batches() -> None:
    assert list(by_length(np.empty(0, dtype=np.int64), 4)) == []


def test_a_batch_has_token_numbers_lengths_and_targets() -> None:
    batch = examples().batch(np.array([2, 0]))
    assert batch.ids is not None
    assert batch.lengths is not None
    assert batch.ids.tolist() == [[9, 4, 0], [5, 6, 7]]
    assert batch.lengths.tolist() == [2, 3]
    assert batch.targets.tolist() == [[0, 1, 0], [1, 0, 1]]
    assert len(batch) == 2
    assert batch.vectors is None


def test_a_batch_of_a_frozen_encoder_has_vectors_in_place_of_tokens() -> None:
    batch = examples().with_vectors(torch.tensor([[1.0], [2.0], [3.0]])).batch(np.array([2, 1]))
    assert batch.vectors is not None
    assert batch.vectors.tolist() == [[3.0], [2.0]]
    assert batch.ids is None
    assert batch.lengths is None


def test_a_batch_moves_to_a_device_but_for_the_lengths() -> None:
    batch: Batch = examples().batch(np.array([0, 1])).to(torch.device("meta"))
    assert batch.ids is not None
    assert batch.lengths is not None
    assert (batch.ids.device.type, batch.targets.device.type, batch.lengths.device.type) == ("meta", "meta", "cpu")


def test_label_counts_are_how_many_documents_have_each_label() -> None:
    assert examples().label_counts().tolist() == [1, 1, 1]
    assert len(examples()) == 3


@pytest.mark.parametrize(
    ("tokens", "labels"), [([[5, 6], [7, 8], [9, 4]], [[0, 2], [], [1]]), ([[5, 6, 7], [8], [9, 4]], [[0], [2], [1]])]
)
def test_only_equal_documents_have_equal_fingerprints(tokens: list[list[int]], labels: list[list[int]]) -> None:
    assert examples().fingerprint() == examples().fingerprint()
    other = Examples(Ragged.of(tokens), Ragged.of(labels), label_count=3)
    assert other.fingerprint() != examples().fingerprint()


def test_only_equal_judgements_have_equal_fingerprints() -> None:
    def fingerprint(labels: list[list[int]], *probabilities: float) -> str:
        judgements = Judgements(Ragged.of(labels), np.array(probabilities, dtype=np.float32), 0.5)
        return examples().judged(judgements).fingerprint()

    usual = fingerprint([[0, 2], [], [1]], 0.9, 0.2, 0.7)
    assert fingerprint([[0, 2], [], [1]], 0.9, 0.2, 0.7) == usual
    others = {
        examples().fingerprint(),
        fingerprint([[0, 2], [], [1]], 0.9, 0.2, 0.6),
        fingerprint([[0, 1], [], [1]], 0.9, 0.2, 0.7),
        fingerprint([[0], [2], [1]], 0.9, 0.2, 0.7),  # of other documents
    }
    assert len(others - {usual}) == 4


@given(LENGTHS, SIZES, st.integers(1, 200), st.integers(0, 99))
def test_a_budget_of_tokens_bounds_every_batch_of_several_documents(
    lengths: np.ndarray, size: int, tokens: int, seed: int
) -> None:
    batches = shuffled(lengths, size, seed, 0, tokens=tokens)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) <= size
        assert len(batch) == 1 or len(batch) * int(lengths[batch].max()) <= tokens


def test_a_budget_of_tokens_wastes_no_room() -> None:
    lengths = np.random.default_rng(0).integers(1, 500, 4096)
    batches = shuffled(lengths, 64, 0, 0, tokens=4096)
    padded = [len(batch) * int(lengths[batch].max()) for batch in batches]
    assert sum(padded) < 1.03 * lengths.sum()
    assert np.median(padded) > 3500


@given(LENGTHS, SIZES, st.sampled_from([0, 5, 50]), st.integers(1, 4), st.integers(1, 3))
def test_epochs_know_how_many_batches_and_steps_they_have(
    lengths: np.ndarray, size: int, tokens: int, epochs: int, batches_a_step: int
) -> None:
    known = Epochs(lengths, size, tokens, 3, epochs)
    counts = [len(known.of(epoch)) for epoch in range(epochs)]
    assert [known.batches_before(epoch) for epoch in range(epochs + 1)] == [sum(counts[:n]) for n in range(epochs + 1)]
    steps = sum(len(range(0, count, batches_a_step)) for count in counts)
    assert known.steps_before(epochs, batches_a_step) == steps


def test_lengths_in_multiples_add_padding_alone_and_no_more_than_the_longest_document_has() -> None:
    long = Examples(Ragged.of([[5, 6, 7], [8], list(range(2, 12)), [9] * 6]), Ragged.of([[]] * 4), label_count=3)
    for rows, length in (([0, 1], 8), ([3], 8), ([0, 2], 10)):
        plain, padded = long.batch(np.array(rows)), long.in_multiples(8).batch(np.array(rows))
        assert plain.ids is not None
        assert padded.ids is not None
        shortest = plain.ids.shape[1]
        assert padded.ids.shape == (len(rows), length)
        assert padded.ids[:, :shortest].tolist() == plain.ids.tolist()
        assert not padded.ids[:, shortest:].any()
        assert plain.lengths is not None
        assert padded.lengths is not None
        assert padded.lengths.tolist() == plain.lengths.tolist()


def test_batches_of_long_documents_have_few_lengths_and_those_of_short_ones_little_padding() -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    short, long = np.array([1, 12, 40]), np.array([3, 100, 200])
    assert [multiple_for(cpu, lengths) for lengths in (short, long)] == [1, 8]
    assert [multiple_for(gpu, lengths) for lengths in (short, long)] == [8, 8]


def test_a_batch_takes_the_numbers_of_another() -> None:
    first, second = examples().batch(np.array([0, 1])), examples().batch(np.array([0, 2]))
    copy = first.like(torch.device("cpu"))
    assert copy.shape == second.shape != examples().batch(np.array([1, 2])).shape
    copy.fill(second)
    assert copy.ids is not None
    assert second.ids is not None
    assert copy.ids.tolist() == second.ids.tolist()
    assert copy.targets.tolist() == second.targets.tolist()
