"""Why an evaluation cannot go on. Knows nothing else."""

from __future__ import annotations


class EvaluationError(Exception):
    """Nothing can be measured; the message says why."""
