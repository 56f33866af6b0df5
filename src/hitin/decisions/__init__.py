"""From probabilities to labels."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hitin.errors import InputError, shown
from hitin.taxonomy import Taxonomy

Policy = Literal["raw", "consistent"]
Decided = NDArray[np.bool_]


@dataclass(frozen=True)
class Decisions:
    """How labels are chosen: those above the threshold (`raw`), or those and all their ancestors (`consistent`)."""

    policy: Policy = "consistent"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if self.policy not in get_args(Policy):
            raise InputError(
                f"there is no policy {shown(self.policy)}",
                kind="bad-option",
                remedy=f"The policies are {', '.join(get_args(Policy))}.",
            )
        if (
            isinstance(self.threshold, bool)
            or not isinstance(self.threshold, int | float)
            or not 0 <= self.threshold <= 1
        ):
            raise InputError(
                f"the threshold is {shown(self.threshold)}", kind="bad-option", remedy="It is from 0 to 1."
            )

    def decide(self, probabilities: NDArray[np.floating[Any]], taxonomy: Taxonomy) -> Decided:
        """(documents, |Y|): which labels each document gets."""
        chosen = np.asarray(probabilities > self.threshold)
        return with_ancestors(chosen, taxonomy) if self.policy == "consistent" else chosen

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, file: str) -> "Decisions":
        """What `to_json` wrote, perhaps changed by hand; nothing in it may be left unread."""
        try:
            return cls(**json.loads(text))
        except InputError as error:
            raise InputError(error.message, kind="damaged-model", file=file, remedy=error.remedy) from error
        except (ValueError, TypeError, RecursionError) as error:
            raise InputError(
                f"the decisions are damaged, or of a newer hitin ({error})",
                kind="damaged-model",
                file=file,
                remedy="Copy the model again; or delete the file, and the policy and threshold are the usual ones.",
            ) from error


def with_ancestors(chosen: Decided, taxonomy: Taxonomy) -> Decided:
    """The chosen labels and everything above them."""
    closed = chosen.copy()
    levels = taxonomy.levels[taxonomy.edges[:, 1]]
    for level in range(taxonomy.depth, 1, -1):  # from the bottom: a parent may have become one by its own child
        edges = taxonomy.edges[levels == level]  # sorted by parent
        parents, starts = np.unique(edges[:, 0], return_index=True)
        closed[:, parents] |= np.logical_or.reduceat(closed[:, edges[:, 1]], starts, axis=1)
    return closed


def probabilities_of(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """The logistic function, without overflow and as exact for small probabilities as for large ones."""
    small = np.exp(-np.abs(logits))
    return np.asarray(np.where(logits >= 0, 1, small) / (1 + small), dtype=np.float32)
