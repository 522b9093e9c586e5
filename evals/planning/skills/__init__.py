"""What a model can do as a planner, one figure for each skill.

The seven tasks of Granite's function calling (arXiv 2407.00121), derived mechanically from public
data, and two categories of BFCL. `evaluation.py` asks and counts; each other module makes cases.
"""

from evals.planning.skills.evaluation import run

__all__ = ["run"]
