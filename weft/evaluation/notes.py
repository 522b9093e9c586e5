"""How a record says that its run is an evaluation. Imports nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NOTES: Final = "evaluation"
"""The key of an evaluation among the settings of a run's record."""
SUFFIX: Final = "-evaluation"
"""What follows the name of the workflow under test in the name of its evaluation."""


def is_evaluation(settings: Mapping[str, Any]) -> bool:
    """Whether a run with these recorded settings is an evaluation."""
    return isinstance(settings.get(NOTES), Mapping)
