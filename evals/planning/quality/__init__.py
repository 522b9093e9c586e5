"""Planning by real models, small as those at hand are: how many plans are valid, and how good.

`benchmarks.py` has the questions and their scores, `models.py` who is asked.
"""

from evals.planning.quality.evaluation import run

__all__ = ["run"]
