"""Settings of a run: defaults, presets, TOML files, options by name; what is wrong with them."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin import InputError
from hitin.decisions import DecisionSettings
from hitin.encoders.bag import BagSettings
from hitin.encoders.textrcnn import TextRCNNSettings
from hitin.encoders.tfidf import TfidfSettings
from hitin.encoders.transformer import TransformerSettings
from hitin.losses import LossSettings
from hitin.methods import METHODS, NeuralMethod
from hitin.methods.margins import LinearSettings
from hitin.option_values import parse_option
from hitin.options_together import idle_options
from hitin.settings import Run, TrainingSettings, presets, read_preset
from hitin.settings import options_of as options_of_run
from tests.conftest import REPOSITORY, Write

PARTS = st.floats(0, 0.99)
NEURAL = {name: method for name, method in METHODS.items() if isinstance(method, NeuralMethod)}
ENCODERS: dict[str, Any] = {"textrcnn": TextRCNNSettings, "bag": BagSettings, "transformer": TransformerSettings}
NUMBERS: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("warmup", "validation", "clip", "keep"), PARTS),
    **dict.fromkeys(("gumbel_temperature", "contrast_temperature", "cost"), st.floats(1e-300, 1e300)),
    "width": st.integers(1, 10**6).map(lambda half: 2 * half),  # a tree-lstm takes no other
    "pieces": st.sampled_from([(), (1, 1), (3, 5)]),
    "kernels": st.lists(st.integers(1, 9), min_size=1).map(tuple),
    "max_length": st.integers(3, 10**6),
    "seed": st.integers(0, 2**63 - 1),
    "encoder": st.text(st.characters(exclude_categories=["Cs"])).filter(lambda name: name not in (*ENCODERS, "tfidf")),
    "vectors": st.text(st.characters(exclude_categories=["Cs"])),
    "shard": st.just(False),  # which goes with few others
    "layer_decay": st.floats(0.1, 1),
    "clean": st.just(""),  # goes with whole words alone: tests/test_cleaning.py
}


def values(name: str, kind: Any) -> st.SearchStrategy[Any]:
    """Any value that an option may have."""
    if name in NUMBERS or "dropout" in name:
        return NUMBERS.get(name, PARTS)
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    return {bool: st.booleans(), int: st.integers(1, 10**9)}.get(kind, st.floats(0, 1e300))


def options_of(settings: Any) -> dict[str, st.SearchStrategy[Any]]:
    hints = get_type_hints(settings)
    return {field.name: values(field.name, hints[field.name]) for field in fields(settings)}


def some_of(known: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the options, each with a value; always the name of a transformer."""
    needed = {name: value for name, value in known.items() if name == "encoder"}
    return st.fixed_dictionaries(needed, optional={name: known[name] for name in known.keys() - needed.keys()})


@st.composite
def given_options(draw: st.DrawFn) -> dict[str, Any]:
    """Some options of some method and an encoder that shows what it looks at, by name."""
    if draw(st.booleans()):
        known = options_of(TfidfSettings) | options_of(LinearSettings) | {"seed": NUMBERS["seed"], "validation": PARTS}
        return {"method": "linear"} | draw(some_of(known))
    name = draw(st.sampled_from(sorted(NEURAL)))
    own = draw(some_of(options_of(NEURAL[name].settings)))
    seen = NEURAL[name].module.sight(NEURAL[name].settings(**own))
    encoder = draw(st.sampled_from([name for name, kind in ENCODERS.items() if seen in kind.SIGHTS]))
    found = draw(some_of(options_of(ENCODERS[encoder]))) | draw(some_of(options_of(TrainingSettings)))
    if found.get("tokens") == "subword":
        found.pop("vectors", None)  # of whole words: tests/test_encoders.py
    loss = draw(st.sampled_from(["bce", "focal", "asymmetric"]))
    if loss == "asymmetric":
        found |= {"clip": draw(PARTS), "gamma_negative": draw(st.floats(0, 9))}
    given = {"method": name, "encoder": encoder, "loss": loss, **own, **found}
    idle = idle_options(Run.unchecked(given))
    return {option: value for option, value in given.items() if option not in idle}


FROZEN = {"encoder": "bert-base-uncased", "freeze": True}
POOLER = {"encoder": "bert-base-uncased", "text_pooling": "pooler"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tree_seed": 3}, "tree_seed is for random coding trees: that of tree=optimal is always the same"),
        ({"tree_seed": 3, "tree": "taxonomy"}, "that of tree=taxonomy is always the same"),
        ({"sync_norm": True}, "sync_norm is for the method hitin with norm=batch"),
        ({"sync_norm": True, "method": "flat"}, "sync_norm is for the method hitin with norm=batch"),
        ({"logit_dropout": 0.1, "method": "himatch"}, "logit_dropout is for the form of the published program"),
        ({"layer_decay": 0.9}, "layer_decay goes with a transformer as the text encoder, not with textrcnn"),
        ({**FROZEN, "layer_decay": 0.9}, "layer_decay is for a text encoder that is trained, and freeze=true"),
        ({**FROZEN, "encoder_learning_rate": 1e-4}, "encoder_learning_rate is for a text encoder that is trained"),
        ({**POOLER, "method": "hiagm-la"}, "the method hiagm-la looks at tokens, not at what the pooler makes of them"),
        ({**POOLER, "method": "htcinfomax"}, "the method htcinfomax looks at tokens"),
    ],
)
def test_options_that_mean_nothing_beside_the_others_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        Run.of(**options)
    assert "Leave it out" in (caught.value.remedy or "")


@pytest.mark.parametrize(
    "options",
    [
        {"tree_seed": 3, "tree": "random"},
        {"sync_norm": True, "norm": "batch"},
        {"sync_norm": True, "encoder": "bag"},
        {"logit_dropout": 0.1, "method": "himatch", "fidelity": "upstream"},
        {**FROZEN, "encoder_learning_rate": 5e-5},
        {**FROZEN, "encoder_learning_rate": 0.0},
        {**POOLER, "method": "hiagm-la", "fidelity": "upstream"},
        {**POOLER, "method": "hitin"},
    ],
)
def test_options_that_mean_something_beside_the_others_are_taken(options: dict[str, Any]) -> None:
    assert options_of_run(Run.of(**options)) >= set(options)


@pytest.mark.parametrize("method", ["hiagm-tp", "hiagm-la", "htcinfomax", "himatch"])
def test_methods_that_need_all_labels_are_not_given_some_of_them(method: str) -> None:
    with pytest.raises(InputError, match=f"the method {method} needs all labels, not 3 negatives"):
        Run.of(method=method, negatives=3)
    assert Run.of(method="flat", negatives=3).loss.negatives == 3
    with pytest.raises(InputError, match="needs all labels"):
        Run.of(method="flat", negatives=3, fidelity="upstream")


@pytest.mark.parametrize("name", ["cls", "self", "options"])
def test_an_option_of_any_name_is_refused_as_unknown(name: str) -> None:
    with pytest.raises(InputError, match=f"there is no option '{name}'"):
        Run.of(**dict[str, Any]({name: 1}))


@given(given_options())
def test_a_run_comes_back_from_toml(options: dict[str, Any]) -> None:
    run = Run.of(**options)
    text = run.to_toml()
    sections = tomllib.loads(text)
    is_linear = options["method"] == "linear"
    assert list(sections) == ["encoder", "method", *([] if is_linear else ["loss"]), "training", "decisions"]
    assert Run.of(**{name: value for section in sections.values() for name, value in section.items()}) == run
    for name, value in options.items():
        (found,) = [section[name] for section in sections.values() if name in section]
        assert found == (list(value) if isinstance(value, tuple) else value)


def test_a_file_is_read_back_whatever_signs_it_holds(tmp_path: Path) -> None:
    run = Run.of(vectors="C:\\ö 😀\n\t\x7f\x01\"'.txt", learning_rate=1e-5, kernels=[2, 5])
    path = tmp_path / "run.toml"
    path.write_text(run.to_toml(), encoding="utf-8")
    assert Run.of(preset=path) == run
    with pytest.raises(InputError, match="vectors is"):
        Run.of(vectors="half a character \ud800")


def test_names_of_options_are_unique_across_sections() -> None:
    kinds: list[tuple[Any, ...]] = [*product(ENCODERS.values(), (method.settings for method in NEURAL.values()))]
    for kind in [*kinds, (TfidfSettings, LinearSettings)]:
        names = [
            field.name for settings in (*kind, LossSettings, TrainingSettings, DecisionSettings)
            for field in fields(settings)
        ]  # fmt: skip
        assert len(names) == len(set(names))


def test_every_preset_is_read_and_packed_into_the_wheel() -> None:
    from hatchling.builders.wheel import WheelBuilder

    packed = {file.relative_path for file in WheelBuilder(str(REPOSITORY)).recurse_included_files()}
    assert presets() == sorted(path.stem for path in (REPOSITORY / "src/hitin/presets").glob("*.toml"))
    assert presets()
    for name in presets():
        assert isinstance(Run.of(preset=name), Run)
        assert read_preset(name)
        assert f"src/hitin/presets/{name}.toml" in packed


PAPER_PRESETS = [name for name in presets() if name.endswith(("-glove", "-bert"))]


@pytest.mark.parametrize("name", PAPER_PRESETS)
def test_the_presets_of_the_paper_train_as_it_says(name: str) -> None:
    data, encoder = name.split("-")
    run = Run.of(preset=name)
    options = {option: value for section in run.to_dict().values() for option, value in section.items()}
    rate, batch = (2e-5, 12) if encoder == "bert" else (1e-4, 16 if data == "rcv1" else 64)
    width = 768 if encoder == "bert" else 512 if data == "rcv1" else 300
    said = {
        "height": 2,
        "tree": "paper",
        "width": width,
        "pooling": "mean" if encoder == "bert" else "sum",
        "norm": "batch",
        "regularisation": 1e-6,
        "consistency": 0,
        "linear_teacher": 0,
        "smoothing": 0,
        "optimiser": "adam",
        "learning_rate": rate,
        "batch_size": batch,
        "weight_decay": 0,
        "schedule": "constant",
        "warmup": 0,
        "gradient_clip": 0,
    }
    assert {option: options[option] for option in said} == said
    assert options["encoder_learning_rate"] in (0, rate)  # 0: that of the rest
    if encoder == "glove":
        assert [options[option] for option in ("hidden", "layers", "filters")] == [128, 2, 100]


def test_the_settings_of_published_programs_in_the_documents_mean_what_they_say() -> None:
    page = (REPOSITORY / "docs" / "methods.md").read_text().split("## As published")[1].split("\n## ")[0]
    common, with_textrcnn, with_bert = re.split(r"\nWith (?:TextRCNN|BERT):", page)
    textrcnn, rows = with_textrcnn.split("| method | |")
    general = _said(common) | _said(textrcnn) | {"encoder": "textrcnn"}
    found = [Run.of(method=method, **_fitting(method, general | said)) for method, said in _published_rows(rows)]
    general = _said(common) | {"encoder": "some/bert"}
    found += [Run.of(method=method, **_fitting(method, general | said)) for method, said in _published_rows(with_bert)]
    assert [run.method_name for run in found] == [
        *("flat", "hiagm-tp", "htcinfomax", "himatch"),
        *("flat", "hiagm-tp", "himatch"),
    ]
    for run in found:
        assert (run.loss.consistency, run.training.prior_start, run.decisions.policy) == (0, False, "raw")
    assert all(run.training.gradient_clip == 0 for run in found[:5])
    assert {run.training.epochs for run in found[:4]} == {150, 250}


def _published_rows(table: str) -> Iterator[tuple[str, dict[str, object]]]:
    """The methods of a table whose row says all of it."""
    for row in re.findall(r"^\| (.*?) \| (.*) \|$", table, re.MULTILINE):
        name, said = re.findall(r"`([\w-]+)`", row[0]), _said(row[1])
        if len(name) == 1 and said and "the same" not in row[1] and "--preset" not in row[1]:
            yield name[0], said


def _said(text: str) -> dict[str, object]:
    """The options in backticks of a passage."""
    options = " ".join(re.findall(r"`([^`]*=[^`]*)`", text, re.DOTALL)).split()
    return dict(parse_option(option) for option in options)


def _fitting(method: str, said: dict[str, object]) -> dict[str, Any]:
    """Without what means nothing to the method, as in the table of a comparison."""
    known = options_of_run(Run.of(method=method, encoder=str(said["encoder"])))
    return {name: value for name, value in said.items() if name in known}


def test_options_stand_above_a_preset_and_that_above_the_defaults(write: Write) -> None:
    file = write("run.toml", "[training]\nepochs = 7\nseed = 3\n[method]\nheight = 4\n")
    run = Run.of(preset=file, epochs=9, seed=None, method=None)
    assert (run.training.epochs, run.training.seed, run.method.height) == (9, 3, 4)
    assert run.training.batch_size == TrainingSettings().batch_size


def test_what_suits_an_encoder_stands_below_what_is_given() -> None:
    assert Run.of(encoder="some/bert").training.encoder_learning_rate == 5e-5
    assert Run.of(encoder="some/bert", encoder_learning_rate=1e-4).training.encoder_learning_rate == 1e-4
    assert Run.of().training.encoder_learning_rate == 0
    assert Run.of(encoder=None).encoder_name == "textrcnn"
    assert Run.of(encoder="some/bert").encoder_name == "some/bert"


@pytest.mark.parametrize(
    ("options", "message", "remedy"),
    [
        ({"hight": 3}, "no option 'hight'", "Did you mean height?"),
        ({"method": "hitn"}, "no method 'hitn'", f"The methods are {', '.join(METHODS)}."),
        ({"method": "linear", "encoder": "textrcnn"}, "goes with the text encoder tfidf, not with 'textrcnn'", "Leave"),
        ({"method": "linear", "encoder": "some/bert"}, "goes with the text encoder tfidf", "choose another method"),
        ({"method": "hitin", "encoder": "tfidf"}, "tfidf does not go with the method hitin", "linear"),
        ({"encoder": "textrcn"}, "no text encoder 'textrcn'", "Did you mean textrcnn?"),
        ({"encoder": "TextRCNN"}, "no text encoder 'TextRCNN'", "Did you mean textrcnn?"),
        ({"encoder": "bags"}, "no text encoder 'bags'", "Did you mean bag?"),
        ({"encoder": "tfidf"}, "tfidf does not go with the method hitin", "linear"),
        ({"method": "linear", "epochs": 3}, "no option 'epochs' for tfidf and linear", "linear has validation, seed"),
        ({"method": "linear", "loss": "bce"}, "no option 'loss' for tfidf and linear", "[loss] for networks"),
        ({"method": "linear", "height": 3}, "no option 'height' for tfidf and linear", "the method hitin"),
        (
            {"method": "linear", "max_length": 9},
            "no option 'max_length'",
            "It goes with textrcnn, bag and transformers",
        ),
        ({"method": "linear", "width": 9}, "no option 'width'", "option of the methods hitin, hiagm-tp and himatch."),
        ({"method": "linear", "ngram": 3}, "no option 'ngram'", "Did you mean ngrams?"),
        ({"method": "linear", "ngrams": 0}, "ngrams is 0", "at least 1"),
        ({"method": "linear", "min_df": 0}, "min_df is 0", "at least 1"),
        ({"method": "linear", "max_features": -1}, "max_features is -1", "at least 0"),
        ({"method": "linear", "cost": 0}, "cost is 0", "above 0"),
        ({"method": "linear", "prune": -0.1}, "prune is -0.1", "at least 0"),
        ({"min_df": 3}, "no option 'min_df' for textrcnn and hitin", "It goes with tfidf as"),
        ({"height": "two"}, "height is 'two'", "a whole number"),
        ({"height": 2.5}, "height is 2.5", "a whole number"),
        ({"height": True}, "height is True", "a whole number"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast'", "a number"),
        ({"learning_rate": 10**400}, "learning_rate is", "a number"),
        ({"learning_rate": -1}, "learning_rate is -1", "at least 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan", "at least 0"),
        ({"prior_start": 1}, "prior_start is 1", "true or false"),
        ({"pooling": "median"}, "pooling cannot be 'median'", "sum, mean, max, root"),
        ({"pooling": ["sum"]}, "pooling cannot be", "sum, mean, max, root"),
        ({"kernels": 3}, "kernels is 3", "a list of whole numbers"),
        ({"kernels": ["a"]}, "kernels is 'a'", "a whole number"),
        ({"kernels": "234"}, "kernels is '234'", "a list of whole numbers"),
        ({"vectors": 5}, "vectors is 5", "text"),
        ({"epochs": 0}, "epochs is 0", "at least 1"),
        ({"warmup": 1.0}, "warmup is 1.0", "from 0 to below 1"),
        ({"layer_decay": 0.0}, "layer_decay is 0.0", "above 0"),
        ({"layer_decay": 0.9}, "layer_decay goes with a transformer", "encoder_learning_rate"),
        ({"encoder": "bag", "shard": True}, "shard goes with a transformer as the text encoder, not with bag", "Leave"),
        ({"tree": "random", "tree_seed": -1}, "tree_seed is -1", "from 0 to 4294967295"),
        ({"tree_seed": 2**32}, "tree_seed is 4294967296", "from 0 to 4294967295"),
        ({"height": 0}, "the height of the coding tree begins at 1", ""),
        ({"seed": 2**64}, "seed is", "2^63"),
        ({"method": "flat", "height": 3}, "no option 'height' for textrcnn and flat", "the method hitin"),
        ({"freeze": True}, "no option 'freeze'", "It goes with transformers as the text encoder."),
        ({"encoder": "some/bert", "hidden": 3}, "no option 'hidden'", "textrcnn"),
        ({"zzz": 1}, "no option 'zzz'", "The options are"),
    ],
)
def test_a_wrong_option_is_told_with_what_is_right(options: dict[str, Any], message: str, remedy: str) -> None:
    with pytest.raises(InputError) as caught:
        Run.of(**options)
    assert caught.value.kind == "bad-option"
    assert message in caught.value.message
    assert remedy in (caught.value.remedy or "")
    assert caught.value.file is None


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("[train]\nepochs = 3", "no section [train]", "[training]"),
        ("epochs = 3", "'epochs' stands outside of the sections", "[training]"),
        ("[training]\nheight = 3", "height stands in [training]", "[method]"),
        ("[encoder]\nmethod = 'flat'", "method stands in [encoder]", "[method]"),
        ("[training]\nepochs = 'x'", "epochs is 'x'", "a whole number"),
        ("[method]\nhieght = 1", "no option 'hieght'", "height"),
        ("[training\n", "not TOML", ""),
        ("[training]\nepochs = 1\nepochs = 2", "not TOML", ""),
    ],
)
def test_a_wrong_file_is_told_with_its_name(text: str, message: str, remedy: str, write: Write) -> None:
    file = write("run.toml", text)
    with pytest.raises(InputError) as caught:
        Run.of(preset=file, seed=1)
    assert message in str(caught.value)
    assert remedy in (caught.value.remedy or "")
    assert caught.value.file == str(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[training]\nepochs = 3", "no option 'epochs' for tfidf and linear"),
        ("[loss]\nloss = 'focal'", "no option 'loss' for tfidf and linear"),
        ("[encoder]\nencoder = 'textrcnn'", "goes with the text encoder tfidf"),
    ],
)
def test_a_file_of_another_method_is_told_with_its_name(text: str, message: str, write: Write) -> None:
    file = write("run.toml", text)
    assert Run.of(preset=file).method_name == "hitin"
    with pytest.raises(InputError) as caught:
        Run.of(preset=file, method="linear", seed=1)
    assert message in caught.value.message
    assert caught.value.file == str(file)
    assert caught.value.remedy


def test_a_choice_that_is_wrong_by_itself_is_not_the_files_fault(write: Write) -> None:
    file = write("run.toml", "[training]\nseed = 3")
    with pytest.raises(InputError) as caught:
        Run.of(preset=file, method="linear", encoder="textrcnn")
    assert caught.value.file is None


def test_a_linear_run_says_only_what_means_something_to_it() -> None:
    run = Run.of(method="linear", cost=2, seed=7)
    assert (run.method_name, run.encoder_name, run.method.cost, run.training.seed) == ("linear", "tfidf", 2.0, 7)
    assert run == Run.of(method="linear", encoder="tfidf", cost=2.0, seed=7)
    sections = tomllib.loads(run.to_toml())
    assert sections["training"] == {"validation": 0.1, "seed": 7}
    assert "loss" not in sections


def test_a_missing_or_unreadable_file_is_told_with_the_presets(tmp_path: Path, write: Write) -> None:
    for path in ("nothing.toml", tmp_path, write("bytes.toml", b"\xff\xfe\x00")):
        with pytest.raises(InputError) as caught:
            Run.of(preset=path)
        assert all(name in str(caught.value) for name in presets())


def test_numbers_are_forgiven_their_spelling() -> None:
    run = Run.of(height=3.0, learning_rate=1, epochs=np.int64(4), kernels=np.array([2, 3]), pooling=np.str_("max"))
    assert (run.method.height, run.training.learning_rate, run.training.epochs) == (3, 1.0, 4)
    assert isinstance(run.training.learning_rate, float)
    assert isinstance(run.method.height, int)
    assert run.encoder.kernels == (2, 3)  # type: ignore[union-attr]
    assert Run.of(vectors=Path("a") / "b").encoder.vectors == str(Path("a") / "b")  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("height=3", ("height", 3)), ("learning_rate = 1e-3", ("learning_rate", 1e-3)),
        ("freeze=true", ("freeze", True)), ("kernels=[2, 3]", ("kernels", [2, 3])),
        ("encoder=some/bert", ("encoder", "some/bert")),
        ('vectors="a=b"', ("vectors", "a=b")), ("vectors=a=b", ("vectors", "a=b")), ("tokens=", ("tokens", "")),
    ],
)  # fmt: skip
def test_an_option_is_read_from_a_command_line(text: str, option: tuple[str, object]) -> None:
    assert parse_option(text) == option


def test_a_word_that_sets_nothing_is_told() -> None:
    with pytest.raises(InputError, match="sets nothing"):
        parse_option("height")


def test_a_preset_folder_that_is_missing_is_no_preset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("hitin.settings.resources.files", lambda _: tmp_path)
    assert presets() == []


def test_settings_say_what_they_mean() -> None:
    run = Run.of(method="flat", seed=4)
    assert run.method_name == "flat"
    assert run.with_training(seed=5).training.seed == 5
    assert run.training.seed == 4
