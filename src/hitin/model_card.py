"""The card of a model: what it is, what it was trained on, how well it does, how to use it."""

from typing import TYPE_CHECKING

from hitin import __version__

if TYPE_CHECKING:
    from hitin.estimator import HierarchicalTextClassifier


def model_card(classifier: "HierarchicalTextClassifier") -> str:
    """A page of Markdown."""
    return f"# A classifier of texts\n\nMade by hitin {__version__}.\n"
