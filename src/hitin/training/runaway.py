"""What to do about a loss that is no number."""

from typing import TYPE_CHECKING

from hitin.errors import HitinError
from hitin.training.progress import Progress

if TYPE_CHECKING:
    from hitin.settings import Run


def run_away(loss: float, progress: Progress, run: "Run", *, is_mixed: bool) -> HitinError:
    """The error that tells where it happened, and the settings of this run that may be the cause."""
    return HitinError(
        f"the loss is {loss} in epoch {progress.epoch + 1}, near batch {progress.batch}: "
        f"the training has run away.\n{_remedy(run, is_mixed)}"
    )


def _remedy(run: "Run", is_mixed: bool) -> str:
    usual = type(run)()
    given = {
        "regularisation": run.loss.regularisation > usual.loss.regularisation,
        "weight_decay": run.training.weight_decay > usual.training.weight_decay,
    }
    ways = ["Lower the learning rate (learning_rate, encoder_learning_rate)"]
    ways += [f"lower {name}" for name, is_high in given.items() if is_high]
    ways += ["set precision=fp32"] if is_mixed else []
    return f"{', or '.join(ways)}."
