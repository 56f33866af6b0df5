"""Why a label was given: the words that speak for it and against it."""

from hitin.explain.explaining import Explanation, explain
from hitin.explain.words import Word

__all__ = ["Explanation", "Word", "explain"]
