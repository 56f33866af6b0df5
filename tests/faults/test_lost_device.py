"""A GPU that is not there, or no longer: it is told, and the training goes on without it.

With a GPU and little else: `pytest -c /dev/null --rootdir . --noconftest tests/faults/test_lost_device.py`.
"""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from hitin.model_folder import TRAINING
from hitin.training.loop import CHECKPOINT
from tests.conftest import REPOSITORY
from tests.faults.commands import check_same, environment, run, train_words, whole, write_data
from tests.training_harness import STEADY, log_lines, saved_weights, when_logged

NO_GPU = {"CUDA_VISIBLE_DEVICES": ""}


@pytest.mark.slow
def test_a_training_on_a_device_that_is_gone_is_refused_and_goes_on_where_there_is_one(tmp_path: Path) -> None:
    write_data(tmp_path)
    folder = tmp_path / "model"
    words = train_words(tmp_path, folder)
    assert run(words, folder, when_logged(2), variables=NO_GPU).was_killed
    before = (folder / TRAINING / CHECKPOINT).read_bytes()
    refused = run([*words, "--device", "cuda"], variables=NO_GPU)
    assert "there is no device 'cuda' here" in refused.told()
    assert "Choose cpu" in refused.told()
    assert (folder / TRAINING / CHECKPOINT).read_bytes() == before
    assert run(words, variables=NO_GPU).code == 0
    check_same(folder, whole(tmp_path / "whole", val=20))


_TRAIN = """
import json, sys
from tests.training_harness import classifier, documents
folder, device, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
classifier(**options).set_params(device=device).fit(*documents(40), documents(20, seed=1), out=folder)
"""


def train_on(device: str, folder: Path, moment: int | None = None, **variables: str) -> int:
    """Train in a process of its own on a device, in 32-bit numbers; interrupted after so many lines of the log."""
    options = STEADY | {"precision": "fp32", "checkpoint_seconds": 0, "epochs": 6, "learning_rate": 0.002}
    command = [sys.executable, "-c", _TRAIN, str(folder), device, json.dumps(options)]
    process = subprocess.Popen(command, cwd=REPOSITORY, env=environment(variables))
    is_time = when_logged(moment) if moment else lambda _: False
    while process.poll() is None:
        if is_time(folder):
            process.send_signal(signal.SIGINT)
            break
        try:
            process.wait(0.002)
        except subprocess.TimeoutExpired:
            continue
    return process.wait(200)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")
def test_a_training_begun_on_a_gpu_goes_on_without_it(tmp_path: Path) -> None:
    """The same documents in the same order: the weights differ by rounding only."""
    assert train_on("cuda", tmp_path / "whole") == 0
    assert train_on("cuda", tmp_path / "lost", 3) != 0
    assert (tmp_path / "lost" / TRAINING / CHECKPOINT).is_file()
    assert train_on("cuda", tmp_path / "lost", CUDA_VISIBLE_DEVICES="") != 0
    assert train_on("cpu", tmp_path / "lost", CUDA_VISIBLE_DEVICES="") == 0
    left, right = saved_weights(tmp_path / "lost"), saved_weights(tmp_path / "whole")
    assert left.keys() == right.keys()
    for name in left:
        torch.testing.assert_close(left[name], right[name], atol=1e-3, rtol=0)
    told = [[line["batch"] for line in log_lines(tmp_path / name / TRAINING)] for name in ("lost", "whole")]
    assert told[0] == told[1]
