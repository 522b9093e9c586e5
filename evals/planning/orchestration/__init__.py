"""Orchestration alone: gold plans replayed through a scripted model on every way of working.

No language model takes part: `model.py` writes what a perfect one would write, at a stated speed,
and canned tools take as long for one system as for another.
"""

from evals.planning.orchestration.evaluation import run

__all__ = ["run"]
