"""Several batches at once: the same results in the same order, and torch's threads as they were."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest
import torch

from hitin.network import logits_of
from hitin.neural import NeuralModel
from hitin.settings import Run
from hitin.side_by_side import side_by_side
from tests.training_harness import TAXONOMY, TINY, documents


@pytest.fixture(params=[1, 2, 8])
def cores(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_results_come_in_order_however_long_each_takes(cores: int) -> None:
    threads: set[int] = set()

    def slow(item: int) -> tuple[int, int]:
        threads.add(threading.get_ident())
        time.sleep(0.01 * (item % 3))
        return item * item, torch.get_num_threads()

    found = list(side_by_side(slow, range(20)))
    workers = min(cores, 4)
    assert found == [(item, (item * item, cores // workers)) for item in range(20)]
    assert (threading.get_ident() in threads) == (cores == 1)
    assert len(threads) <= workers


def test_torch_has_as_many_threads_as_before(cores: int) -> None:
    with closing(side_by_side(lambda item: item, range(20))) as found:
        next(found)
        assert torch.get_num_threads() == cores
    later: list[int] = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [torch.get_num_threads()] == [cores]


def test_few_items_have_all_cores_each(cores: int) -> None:
    assert list(side_by_side(lambda _: torch.get_num_threads(), range(1))) == [(0, cores)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process cannot be split in two here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_was_split_off_has_threads_of_its_own() -> None:
    code = """if True:
    import os, sys, torch
    from hitin.side_by_side import side_by_side
    torch.set_num_threads(2)
    wanted = [(item, -item) for item in range(20)]
    assert list(side_by_side(lambda item: -item, range(20))) == wanted
    child = os.fork()
    assert list(side_by_side(lambda item: -item, range(20))) == wanted
    if child:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, timeout=100)


def test_threads_do_not_add_up() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    used = {name for _ in range(5) for _, name in side_by_side(lambda _: threading.current_thread().name, range(20))}
    torch.set_num_threads(before)
    assert 1 <= len(used) <= 2


@pytest.mark.usefixtures("cores")
def test_what_goes_wrong_comes_in_its_place_and_nothing_goes_on() -> None:
    begun: list[int] = []

    def failing(item: int) -> int:
        begun.append(item)
        if item == 9:
            raise ValueError("the tenth")
        return item

    found = []
    with pytest.raises(ValueError, match="the tenth"):  # noqa: PT012
        for item, _ in side_by_side(failing, range(1000)):
            found.append(item)
    assert found == list(range(9))
    assert len(begun) < 30


def test_no_more_waits_than_is_worked_on(cores: int) -> None:
    begun: list[int] = []
    with closing(side_by_side(begun.append, range(1000))) as found:
        next(found)
        time.sleep(0.05)
        assert len(begun) <= 2 * min(cores, 4) + 1
    assert len(begun) <= 2 * min(cores, 4) + 1


@pytest.mark.usefixtures("cores")
def test_a_network_gives_the_same_logits_on_any_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = documents(60)[0]
    model = NeuralModel.build(TAXONOMY, Run.of(**TINY), texts)
    examples = model.prepared(texts)
    whole = logits_of(model.network, examples)
    monkeypatch.setattr("hitin.network.CPU_TOKENS_AT_ONCE", 12)
    told: list[int] = []
    found = logits_of(model.network, examples, told.append)
    assert found == pytest.approx(whole, abs=1e-5)
    assert len(told) > 10
    assert sum(told) == 60
