"""Which kind of model a run makes."""

from hitin.methods import METHODS, WholeMethod
from hitin.model import Model
from hitin.neural import NeuralModel
from hitin.settings import Run

KINDS: tuple[type[Model], ...] = (
    NeuralModel,
    *(method.model for method in METHODS.values() if isinstance(method, WholeMethod)),
)


def kind_of(run: Run) -> type[Model]:
    method = METHODS[run.method_name]
    return method.model if isinstance(method, WholeMethod) else NeuralModel
