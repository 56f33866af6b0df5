"""Hierarchical text classification on your own taxonomy.

The names below are the public interface. They are imported when first used, so that `import hitin`
and `hitin --help` stay fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hitin.coding_tree import CodingTree as CodingTree
    from hitin.coding_tree import Graph as Graph
    from hitin.coding_tree import structural_entropy as structural_entropy
    from hitin.doctor import CheckUp as CheckUp
    from hitin.doctor import check as check
    from hitin.documents import Document as Document
    from hitin.documents import read_documents as read_documents
    from hitin.errors import HitinError as HitinError
    from hitin.errors import InputError as InputError
    from hitin.errors import InputWarning as InputWarning
    from hitin.errors import MissingExtraError as MissingExtraError
    from hitin.estimator import HierarchicalTextClassifier as HierarchicalTextClassifier
    from hitin.labels import LabelReader as LabelReader
    from hitin.labels import LabelSet as LabelSet
    from hitin.taxonomy import Taxonomy as Taxonomy

_HOMES = {
    "CheckUp": "hitin.doctor",
    "CodingTree": "hitin.coding_tree",
    "Document": "hitin.documents",
    "Graph": "hitin.coding_tree",
    "HierarchicalTextClassifier": "hitin.estimator",
    "HitinError": "hitin.errors",
    "InputError": "hitin.errors",
    "InputWarning": "hitin.errors",
    "LabelReader": "hitin.labels",
    "LabelSet": "hitin.labels",
    "MissingExtraError": "hitin.errors",
    "Taxonomy": "hitin.taxonomy",
    "check": "hitin.doctor",
    "read_documents": "hitin.documents",
    "structural_entropy": "hitin.coding_tree",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> object:
    if name == "coding_tree":
        return import_module("hitin.coding_tree")
    if name not in _HOMES:
        raise AttributeError(f"module 'hitin' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
