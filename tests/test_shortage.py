"""Too little memory for a training: told in words, and nothing that was saved is lost."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hitin.errors import InputError
from hitin.settings import Run as Settings
from hitin.training.shortage import is_shortage, shortage_told
from hitin.training.steps import Steps
from tests.conftest import REPOSITORY, Run
from tests.training_harness import are_equal, classifier, documents, weights

TICKETS = REPOSITORY / "examples" / "tickets"
TOO_WIDE = 10**12  # petabytes, which no system lends


@pytest.mark.parametrize(
    "attempt", [lambda: torch.empty(2**58), lambda: torch.empty(2**62, 2**62), lambda: np.empty(2**58)]
)
def test_what_cannot_be_had_is_told_with_the_amount_or_the_reason(attempt: Any) -> None:
    with pytest.raises(InputError) as caught, shortage_told(Settings.of()):
        attempt()
    assert caught.value.kind == "no-memory"
    assert "not enough memory to train hitin with textrcnn" in caught.value.message
    assert any(words in caught.value.message for words in ("more were wanted", "overflowed"))


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has"), "20.00 GiB more were"),
        (
            RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 5000000000 bytes."),
            "5.0 GB more",
        ),
        (RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)"), "MPS backend out of memory"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate`"), "CUBLAS_STATUS_ALLOC"),
        (MemoryError(), "MemoryError"),
    ],
)
def test_every_way_to_say_it_is_understood(error: Exception, expected: str) -> None:
    with pytest.raises(InputError) as caught, shortage_told(Settings.of()):
        raise error
    assert expected in caught.value.message
    assert caught.value.__cause__ is error


def test_other_errors_stay_what_they_are() -> None:
    error = RuntimeError("shapes cannot be multiplied")
    assert not is_shortage(error)
    with pytest.raises(RuntimeError) as caught, shortage_told(Settings.of()):
        raise error
    assert caught.value is error


def test_remedies_are_options_that_the_run_has() -> None:
    def remedy(**options: Any) -> str:
        with pytest.raises(InputError) as caught, shortage_told(Settings.of(**options)):
            raise MemoryError
        return caught.value.remedy or ""

    assert "batch_size below 7 or max_length below 99 or width below 55," in remedy(
        method="hiagm-tp", batch_size=7, max_length=99, width=55
    )
    assert "width" not in remedy(method="flat")
    assert "batch_size below" not in remedy(method="flat", batch_size=1)
    assert "goes on" not in remedy()


def test_a_layer_that_fits_nowhere_ends_the_command_with_a_remedy_and_no_traceback(run: Run, tmp_path: Path) -> None:
    options = ["--method", "hiagm-tp", "--set", f"width={TOO_WIDE}", "--device", "cpu", "--epochs", 1]
    result = run("train", TICKETS / "taxonomy.tsv", TICKETS / "train.jsonl", "--out", tmp_path / "model", *options)
    assert result.exit_code == 2
    assert isinstance(result.exception, SystemExit)
    assert "error: there is not enough memory to train hiagm-tp with textrcnn" in result.stderr
    assert f"width below {TOO_WIDE}" in result.stderr
    assert "Traceback" not in result.output


def test_a_training_that_ran_out_of_memory_goes_on_where_it_was_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options: dict[str, Any] = {"checkpoint_seconds": 0}
    undisturbed = classifier(**options).fit(*documents(40), out=tmp_path / "undisturbed")
    take, steps = Steps.take, list[int]()

    def short_of_memory(self: Steps, step: int, *rest: Any) -> torch.Tensor:
        steps.append(step)
        if step == 7:
            torch.empty(2**58)
        return take(self, step, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Steps, "take", short_of_memory)
        with pytest.raises(InputError, match="the same command goes on with it"):
            classifier(**options).fit(*documents(40), out=tmp_path / "model")
        assert steps == [*range(8)]
    resumed = classifier(**options).fit(*documents(40), out=tmp_path / "model")
    assert are_equal(weights(resumed), weights(undisturbed))
