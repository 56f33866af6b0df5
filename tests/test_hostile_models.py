"""Model folders that mean harm: each is refused with one error that says what is wrong, in a moment, in little memory.

Checksums are made right again after every change, so that they stop none of them.
"""

import json
import os
import pickle
import re
import resource
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from hitin import HierarchicalTextClassifier, InputError
from hitin.export.folder import GRAPH
from hitin.methods.linear import VOCABULARY
from hitin.model_folder import DECISIONS, EXPORT, HISTORY, MANIFEST, RUN, TAXONOMY, WEIGHTS
from hitin.neural import ENCODER, TOKENIZER
from hitin.tensor_files import save_tensors
from tests.model_folders import Spoil, save_bag, save_bert, save_linear, save_words, spoilt

SECONDS = 5.0
MEGABYTES = 400
"""What refusing a folder may take at most, on a busy machine."""


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder of each kind."""
    root = tmp_path_factory.mktemp("models")
    for name, save in (("words", save_words), ("bert", save_bert), ("linear", save_linear), ("bag", save_bag)):
        save(root / name)
    shutil.copytree(root / "bag" / "onnx", root / "onnx")
    return {name: root / name for name in ("words", "bert", "linear", "bag", "onnx")}


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """Who tried to reach whom."""
    tried: list[object] = []

    def refuse(*address: object) -> None:
        tried.append(address)
        raise OSError("no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    yield tried
    assert not tried


def refused(folder: Path) -> InputError:
    """The one error of loading it, with the file, a remedy and one line about it; soon, and in little memory."""
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError) as caught:
        HierarchicalTextClassifier.load(folder, device="cpu")
    error = caught.value
    assert time.perf_counter() - started < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1024 * MEGABYTES
    assert error.file is not None
    assert Path(error.file).is_relative_to(folder)
    assert error.remedy
    assert len(error.message) < 400
    assert "\n" not in error.message
    return error


# Weights.


def header(entries: Any, body: bytes = b"", *, length: int | None = None) -> Spoil:
    """A safetensors file with this header, which claims to be of a length."""
    told = entries if isinstance(entries, bytes) else json.dumps(entries).encode()
    whole = struct.pack("<Q", len(told) if length is None else length) + told + body
    return lambda folder: (folder / WEIGHTS).write_bytes(whole)


def entry(shape: list[int], start: int, end: int, dtype: str = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


HEADERS: dict[str, Spoil] = {
    "empty": lambda folder: (folder / WEIGHTS).write_bytes(b""),
    "no JSON": header(b"weights"),
    "no object": header([1, 2]),
    "length 2^63": header({}, length=2**63),
    "length 2^64 - 1": header({}, length=2**64 - 1),
    "longer than the file": header({}, length=90_000_000),
    "deep": header(b'{"a":' * 100_000),
    "deep lists": header(b"[" * 1_000_000),
    "offsets outside": header({"a": entry([2], 0, 800)}, bytes(8)),
    "offsets backwards": header({"a": entry([2], 8, 0)}, bytes(8)),
    "a gap": header({"a": entry([2], 8, 16)}, bytes(16)),
    "overlapping": header({"a": entry([2], 0, 8), "b": entry([2], 4, 12)}, bytes(12)),
    "the same place": header({"a": entry([2], 0, 8), "b": entry([2], 0, 8)}, bytes(8)),
    "unknown type": header({"a": entry([2], 0, 8, "PICKLE")}, bytes(8)),
    "product overflows": header({"a": entry([2**32, 2**32, 4], 0, 8)}, bytes(8)),
    "product is 0 modulo 2^64": header({"a": entry([2**62, 4], 0, 0)}),
    "10^12 numbers": header({"a": entry([10**12], 0, 8)}, bytes(8)),
    "10^12 rows of nothing": header({"a": entry([10**12, 0], 0, 0)}),
    "negative": header({"a": entry([-1], 0, 8)}, bytes(8)),
    "100,000 dimensions": header({"a": entry([1] * 100_000, 0, 4)}, bytes(4)),
    "a million tensors": header({f"t{number}": entry([0], 0, 0) for number in range(1_000_000)}),
    "a header of 50 MB": header({"__metadata__": {"checksum": "a" * 50_000_000}}),
    "a name twice": header(b'{"a":%b,"a":%b}' % ((json.dumps(entry([2], 0, 8)).encode(),) * 2), bytes(8)),
    "metadata of numbers": header({"__metadata__": {"checksum": 1}}),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_bad_headers_of_weights_are_refused(kind: str, originals: dict[str, Path], tmp_path: Path) -> None:
    error = refused(spoilt(originals["words"], tmp_path, HEADERS[kind]))
    assert error.kind == "damaged-model"
    assert Path(str(error.file)).name == WEIGHTS


def test_a_list_of_more_tensors_than_any_model_has_is_not_believed(originals: dict[str, Path], tmp_path: Path) -> None:
    many = header({f"t{number}": entry([0], 0, 0) for number in range(25_000)})  # a short header: 1.4 MB
    assert "its header is no list of tensors" in refused(spoilt(originals["words"], tmp_path, many)).message


class Trap:
    """Leaves a file behind where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER, TAXONOMY, RUN, HISTORY, DECISIONS, MANIFEST])
def test_pickles_under_other_names_are_refused_and_not_run(
    name: str, originals: dict[str, Path], tmp_path: Path
) -> None:
    trap = Trap(tmp_path / "sprung")

    def plain(folder: Path) -> None:
        (folder / name).write_bytes(pickle.dumps(trap))

    def zipped(folder: Path) -> None:
        torch.save(trap, folder / name)

    for number, spoil in enumerate((plain, zipped)):
        (tmp_path / str(number)).mkdir()
        refused(spoilt(originals["words"], tmp_path / str(number), spoil))
    assert not trap.path.exists()


def tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Spoil:
    """Weights that hitin itself would have written, but for this."""

    def spoil(folder: Path) -> None:
        found = load_file(folder / WEIGHTS)
        change(found)
        save_tensors(folder / WEIGHTS, found)

    return spoil


def first_float(found: dict[str, torch.Tensor]) -> torch.Tensor:
    return next(tensor for _, tensor in sorted(found.items()) if tensor.is_floating_point())


def no_number(value: float) -> Spoil:
    return tensors(lambda found: first_float(found).view(-1)[0].fill_(value))


WRONG_TENSORS: dict[str, Spoil] = {
    "NaN": no_number(float("nan")),
    "infinite": no_number(float("inf")),
    "larger": tensors(lambda found: found.update({"method.more": torch.zeros(1000, 1000)})),
    "fewer": tensors(lambda found: found.pop(min(found))),
    "none": tensors(dict.clear),
    "no dimensions": tensors(lambda found: found.update({name: torch.tensor(1.0) for name in found})),
    "twice as long": tensors(
        lambda found: found.update({name: torch.cat([each, each]) for name, each in found.items() if each.ndim})
    ),
}


@pytest.mark.parametrize("kind", WRONG_TENSORS)
@pytest.mark.parametrize("model", ["words", "bert", "linear", "bag"])
def test_tensors_that_are_not_the_models_are_refused(
    kind: str, model: str, originals: dict[str, Path], tmp_path: Path
) -> None:
    refused(spoilt(originals[model], tmp_path, WRONG_TENSORS[kind]))


# The list of files.


def listing(change: Callable[[dict[str, Any]], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        found = json.loads((folder / MANIFEST).read_text())
        change(found["files"])
        (folder / MANIFEST).write_text(json.dumps(found))

    return spoil


def naming(name: str) -> Spoil:
    return listing(lambda files: files.update({name: "0"}))


def test_a_list_that_names_files_elsewhere_is_refused(originals: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    for name in ("../../outside", "/etc/passwd", str(tmp_path / "outside"), "./run.toml", "..", "", "run.toml\0"):
        error = refused(spoilt(originals["words"], tmp_path, naming(name)))
        assert "secret" not in str(error)
        shutil.rmtree(tmp_path / "hostile")


def test_a_list_that_names_a_file_twice_is_refused(originals: dict[str, Path], tmp_path: Path) -> None:
    def twice(folder: Path) -> None:
        text = (folder / MANIFEST).read_text()
        (folder / MANIFEST).write_text(text.replace('"files": {', '"files": {"run.toml": "0",', 1))

    copy = tmp_path / "hostile"
    shutil.copytree(originals["words"], copy)
    twice(copy)
    assert "twice" in refused(copy).message


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER, TAXONOMY, RUN, HISTORY, DECISIONS, MANIFEST])
def test_links_out_of_the_folder_are_refused(name: str, originals: dict[str, Path], tmp_path: Path) -> None:
    """Even to what would be right there."""
    outside = tmp_path / "outside"
    shutil.copy(originals["words"] / name, outside)

    def link(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(outside)

    assert "link" in refused(spoilt(originals["words"], tmp_path, link)).message


def test_links_within_the_folder_and_to_it_are_followed(originals: dict[str, Path], tmp_path: Path) -> None:
    def link(folder: Path) -> None:
        (folder / WEIGHTS).rename(folder / "weights-1")
        (folder / WEIGHTS).symlink_to("weights-1")

    copy = spoilt(originals["words"], tmp_path, link)
    (tmp_path / "latest").symlink_to(copy)
    HierarchicalTextClassifier.load(tmp_path / "latest", device="cpu")


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER, TAXONOMY, RUN, MANIFEST])
def test_what_is_no_file_is_refused_without_waiting(name: str, originals: dict[str, Path], tmp_path: Path) -> None:
    def pipe(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    refused(spoilt(originals["words"], tmp_path, pipe))


# Texts.


def text(name: str, content: str | bytes | Callable[[str], str]) -> Spoil:
    def spoil(folder: Path) -> None:
        made = content((folder / name).read_text()) if callable(content) else content
        (folder / name).write_bytes(made.encode() if isinstance(made, str) else made)

    return spoil


def gzipped(size: int) -> bytes:
    """So many spaces, a thousand times smaller."""
    import gzip

    return gzip.compress(b" " * size)


BOMBS: dict[str, str | bytes] = {
    "deep lists": "[" * 200_000,
    "deep objects": '{"a":' * 200_000,
    "a huge number": '{"labels": 1' + "0" * 1_000_000 + "}",
    "not UTF-8": b"\xff\xfe\x00\xd8",
    "NUL": "\0" * 1000,
    "compressed": gzipped(200_000_000),
    "nothing": "",
}


@pytest.mark.parametrize("kind", BOMBS)
@pytest.mark.parametrize("name", [TOKENIZER, TAXONOMY, RUN, HISTORY, DECISIONS, MANIFEST])
def test_bombs_in_text_files_are_refused(kind: str, name: str, originals: dict[str, Path], tmp_path: Path) -> None:
    error = refused(spoilt(originals["words"], tmp_path, text(name, BOMBS[kind])))
    if name != RUN or kind != "nothing":  # which is a run as it is usual, of which these are not the weights
        assert Path(str(error.file)).name == name


@pytest.mark.parametrize("name", [TOKENIZER, TAXONOMY, RUN, HISTORY, DECISIONS, MANIFEST])
def test_text_files_of_a_terabyte_are_not_read(name: str, originals: dict[str, Path], tmp_path: Path) -> None:
    """Full of holes: they take no room on the disk."""
    copy = tmp_path / "hostile"
    shutil.copytree(originals["words"], copy)
    try:
        os.truncate(copy / name, 2**40)
    except OSError:
        pytest.skip("files on this disk cannot be so large")
    assert "MiB" in refused(copy).message


TAXONOMIES = {
    "a cycle": '{"labels": [{"label": "A", "parents": ["B"]}, {"label": "B", "parents": ["A"]}]}',
    "itself above": '{"labels": [{"label": "A", "parents": ["A"]}]}',
    "no labels": '{"labels": []}',
    "another": '{"labels": [{"label": "A", "parents": []}]}',
    "names that are none": '{"labels": [{"label": {"a": 1}, "parents": []}]}',
    "a number for parents": '{"labels": [{"label": "A", "parents": 1e400}]}',
}


@pytest.mark.parametrize("kind", TAXONOMIES)
@pytest.mark.parametrize("model", ["words", "onnx"])
def test_taxonomies_that_are_none_are_refused(
    kind: str, model: str, originals: dict[str, Path], tmp_path: Path
) -> None:
    refused(spoilt(originals[model], tmp_path, text(TAXONOMY, TAXONOMIES[kind])))


def setting(old: str, new: str) -> Spoil:
    def change(content: str) -> str:
        assert old in content, content
        return content.replace(old, new)

    return text(RUN, change)


RUNS: dict[str, tuple[str, Spoil]] = {
    "a model of the hub": ("words", setting('encoder = "textrcnn"', 'encoder = "evil/model"')),
    "wide": ("words", setting("hidden = 4", "hidden = 30000")),
    "too wide for any machine": ("words", setting("hidden = 4", "hidden = 4000000000")),
    "many layers": ("words", setting("layers = 1", "layers = 10000000")),
    "many filters": ("words", setting("filters = 4", "filters = 300000000")),
    "a wide bag": ("bag", setting("embedding = 8", "embedding = 100000000")),
    "a high tree": ("words", setting("height = 2", "height = 1000000000")),
    "a huge number": ("words", setting("hidden = 4", "hidden = 1" + "0" * 5000)),
    "another section": ("words", text(RUN, lambda content: content + "\n[code]\nrun = 'os.system'\n")),
}


@pytest.mark.parametrize("kind", RUNS)
def test_settings_that_ask_for_more_than_there_is_are_refused(
    kind: str, originals: dict[str, Path], tmp_path: Path, no_network: list[object]
) -> None:
    model, spoil = RUNS[kind]
    refused(spoilt(originals[model], tmp_path, spoil))
    assert not no_network


# Transformers.


def config(**values: Any) -> Spoil:
    return text(ENCODER, lambda content: json.dumps(json.loads(content) | values))


CONFIGS: dict[str, Spoil] = {
    "wide": config(hidden_size=64 * 1024, intermediate_size=64 * 1024),
    "many layers": config(num_hidden_layers=10**9),
    "many tokens": config(vocab_size=10**10),
    "long": config(max_position_embeddings=10**10),
    "unknown kind": config(model_type="evil"),
    "no kind": config(model_type=None),
    "no text": config(model_type="vit"),
    "no object": text(ENCODER, "[]"),
    "deep": text(ENCODER, "[" * 100_000),
    "code, of an unknown kind": config(model_type="evil", auto_map={"AutoModel": "evil/model--code.Model"}),
    "pretrained parts": config(
        model_type="detr", vocab_size=5, backbone="microsoft/resnet-50", use_pretrained_backbone=True
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CONFIGS)
def test_configurations_that_are_none_are_refused(
    kind: str, originals: dict[str, Path], tmp_path: Path, no_network: list[object]
) -> None:
    refused(spoilt(originals["bert"], tmp_path, CONFIGS[kind]))
    assert not no_network


@pytest.mark.parametrize(
    "values",
    [
        {"auto_map": {"AutoModel": "evil/model--code.Model", "AutoConfig": "code.Config"}},
        {"attn_implementation": "evil/kernel", "_attn_implementation": "evil/kernel"},
        {"_name_or_path": "evil/model", "quantization_config": {"quant_method": "evil"}},
    ],
)
def test_code_that_a_configuration_names_is_not_looked_at(
    values: dict[str, Any], originals: dict[str, Path], tmp_path: Path, no_network: list[object]
) -> None:
    loaded = HierarchicalTextClassifier.load(spoilt(originals["bert"], tmp_path, config(**values)), device="cpu")
    same = HierarchicalTextClassifier.load(originals["bert"], device="cpu")
    assert (loaded.predict_proba(["a bark"]) == same.predict_proba(["a bark"])).all()
    assert not no_network


def test_the_encoder_that_a_run_names_is_not_fetched(
    originals: dict[str, Path], tmp_path: Path, no_network: list[object]
) -> None:
    def rename(folder: Path) -> None:
        lines = (folder / RUN).read_text().splitlines()
        changed = ['encoder = "evil/model"' if line.startswith("encoder = ") else line for line in lines]
        assert changed != lines
        (folder / RUN).write_text("\n".join(changed))

    HierarchicalTextClassifier.load(spoilt(originals["bert"], tmp_path, rename), device="cpu").predict(["a bark"])
    assert not no_network


# Tokenizers.


def tokenizer(**parts: Any) -> Spoil:
    return text(TOKENIZER, lambda content: json.dumps(json.loads(content) | parts))


def split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Removed", "invert": False}


def replace(content: str, times: int) -> dict[str, Any]:
    step = {"type": "Replace", "pattern": {"String": "a"}, "content": content}
    return {"type": "Sequence", "normalizers": [step] * times}


def added(number: int) -> dict[str, Any]:
    marks = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": "new", "special": True, **marks}


def template(number: int) -> dict[str, Any]:
    piece = {"SpecialToken": {"id": "[NEW]", "type_id": 0}}
    special = {"[NEW]": {"id": "[NEW]", "ids": [number], "tokens": ["[NEW]"]}}
    single = [piece, {"Sequence": {"id": "A", "type_id": 0}}]
    return {"type": "TemplateProcessing", "single": single, "pair": single, "special_tokens": special}


TOKENIZERS: dict[str, Spoil] = {
    "a pattern that never ends": tokenizer(pre_tokenizer=split("(a+)+$")),
    "a pattern that is none": tokenizer(pre_tokenizer=split("((")),
    "texts that grow": tokenizer(normalizer=replace("a" * 1000, 3)),
    "texts that grow by steps": tokenizer(normalizer=replace("aa", 40)),
    "numbers far above": tokenizer(post_processor=template(10**9)),
    "no vocabulary": tokenizer(model={"type": "WordLevel", "vocab": {}, "unk_token": "[UNK]"}),
    "a large number in the vocabulary": tokenizer(
        model={"type": "WordLevel", "vocab": {"[UNK]": 1, "a": 2**31}, "unk_token": "[UNK]"}
    ),
    "unknown kind": tokenizer(model={"type": "Pickle"}),
    "no tokenizer": text(TOKENIZER, "{}"),
}


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_tokenizers_that_do_harm_are_refused(kind: str, originals: dict[str, Path], tmp_path: Path) -> None:
    refused(spoilt(originals["words"], tmp_path, TOKENIZERS[kind]))


@pytest.mark.parametrize("kind", [kind for kind in TOKENIZERS if kind != "a pattern that never ends"])
def test_tokenizers_of_transformers_that_do_harm_are_refused(
    kind: str, originals: dict[str, Path], tmp_path: Path
) -> None:
    refused(spoilt(originals["bert"], tmp_path, TOKENIZERS[kind]))


def test_claims_of_padding_are_not_believed(originals: dict[str, Path], tmp_path: Path) -> None:
    padding = {"strategy": {"Fixed": 10**9}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0}
    spoil = tokenizer(padding=padding | {"pad_type_id": 0, "pad_token": "[PAD]"})
    loaded = HierarchicalTextClassifier.load(spoilt(originals["words"], tmp_path, spoil), device="cpu")
    started = time.perf_counter()
    loaded.predict(["bark"])
    assert time.perf_counter() - started < SECONDS


def test_a_pattern_that_takes_too_long_is_told_where_it_is_used(
    originals: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The library gives up after some millions of steps, with something that is no Exception."""
    copy = spoilt(originals["bert"], tmp_path, tokenizer(pre_tokenizer=split("(a+)+$")))
    loaded = HierarchicalTextClassifier.load(copy, device="cpu")
    with pytest.raises(InputError, match="tokenizer"):
        loaded.predict(["a" * 60 + "!"])
    capfd.readouterr()  # what the library says of it


def bag(**parts: Any) -> Spoil:
    def change(content: str) -> str:
        found = json.loads(content)
        return json.dumps(found | {name: part(found[name]) for name, part in parts.items()})

    return text(TOKENIZER, change)


@pytest.mark.parametrize(
    "spoil",
    [
        bag(bags=lambda shape: shape | {"runs": 10**9}),
        bag(bags=lambda shape: shape | {"pieces": [1, 10**9]}),
        bag(bags=lambda shape: shape | {"pieces": [-5, 5]}),
        bag(weights=lambda weights: [float("nan"), *weights[1:]]),
        bag(weights=lambda weights: weights[1:]),
        bag(terms=lambda terms: [terms[0]] * len(terms)),
    ],
)
@pytest.mark.parametrize("model", ["bag", "onnx"])
def test_bags_that_do_harm_are_refused(model: str, spoil: Spoil, originals: dict[str, Path], tmp_path: Path) -> None:
    refused(spoilt(originals[model], tmp_path, spoil))


def test_words_of_a_linear_model_that_are_not_those_of_its_weights_are_refused(
    originals: dict[str, Path], tmp_path: Path
) -> None:
    refused(spoilt(originals["linear"], tmp_path, text(VOCABULARY, lambda content: content + "more\n")))


# Exports.


def graph_with(location: str) -> Spoil:
    """A graph with its weights in another file."""
    import onnx

    def spoil(folder: Path) -> None:
        model = onnx.load(folder / GRAPH)
        large = max(model.graph.initializer, key=lambda each: len(each.raw_data))
        size = len(large.raw_data)
        large.ClearField("raw_data")
        large.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", location), ("offset", "0"), ("length", str(size))):
            large.external_data.add(key=key, value=value)
        (folder / GRAPH).write_bytes(model.SerializeToString())

    return spoil


def test_graphs_that_read_files_elsewhere_are_refused(originals: dict[str, Path], tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(bytes(10_000_000))
    for location in ("../outside", str(outside), "/etc/passwd", "linked", "within/outside"):

        def spoil(folder: Path, location: str = location) -> None:
            (folder / "linked").symlink_to(outside)
            (folder / "within").symlink_to(tmp_path)
            graph_with(location)(folder)

        error = refused(spoilt(originals["onnx"], tmp_path, spoil))
        assert Path(str(error.file)).name == GRAPH
        shutil.rmtree(tmp_path / "hostile")


@pytest.mark.parametrize("content", [b"", b"\x08\x07", b"\xff" * 1000, pickle.dumps([1]), b"PK\x03\x04" + bytes(99)])
def test_graphs_that_are_none_are_refused(content: bytes, originals: dict[str, Path], tmp_path: Path) -> None:
    refused(spoilt(originals["onnx"], tmp_path, text(GRAPH, content)))


def test_a_graph_of_weights_that_are_no_numbers_is_refused(originals: dict[str, Path], tmp_path: Path) -> None:
    def spoil(folder: Path) -> None:
        import onnx

        model = onnx.load(folder / GRAPH)
        for weight in model.graph.initializer:
            if weight.data_type == onnx.TensorProto.FLOAT and weight.raw_data:
                weight.raw_data = struct.pack("<f", float("nan")) * (len(weight.raw_data) // 4)
        (folder / GRAPH).write_bytes(model.SerializeToString())

    refused(spoilt(originals["onnx"], tmp_path, spoil))


@pytest.mark.parametrize(
    "listed",
    [
        {"../../etc/passwd": "0"},
        {"/etc/passwd": "0"},
        {"model.onnx.data": "0"},
        {"code.py": "0"},
    ],
)
def test_a_list_of_an_export_that_names_other_files_is_refused(
    listed: dict[str, str], originals: dict[str, Path], tmp_path: Path
) -> None:
    def spoil(folder: Path) -> None:
        found = json.loads((folder / EXPORT).read_text())
        found["files"] |= listed
        (folder / EXPORT).write_text(json.dumps(found))

    refused(spoilt(originals["onnx"], tmp_path, spoil))


# On the command line.


@pytest.mark.parametrize(("model", "spoil"), [("words", HEADERS["length 2^63"]), ("onnx", graph_with("/etc/passwd"))])
def test_the_service_tells_one_error_and_ends(
    model: str, spoil: Spoil, originals: dict[str, Path], tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "hitin", "serve", "--port", "0", str(spoilt(originals[model], tmp_path, spoil))]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, input="")
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert len(re.findall("^error:", done.stderr, re.MULTILINE)) == 1, done.stderr
    assert "hostile" in done.stderr
