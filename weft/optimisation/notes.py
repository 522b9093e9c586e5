"""How a record says that its run is a study. Imports nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NOTES: Final = "study"
"""The key of a study among the settings of a run's record."""
SUFFIX: Final = "-study"
"""What follows the name of the workflow in the name of its study."""
HELD_OUT: Final = "held_out"
"""The step that looks at the held-out cases."""


def is_study(settings: Mapping[str, Any]) -> bool:
    """Whether a run with these recorded settings is a study."""
    return isinstance(settings.get(NOTES), Mapping)
