"""From a network's logits to probabilities that mean what they say, and how far they do."""

from hitin.calibration.calibration import Calibration, Kind, LogOdds, coherent, probabilities_of
from hitin.calibration.choosing import choose_calibration, fit_calibration
from hitin.calibration.reliability import Bin, Reliability

__all__ = [
    "Bin",
    "Calibration",
    "Kind",
    "LogOdds",
    "Reliability",
    "choose_calibration",
    "coherent",
    "fit_calibration",
    "probabilities_of",
]
