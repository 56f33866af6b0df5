"""Small models, documents that can be learnt, and a second process that trains and is killed."""

import importlib
import json
import math
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from hitin import HierarchicalTextClassifier, Taxonomy
from hitin.batches import Batch
from hitin.chance import own_chance
from hitin.encoders.interface import Encoded, TextEncoder
from hitin.methods import METHODS
from hitin.methods.interface import Seen
from hitin.model_folder import TRAINING, WEIGHTS
from hitin.network import Network
from hitin.neural import NeuralModel
from hitin.option_values import types_of
from hitin.settings import Run
from hitin.tensor_files import load_tensors
from hitin.training.checkpoint import CHECKPOINT
from hitin.training.log import LOG
from hitin.watcher import Watcher
from tests.conftest import REPOSITORY

torch.set_num_threads(1)  # two machines of one core each are what CI has

TAXONOMY = Taxonomy.from_nested({"Animal": ["Cat", "Dog", "Fish"], "Plant": ["Moss", "Tree"], "Stone": []})
_WORDS = {
    "Cat": "purr whisker mew", "Dog": "bark leash bone", "Fish": "fin gill swim",
    "Moss": "damp green soft", "Tree": "bark trunk leaf", "Stone": "grey hard cold",
}  # fmt: skip

TINY: dict[str, Any] = {
    "embedding": 8,
    "hidden": 4,
    "layers": 1,
    "filters": 4,
    "kernels": (2, 3),
    "width": 8,
    "min_count": 1,
    "batch_size": 8,
    "epochs": 3,
    "learning_rate": 0.02,
    "validation": 0,
}
STEADY: dict[str, Any] = {"embedding_dropout": 0, "token_dropout": 0, "leaf_dropout": 0, "dropout": 0, "norm": "layer"}
"""Without dropout and batch statistics, whatever a batch is made of."""


def documents(count: int, seed: int = 0) -> tuple[list[str], list[list[str]]]:
    """Texts of words that tell the label, and some that do not."""
    chance = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(count):
        label = str(chance.choice(list(_WORDS)))
        words = [*chance.choice(_WORDS[label].split(), 3), *chance.choice(["the", "a", "is", "and"], 3)]
        texts.append(" ".join(chance.permutation(words)[: int(chance.integers(3, 7))]))
        labels.append([label])
    return texts, labels


def classifier(**options: Any) -> HierarchicalTextClassifier:
    settings: Any = METHODS[options.get("method", "hitin")].settings
    known = types_of(settings)
    tiny = {name: value for name, value in TINY.items() if name != "width" or name in known}
    return HierarchicalTextClassifier(TAXONOMY, device="cpu", **tiny | options)


def fitted(count: int = 40, val: int = 0, **options: Any) -> HierarchicalTextClassifier:
    return classifier(**options).fit(*documents(count), documents(val, seed=1) if val else None)


def model(run: Run) -> NeuralModel:
    return NeuralModel.build(TAXONOMY, run, documents(40)[0])


def weights(trained: HierarchicalTextClassifier) -> dict[str, Tensor]:
    return dict(network_of(trained).state_dict())


def network_of(trained: HierarchicalTextClassifier) -> Network:
    assert isinstance(trained.model_, NeuralModel)
    return trained.model_.network


def as_seen(encoder: TextEncoder, batch: Batch, text: Encoded, logits: Tensor, step: int = 0) -> Seen:
    """What a method sees of a batch where the loss is the usual one."""
    classification = partial(functional.binary_cross_entropy_with_logits, target=batch.targets)
    return Seen(encoder, batch, text, logits, step, classification)


def saved_weights(folder: Path) -> dict[str, Tensor]:
    return load_tensors(folder / WEIGHTS)[0]


def are_equal(left: dict[str, Tensor], right: dict[str, Tensor]) -> bool:
    """Whether all weights are the same, to the bit."""
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def log_lines(folder: Path, *, timed: bool = False) -> list[dict[str, Any]]:
    """The lines of the log; how long it took is left out unless wanted."""
    lines = [json.loads(line) for line in (folder / LOG).read_text().splitlines()]
    return lines if timed else [{name: line[name] for name in line if name != "seconds"} for line in lines]


class Interrupter(Watcher):
    """Presses Ctrl-C after so many steps."""

    def __init__(self, step: int) -> None:
        self.left = step
        self.documents = 0
        self.notes: list[str] = []
        self.begun: tuple[int, ...] = ()

    def note(self, message: str) -> None:
        self.notes.append(message)

    def begin(self, *numbers: int) -> None:
        self.begun = numbers

    def step(self, documents: int, loss: float) -> None:
        assert documents
        assert math.isfinite(loss)
        self.documents += documents
        self.left -= 1
        if not self.left:
            signal.raise_signal(signal.SIGINT)


def interrupted(folder: Path, step: int = 7, **options: Any) -> Path:
    with pytest.raises(KeyboardInterrupt):
        classifier(**options).fit(*documents(40), documents(20, seed=1), out=folder, watcher=Interrupter(step))
    return folder / TRAINING / CHECKPOINT


def leftovers(folder: Path) -> list[Path]:
    """Files that were begun and not finished."""
    return [path for path in folder.rglob(".*") if path.is_file()]


def tiny_bert(folder: Path, dropout: float = 0.1) -> str:
    """A folder with a random BERT of two small layers and its tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    transformers: Any = importlib.import_module("transformers")
    words = sorted({word for words in _WORDS.values() for word in words.split()})
    vocabulary = {word: number for number, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words])}
    tokenizer: Any = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    chances = {"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": dropout}
    with own_chance(0):
        config = transformers.BertConfig(vocab_size=len(vocabulary), max_position_embeddings=32, **sizes, **chances)
        transformers.BertModel(config).save_pretrained(folder)
    return str(folder)


BERT: dict[str, Any] = {"max_length": 16, "width": 8, "batch_size": 8, "epochs": 2, "validation": 0}
"""Options that suit `tiny_bert`."""


# The second process.

Moment = Callable[[Path], bool]
"""Whether it is time to end the process that trains in a folder."""


class Nursery:
    """A process that has imported everything and forks another for each training, which may then be killed."""

    def __enter__(self) -> "Nursery":
        environment = os.environ | {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        command = [sys.executable, "-W", "error", "-m", "tests.training_harness"]
        self._process = subprocess.Popen(
            command, cwd=REPOSITORY, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._read() == "ready"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def train(self, folder: Path, moment: Moment | None = None, number: int = signal.SIGKILL, **options: Any) -> int:
        """Train in a folder, and send a signal when the moment has come; the exit code."""
        self._write(json.dumps([str(folder), options]))
        pid = int(self._read())
        while moment is not None and not self._has_ended():
            if moment(folder):
                os.kill(pid, number)  # which may have ended meanwhile, but is not forgotten until it is told so
                break
            time.sleep(0.001)
        code = int(self._read())
        self._write("forget it")
        return code

    def train_and_kill(self, folder: Path, moments: Iterable[Moment], **options: Any) -> int:
        """Train, kill at each moment and begin again, to the end; the number of kills that came in time."""
        codes = [self.train(folder, moment, **options) for moment in moments]
        assert set(codes) <= {0, -signal.SIGKILL}, codes
        assert self.train(folder, **options) == 0
        return codes.count(-signal.SIGKILL)

    def _has_ended(self) -> bool:
        assert self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


def after(seconds: float) -> Moment:
    """So long after the first look."""
    end: list[float] = []

    def is_over(_: Path) -> bool:
        end[:] = end or [time.monotonic() + seconds]
        return time.monotonic() > end[0]

    return is_over


def when_logged(lines: int) -> Moment:
    def is_there(folder: Path) -> bool:
        path = folder / TRAINING / LOG
        return path.is_file() and path.read_bytes().count(b"\n") >= lines

    return is_there


def when_there(name: str) -> Moment:
    return lambda folder: (folder / name).exists()


def train_into(folder: str, options: dict[str, Any]) -> None:
    count, val = options.pop("count", 40), options.pop("val", 0)
    given = documents(val, seed=1) if val else None
    classifier(**{"checkpoint_seconds": 0} | options).fit(*documents(count), given, out=folder)


def serve() -> None:
    fitted(8)  # what is imported now need not be by each training
    say("ready")
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            os._exit(_outcome(*json.loads(line)))
        say(pid)
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        say(ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status)
        sys.stdin.readline()
        os.waitpid(pid, 0)


def say(word: object) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def _outcome(folder: str, options: dict[str, Any]) -> int:
    try:
        train_into(folder, options)
    except KeyboardInterrupt:
        return 130
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def train_together(
    folder: Path,
    moment: Moment | None = None,
    processes: int = 2,
    module: str = "tests.training_harness",
    **options: Any,
) -> set[int]:
    """Train in several processes at once, as `accelerate launch` starts them; kill all when the moment has come.

    They run a module, with the folder and the options.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", module, str(folder), json.dumps(options)]
    shared = os.environ | {"OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    shared |= {"WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes)}
    started = [
        subprocess.Popen(command, cwd=REPOSITORY, env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)})
        for rank in range(processes)
    ]
    while moment is not None and any(process.poll() is None for process in started):
        if moment(folder):
            for process in started:
                process.kill()
            break
        time.sleep(0.01)
    return {process.wait(timeout=200) for process in started}


if __name__ == "__main__":
    if sys.argv[1:]:
        train_into(sys.argv[1], json.loads(sys.argv[2]))
    else:
        serve()
