"""Choosing a model per call: what a trained predictor saves over one model for everything."""

from evals.planning.choice.evaluation import run

__all__ = ["run"]
