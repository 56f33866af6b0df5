"""From a model's logits to labels, in the order of the work: the `policies` with their exact `closure`, the `decisions`
that a model keeps, and how they are chosen: `settings`, `goals`, all thresholds at once (`critical`), `fitting`,
`tuning`."""

from hitin.decisions.decisions import Decisions as Decisions
from hitin.decisions.decisions import Threshold as Threshold
from hitin.decisions.goals import Goal as Goal
from hitin.decisions.policies import Policy as Policy
from hitin.decisions.settings import DecisionSettings as DecisionSettings
from hitin.decisions.tuning import Row as Row
from hitin.decisions.tuning import Tuned as Tuned
from hitin.decisions.tuning import rows_to_tune_on as rows_to_tune_on
from hitin.decisions.tuning import steps_to_tune as steps_to_tune
from hitin.decisions.tuning import tune as tune
