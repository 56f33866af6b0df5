"""Which kind of model a run makes."""

from hitin.methods import METHODS, NeuralMethod
from hitin.model import Model
from hitin.neural import NeuralModel
from hitin.settings import Run

KINDS: tuple[type[Model], ...] = (NeuralModel,)


def kind_of(run: Run) -> type[Model]:
    method = METHODS[run.method_name]
    assert isinstance(method, NeuralMethod)
    return NeuralModel
