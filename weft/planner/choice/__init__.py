"""Selects the model for a call: the one with the least predicted loss and price.

Tryage (arXiv 2308.11601): argmin over models of loss(prompt) + sum of weight * cost.
"""

from weft.planner.choice.ranking import (
    CostWeights,
    LossPredictor,
    ModelChoice,
    ModelProfile,
    RankedModel,
    StaticPredictor,
    rank,
)
from weft.planner.choice.routed import RoutedModel, routing_text
from weft.planner.choice.trained import TrainedPredictor
from weft.planner.choice.training import LossRow, read_rows, train

__all__ = [
    "CostWeights",
    "LossPredictor",
    "LossRow",
    "ModelChoice",
    "ModelProfile",
    "RankedModel",
    "RoutedModel",
    "StaticPredictor",
    "TrainedPredictor",
    "rank",
    "read_rows",
    "routing_text",
    "train",
]
