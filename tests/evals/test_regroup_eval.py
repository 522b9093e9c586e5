"""The evaluation of `weft regroup`: unique values give the gold edges back, common ones do not."""

from __future__ import annotations

from evals.engine.rows import Lookup
from evals.regroup import Gold, Tally, colliding, unique
from weft.planner.plan import Plan, PlanStep, Ref

GOLD = Gold(
    "one",
    "How are they?",
    Plan(
        (
            PlanStep(1, "find", {"name": "first"}),
            PlanStep(2, "find", {"name": "second"}),
            PlanStep(3, "both", {"one": Ref(1, ("id",)), "many": (Ref(2, ("all", 1)), "x")}),
        )
    ),
)


def figures(values: object) -> Lookup:
    tally = Tally()
    tally.add(GOLD, values)  # type: ignore[arg-type]
    return Lookup(tally.rows("case", "system"))


def test_unique_values() -> None:
    found = figures(unique)
    names = ("plans", "edges", "edge_f1", "same_values", "ambiguous")
    assert [found("case", "system", name) for name in names] == [1, 2, 1.0, 1.0, 0]
    paths = [f"critical_path_{name}" for name in ("before", "after", "gold")]
    assert [found("case", "system", name) for name in paths] == [3, 2, 2]


def test_values_that_collide_lose_no_edge() -> None:
    found = figures(colliding)
    assert found("case", "system", "recall") == 1.0
    assert found("case", "system", "same_values") == 1.0
    assert (found("case", "system", "ambiguous") or 0) > 0
