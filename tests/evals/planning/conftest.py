"""Tests that read evaluation data say so in words where it is not there."""

from __future__ import annotations

import pytest

from evals.planning.data import folder
from evals.planning.effort import Skipped


@pytest.fixture(scope="session")
def planner_data() -> None:
    """The data of the planning evaluation is on this machine."""
    try:
        folder("planner")
    except Skipped as reason:
        pytest.skip(str(reason))
