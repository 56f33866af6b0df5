"""How decisions are to be chosen at the end of training, or by `hitin tune`."""

from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal

from hitin.calibration import Kind
from hitin.decisions.decisions import Decisions
from hitin.decisions.goals import Goal, Metric
from hitin.decisions.policies import Policy
from hitin.errors import shown
from hitin.option_values import bad_option, coerced, types_of

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
    """How logits become probabilities: by a temperature a level, or by any rising curve a level (`isotonic`), of which
    `auto` takes the better; or as they are (`none`), where a label may be more probable than its parents."""

    def __post_init__(self) -> None:
        settings: Any = type(self)
        for name, kind in types_of(settings).items():
            object.__setattr__(self, name, coerced(name, getattr(self, name), kind))
        _ = self.goal

    @classmethod
    def of(cls, **options: Any) -> "DecisionSettings":
        """Options by name; one that there is not is told."""
        settings: Any = cls
        known = types_of(settings)
        for name in options:
            if name not in known:
                near = get_close_matches(name, known, n=1)
                remedy = f"Did you mean {near[0]}?" if near else f"The options are {', '.join(known)}."
                raise bad_option(f"there is no option {shown(name)} for decisions", remedy)
        return cls(**options)

    def untuned(self) -> Decisions:
        """What comes of them without validation documents: the policy, where one is named, at one half."""
        return Decisions() if self.policy == "auto" else Decisions(self.policy)

    def unheeded(self) -> list[str]:
        """The settings of which nothing comes without validation documents."""
        heeded = {"policy": self.policy, "thresholds": "fixed", "calibration": "none"}
        values = ((each.name, getattr(self, each.name), each.default) for each in fields(self))
        return [f"{name}={value}" for name, value, usual in values if value not in (usual, heeded.get(name))]

    @property
    def goal(self) -> Goal:
        return Goal(self.tune_for, self.wished_precision or None)
