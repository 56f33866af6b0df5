"""The card of a model: what it is, how to use it, what it was trained on, how well it does, what it cannot do."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import torch

from hitin import __version__
from hitin.decisions import Decisions
from hitin.encoders.tfidf import TfidfSettings
from hitin.encoders.transformer import TransformerSettings
from hitin.errors import counted, printable
from hitin.methods import METHODS, NeuralMethod
from hitin.settings import Run
from hitin.taxonomy import Taxonomy
from hitin.training.progress import SCORES_OF_EPOCHS, History

if TYPE_CHECKING:
    from hitin.estimator import HierarchicalTextClassifier

_EXAMPLES = 3  # labels of a level


def model_card(classifier: "HierarchicalTextClassifier") -> str:
    """A page of Markdown with the metadata that model hubs read. It depends on the model and the versions alone."""
    model = classifier.model_
    history: History | None = getattr(classifier, "history_", None)
    sizes: dict[str, int] | None = getattr(classifier, "sizes_", None)
    sections = (
        _metadata(model.run),
        _about(model.taxonomy, model.run),
        _use(),
        _training(model.run, history, sizes),
        _decisions(classifier.decisions_),
        _limits(model.run, classifier.decisions_),
        _settings(model.run),
    )
    return "\n".join(line for section in sections for line in (*section, ""))


def _metadata(run: Run) -> Iterator[str]:
    yield from ("---", "library_name: hitin", "pipeline_tag: text-classification", "tags:")
    yield from (f"- {tag}" for tag in ("hierarchical-text-classification", "multi-label-classification"))
    yield f"- {run.method_name}"
    if re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", run.encoder_name) and isinstance(run.encoder, TransformerSettings):
        yield f"base_model: {run.encoder_name}"  # the name of a model of the hub, not a folder
    yield from ("metrics:", "- f1", "---")


def _about(taxonomy: Taxonomy, run: Run) -> Iterator[str]:
    shape = "a tree" if taxonomy.is_tree else "some of them under several parents"
    yield f"# A classifier of texts into {counted(len(taxonomy), 'label')}"
    yield ""
    most = _most_tokens(run)
    labels = f"{counted(len(taxonomy), 'label')} on {counted(taxonomy.depth, 'level')}"
    yield (
        f"Gives a text its labels in a taxonomy: {labels}, {shape}. A text "
        f"may have none, one or several. Method {_code(run.method_name)}, text encoder {_code(run.encoder_name)}, "
        + ("the whole of a text." if most is None else f"at most {most:,} tokens of a text.")
    )
    yield from ("", "| level | labels | for example |", "| ---: | ---: | --- |")
    start = 0
    for level, size in enumerate(taxonomy.level_sizes, start=1):
        names = [_cell(name) for name in taxonomy.labels[start : start + min(size, _EXAMPLES)]]
        yield f"| {level} | {size:,} | {', '.join(names)}{', ...' if size > _EXAMPLES else ''} |"
        start += size


def _use() -> Iterator[str]:
    yield from ("## Use", "", "`MODEL` is this folder.", "")
    yield from ("```sh", 'echo "a text" | hitin predict MODEL', "hitin evaluate MODEL test.jsonl", "```", "")
    yield from (
        "```python",
        "from hitin import HierarchicalTextClassifier",
        "",
        'classifier = HierarchicalTextClassifier.load("MODEL")',
        'print(classifier.predict(["a text"]))',
        "```",
    )


def _training(run: Run, history: "History | None", sizes: dict[str, int] | None) -> Iterator[str]:
    yield from ("## Training", "")
    if sizes is None or history is None:
        yield "Not known: nothing was saved about it."
        return
    held = sizes.get("validation", 0)
    if not isinstance(METHODS[run.method_name], NeuralMethod):
        yield from _at_once(history, sizes.get("train", 0), held)
        return
    epochs = len(history.epochs)
    yield f"Trained on {counted(sizes.get('train', 0), 'document')} for {counted(epochs, 'epoch')}." + (
        "" if held else " There were no validation documents: the last epoch was kept, and its scores are not known."
    )
    if held:
        yield from _validation(history, held)


def _validation(history: "History", held: int) -> Iterator[str]:
    yield (
        f"Epoch {history.chosen['epoch']:.0f} was the best on {counted(held, 'document')} held for validation. As it "
        "was chosen by these scores, expect a little less on other documents:"
    )
    yield from _scores(history.chosen)
    yield from ("", "Each label above a probability of 0.5 counts as given. All epochs are in `training/log.jsonl`.")


def _at_once(history: "History", given: int, held: int) -> Iterator[str]:
    """Of a method without epochs, whose model is not chosen by its scores."""
    yield f"Trained on {counted(given, 'document')}." + (
        f" On {counted(held, 'document')} held for validation, with each label of a margin above 0 given:"
        if held
        else " There were no validation documents: its scores are not known."
    )
    if held:
        yield from _scores(history.chosen)


def _scores(chosen: Mapping[str, float]) -> Iterator[str]:
    found = [name for name in SCORES_OF_EPOCHS if name in chosen]
    yield ""
    yield f"| {' | '.join(SCORES_OF_EPOCHS[name] for name in found)} |"
    yield f"| {' | '.join('---:' for _ in found)} |"
    yield f"| {' | '.join(f'{chosen[name]:.4f}' for name in found)} |"


_POLICIES = {
    "raw": "Each label is given that is more probable than its threshold, whether or not those above it are.",
    "consistent": "Given are the labels above their threshold that are likeliest together, each with all above it.",
    "top-down": "Each label is given that is more probable than its threshold and whose parents are given.",
    "single-path": "One path is given: the one with the highest scores.",
    "top-k": "The most probable labels are given, each with all above it.",
}


def _decisions(decisions: Decisions) -> Iterator[str]:
    yield from ("## Decisions", "")
    yield f"{_POLICIES[decisions.policy]} In short: {decisions.describe()}."
    if decisions.tuned:
        yield "This was chosen on validation documents."
    yield "All of it is in `decisions.json`; `--policy` and `--threshold` change it for one command."


def _limits(run: Run, decisions: Decisions) -> Iterator[str]:
    yield from ("## Intended use and limits", "")
    yield "* For texts like those it was trained on: the same language, subject and kind of writing."
    yield "* It knows these labels only. A text that belongs to none of them may still be given some."
    yield "* Labels with few training documents, and the lower levels, are less reliable than the scores over all."
    if decisions.calibration.kind == "none":
        yield "* Probabilities are as the model has them. Check on your own documents before you rely on a threshold."
    else:
        yield "* Probabilities are right for documents like those held for validation. Of others they may not be."
    most = _most_tokens(run)
    if most is not None:
        yield f"* What comes after the first {most:,} tokens of a text is not read."
    yield "* Whatever is unfair or wrong in the training documents, it has learnt."


def _most_tokens(run: Run) -> int | None:
    """How much of a text is read; `None`: all."""
    return None if isinstance(run.encoder, TfidfSettings) else run.encoder.max_length


def _settings(run: Run) -> Iterator[str]:
    yield from ("## Settings", "", "`run.toml`:", "", "```toml", run.to_toml().rstrip(), "```", "")
    yield f"Made by hitin {__version__} with torch {torch.__version__}."


def _cell(name: str) -> str:
    """A label's name in a table of Markdown, as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&])", r"\\\1", printable(name, most=60))


def _code(name: str) -> str:
    """A name as code, whatever is in it."""
    return f"`{name}`" if "`" not in name else json.dumps(name)
