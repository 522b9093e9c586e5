"""Self-healing: tools fail on command, and a system reaches its goal or says that it cannot.

No language model takes part: where a system asks one, a script answers as well as it could be
answered. What is counted is how often it was asked, and what became of the failures.
"""

from evals.planning.healing.evaluation import run

__all__ = ["run"]
