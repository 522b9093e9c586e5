"""Which of several models answers a call: the one with the least predicted loss and price.

Tryage (arXiv 2308.11601): argmin over models of loss(prompt) + sum of weight * cost. Knows no
transport: models come as `ModelClient`s.
"""

from weft.planner.choice.predictor import Predictor, StaticPredictor
from weft.planner.choice.profile import Profile, Weights
from weft.planner.choice.ranking import Choice, Ranked, rank
from weft.planner.choice.recorded import read_rows
from weft.planner.choice.routed import RoutedModel
from weft.planner.choice.sweep import Measured, Point, pareto, sweep
from weft.planner.choice.trained import TrainedPredictor
from weft.planner.choice.training import LossRow, train

__all__ = [
    "Choice",
    "LossRow",
    "Measured",
    "Point",
    "Predictor",
    "Profile",
    "Ranked",
    "RoutedModel",
    "StaticPredictor",
    "TrainedPredictor",
    "Weights",
    "pareto",
    "rank",
    "read_rows",
    "sweep",
    "train",
]
