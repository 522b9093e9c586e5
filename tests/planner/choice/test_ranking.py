from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.planning.choice.sweep import MeasuredPrompt, SweepPoint, pareto, sweep
from tests.profile import examples
from weft.planner.choice import CostWeights, ModelProfile, StaticPredictor, rank

NUMBERS = st.floats(0, 10)
PROFILES = st.dictionaries(
    st.sampled_from("abcd"),
    st.builds(ModelProfile, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    min_size=1,
)
WEIGHTS = st.builds(CostWeights, NUMBERS, NUMBERS, NUMBERS)


@given(PROFILES, WEIGHTS, st.dictionaries(st.sampled_from("abcd"), NUMBERS))
@examples(150)
def test_the_first_minimises_loss_and_weighted_costs(
    profiles: dict[str, ModelProfile], weights: CostWeights, losses: dict[str, float]
) -> None:
    def score(name: str) -> float:
        def share(costs: dict[str, float]) -> float:
            most = max(costs.values())
            return costs[name] / most if most else 0.0

        found = losses.get(name, profiles[name].loss)
        assert found is not None
        return (
            found
            + weights.money * share({n: p.money(100, 10) for n, p in profiles.items()})
            + weights.latency * share({n: p.latency_s for n, p in profiles.items()})
            + weights.size * share({n: p.size for n, p in profiles.items()})
        )

    ranked = rank(losses, profiles, weights, (100, 10))
    assert sorted(each.model for each in ranked) == sorted(profiles)
    assert [each.score for each in ranked] == pytest.approx(sorted(map(score, profiles)))


def test_ties_keep_the_order_of_the_declaration() -> None:
    profiles = {"z": ModelProfile(), "a": ModelProfile()}
    assert [each.model for each in rank({}, profiles, CostWeights())] == ["z", "a"]


def test_a_model_nobody_knows_is_as_bad_as_the_worst() -> None:
    profiles = {
        "new": ModelProfile(),
        "good": ModelProfile(loss=0.1),
        "bad": ModelProfile(loss=0.9),
    }
    assert [each.model for each in rank({}, profiles, CostWeights())] == ["good", "new", "bad"]


def point(loss: float, cost: float) -> SweepPoint:
    return SweepPoint(CostWeights(), loss, cost, 0.0, {})


@given(st.lists(st.builds(point, NUMBERS, NUMBERS), max_size=12))
@examples(150)
def test_no_point_of_the_front_is_beaten_and_every_other_is(points: list[SweepPoint]) -> None:
    front = pareto(points)

    def beaten(one: SweepPoint) -> bool:
        return any(
            other.loss <= one.loss
            and other.cost <= one.cost
            and (other.loss, other.cost) != (one.loss, one.cost)
            for other in points
        )

    assert not any(beaten(one) for one in front)
    kept = {(one.loss, one.cost) for one in front}
    assert all(beaten(one) or (one.loss, one.cost) in kept for one in points)
    assert [one.cost for one in front] == sorted(one.cost for one in front)


def test_a_sweep_trades_loss_for_cost() -> None:
    measured = [
        MeasuredPrompt(
            f"{index}", {"small": 0.2 + index / 10, "large": 0.3}, {"small": 1.0, "large": 9.0}
        )
        for index in range(5)
    ]

    class Knowing:
        def losses(self, text: str) -> dict[str, float]:
            return {"small": 0.2 + int(text) / 10, "large": 0.3}

    profiles = {"small": ModelProfile(latency_s=1), "large": ModelProfile(latency_s=9)}
    weights = [CostWeights(latency=w) for w in (0.0, 0.15, 10.0)]
    free, some, all_small = sweep(measured, Knowing(), profiles, weights)
    assert free.hits == 1.0
    assert free.loss < some.loss < all_small.loss
    assert free.cost > some.cost > all_small.cost
    assert all_small.shares == {"small": 1.0}
    assert pareto([free, some, all_small]) == (all_small, some, free)
    with pytest.raises(ValueError, match="nothing"):
        sweep([], StaticPredictor({}), profiles, weights)
