"""What is kept is broken in the eyes of a search only where it is so beyond its doubt."""

from __future__ import annotations

import pytest

from weft.optimisation.goal import GoalResponses, StudyGoal
from weft.optimisation.objectives import LATENCY, QUALITY

_RESPONSES = GoalResponses(StudyGoal(LATENCY, (QUALITY,)), (-1.0, None), (0.02,))


@pytest.mark.parametrize(("doubt", "penalty"), [(None, 0.3), ([0.01], 0.2), ([0.05], 0.0)])
def test_doubt_is_in_favour_of_what_is_kept(doubt: list[float] | None, penalty: float) -> None:
    weights = ([0.5, 9.0], [-0.05, 9.0])
    assert _RESPONSES.utility([0], weights, doubt) == pytest.approx(0.5 - penalty)
