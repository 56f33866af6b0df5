"""The card of an exported model: what the files are, and how to use them with hitin and without."""

from collections.abc import Iterator

from hitin import __version__
from hitin.decisions import Decisions
from hitin.errors import counted
from hitin.settings import Run
from hitin.taxonomy import Taxonomy


def export_card(taxonomy: Taxonomy, run: Run, decisions: Decisions, *, int8: bool) -> str:
    """A page of Markdown."""
    return "\n".join((*_about(taxonomy, run, int8), *_use(), *_files(), *_decisions(decisions), ""))


def _about(taxonomy: Taxonomy, run: Run, int8: bool) -> Iterator[str]:
    yield f"# A classifier of texts into {counted(len(taxonomy), 'label')}, for ONNX"
    yield ""
    weights = "weights of 8 bits in its text encoder" if int8 else "weights of 32 bits"
    yield f"The method {run.method_name} with {weights}, made by hitin {__version__} from a model that it trained."
    yield ""


def _use() -> Iterator[str]:
    yield from ("## Use", "", "`MODEL` is this folder.", "")
    yield from ("```sh", 'echo "a text" | hitin predict MODEL', "hitin evaluate MODEL test.jsonl", "```", "")
    yield "Without hitin and torch: `examples/onnx/predict.py` of hitin's sources, with onnxruntime and tokenizers."
    yield ""


def _files() -> Iterator[str]:
    yield from ("## Files", "")
    yield "* `model.onnx`: from `ids` (documents, tokens) and `lengths` (documents), to `logits` (documents, labels)."
    yield "* `tokenizer.json`: from a text to the numbers of its tokens. In your program, set its"
    yield "  `encode_special_tokens`, so that a text which says `[PAD]` means these letters."
    yield "* `labels.json`: the labels in the order of the logits, their parents, and how they are chosen, in numbers."
    yield "* `taxonomy.json`, `decisions.json`, `run.toml`: what hitin reads."
    yield "* `export.json`: the checksums of the files, and which model they were made from."
    yield ""


def _decisions(decisions: Decisions) -> Iterator[str]:
    yield from ("## Decisions", "")
    yield f"How labels are chosen: {decisions.describe()}. `decisions.json` may be changed, and counts for hitin;"
    yield "`labels.json` is for other programs: after a change, export again."
