"""Methods at 1,000 labels: those that train on a plain machine, and those that say beforehand what they would take."""

import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hitin import HierarchicalTextClassifier
from hitin.chance import own_chance
from hitin.encoders.interface import Widths
from hitin.methods import METHODS, NeuralMethod
from hitin.neural import NeuralModel
from hitin.settings import Run
from hitin.watcher import Watcher
from measuring import peak_kilobytes  # in benchmarks/
from tests.conftest import REPOSITORY
from tests.networks import label_tree

LABELS = 1_000
MOST = 4 * 1024 * 1024  # kilobytes
WORDS = 2_000
QUADRATIC = [name for name in ("hiagm-tp", "hiagm-la", "htcinfomax", "himatch") if name in METHODS]
FRUGAL = ["hitin", "flat", "hgclr"]


def texts_and_labels(count: int = 48, length: int = 150) -> tuple[list[str], list[list[str]]]:
    """Words by chance, longer than the encoders read; a label each, most of them at the bottom."""
    chance = np.random.default_rng(0)
    texts = [" ".join(f"word{number}" for number in chance.integers(WORDS, size=length)) for _ in range(count)]
    return texts, [[str(label)] for label in chance.integers(LABELS, size=count)]


def small_transformer(folder: Path) -> str:
    """A random one of 6 layers of 384, such as run on plain machines, with a tokenizer of whole words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    transformers: Any = importlib.import_module("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"word{number}" for number in range(WORDS))]
    tokenizer: Any = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(folder / "tokenizer.json"))
    sizes = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    with own_chance(0):
        transformers.BertModel(transformers.BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder)
    return str(folder)


def options_of(name: str, folder: Path) -> dict[str, Any]:
    if name == "linear":
        return {}
    options: dict[str, Any] = {"epochs": 1, "batch_size": 16, "max_length": 128, "min_count": 1}
    if name == "hgclr":
        options |= {"encoder": small_transformer(folder)}
        del options["min_count"]
    return options


def train(name: str) -> None:
    """Some steps with the usual settings of a method; tell the most memory that was held."""
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"validation": 0, "policy": "raw"} | options_of(name, Path(folder))
        model = HierarchicalTextClassifier(label_tree(LABELS), method=name, device="cpu", **options)
        model.fit(*texts_and_labels())
    sys.stdout.write(json.dumps({"kilobytes": peak_kilobytes()}))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from the /proc of Linux")
@pytest.mark.parametrize("name", ["hitin", "flat", "linear", pytest.param("hgclr", marks=pytest.mark.slow)])
def test_a_thousand_labels_are_learnt_on_a_plain_machine_in_four_gigabytes(name: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY / "benchmarks")}
    command = [sys.executable, "-m", "tests.test_method_memory", name]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    assert json.loads(done.stdout)["kilobytes"] < MOST


class Refusing(Watcher):
    """Ends everything at the first warning."""

    def note(self, message: str) -> None:
        if message.startswith("warning:"):
            raise InterruptedError(message)


def neural(name: str) -> NeuralMethod:
    method = METHODS[name]
    assert isinstance(method, NeuralMethod)
    return method


@pytest.mark.parametrize("name", QUADRATIC)
def test_a_method_with_a_quadratic_layer_says_so_at_a_thousand_labels(name: str) -> None:
    method, widths = neural(name), Widths(300, 128, 300)
    told = method.module.warning(label_tree(LABELS), widths, method.settings())
    assert told is not None
    assert name in told
    assert "1,000 labels" in told
    assert "GB" in told
    assert "hitin" in told  # what to choose instead
    assert method.module.warning(label_tree(50), widths, method.settings()) is None


@pytest.mark.parametrize("name", QUADRATIC)
def test_the_warning_is_told_before_anything_is_built(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: object) -> None:
        raise AssertionError("it is being built")

    monkeypatch.setattr(neural(name).module, "__init__", build)
    run, texts = Run.of(method=name, min_count=1), texts_and_labels(4)[0]
    with pytest.raises(InterruptedError, match="1,000 labels"):
        NeuralModel.build(label_tree(LABELS), run, texts, Refusing())
    with pytest.raises(AssertionError, match="being built"):
        NeuralModel.build(label_tree(50), run, texts, Refusing())


@pytest.mark.parametrize("name", FRUGAL)
def test_methods_that_take_little_memory_are_silent(name: str) -> None:
    method = neural(name)
    assert method.module.warning(label_tree(LABELS), Widths.of(768), method.settings()) is None


if __name__ == "__main__":
    train(sys.argv[1])
