"""Settings of every strategy that cannot be: refused before anything runs, by name."""

from __future__ import annotations

from typing import Any

import pytest

from weft.core.errors import BuildError
from weft.reasoning.options import ThinkOptions
from weft.reasoning.strategies import STRATEGIES, make_strategy
from weft.testing import TokenModel

WRONG: dict[str, tuple[dict[str, Any], ...]] = {
    "abstraction": ({"steps": 0},),
    "leap": ({"route": "random"}, {"turn": 0}, {"paths": -1}),
    "map-reduce": ({"part_tokens": 0}, {"parts": -1}),
    "mirage": ({"graph": 3}, {"chains": 0}),
    "parallel-r1": ({"paths": 1}, {"blocks": 0}, {"variant": "both"}),
    "parathinker": ({"paths": 9}, {"paths": 0}, {"first_finish": "yes"}),
    "skeleton": ({"router": "magic"}, {"points": 1}, {"points": "x"}),
}


@pytest.mark.parametrize(
    ("strategy", "wrong"), [(name, wrong) for name, several in WRONG.items() for wrong in several]
)
def test_a_value_that_cannot_be_is_refused(strategy: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(BuildError, match=strategy):
        make_strategy(strategy, TokenModel(lambda *_: ""), ThinkOptions(settings=wrong))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_setting_that_there_is_not_is_refused(strategy: str) -> None:
    options = ThinkOptions(settings={"nonsense": 1})
    with pytest.raises(BuildError, match="no setting 'nonsense'"):
        make_strategy(strategy, TokenModel(lambda *_: ""), options)
