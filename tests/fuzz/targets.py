"""The table of what is fuzzed."""

from pathlib import Path

from tests.fuzz import folders, readers
from tests.fuzz.target import Target

CORPUS = Path(__file__).parent / "corpus"

TARGETS: dict[str, Target] = {
    "taxonomy": Target(readers.taxonomy),
    "documents": Target(readers.documents),
    "vectors": Target(readers.vectors),
    "settings": Target(readers.settings),
    "decisions": Target(readers.decisions),
    "model": Target(folders.models),
    "transformer": Target(folders.transformers),
    "export": Target(folders.exports),
    "checkpoint": Target(folders.checkpoints),
    "requests": Target(readers.requests, readers.request_refusals),
}
