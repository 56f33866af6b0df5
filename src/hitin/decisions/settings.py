"""How decisions are to be chosen at the end of training, or by `hitin tune`."""

from dataclasses import dataclass
from typing import Literal

from hitin.calibration import Kind
from hitin.decisions.goals import Goal, Metric
from hitin.decisions.policies import Policy

Auto = Literal["auto"]
Thresholds = Literal["fixed", "one", "level", "label"]


@dataclass(frozen=True)
class DecisionSettings:
    """How labels are chosen from scores; `auto` tries all on validation documents and takes the best."""

    policy: Literal[Auto, Policy] = "auto"
    """`raw`, `consistent`, `top-down`, `single-path` or `top-k`; `auto` never takes `raw`, which is not consistent."""
    thresholds: Literal[Auto, Thresholds] = "auto"
    """`fixed` where the model itself says one half; or tuned: `one` for all labels, one for each `level` or `label`."""
    tune_for: Metric = "mean"
    """`micro`, `macro` or `hierarchical` F1, or the `mean` of the first two."""
    wished_precision: float = 0.0
    """In place of F1, the most recall with at least this precision; 0: F1."""
    calibration: Literal[Auto, Kind] = "auto"
    """How logits become probabilities: as they are (`none`), by a temperature a level, or by any rising curve a level
    (`isotonic`)."""

    def __post_init__(self) -> None:
        _ = self.goal

    @property
    def goal(self) -> Goal:
        return Goal(self.tune_for, self.wished_precision or None)
