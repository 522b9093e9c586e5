"""All samplers and protocols on any model, at equal tokens and at an equal critical path."""

from evals.reasoning.live.evaluation import panel, run, table
from evals.reasoning.live.terms import LiveTerms

__all__ = ["LiveTerms", "panel", "run", "table"]
