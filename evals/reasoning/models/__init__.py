"""Strategies over real models, at equal tokens and at equal latency."""

from evals.reasoning.models.evaluation import panel, run, table

__all__ = ["panel", "run", "table"]
