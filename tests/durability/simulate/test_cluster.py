"""A map over a simulated cluster: never faster than its narrowest part, and near it when large."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.durability.simulate import (
    ClusterCosts,
    ClusterPrediction,
    StepCost,
    measured_costs,
    simulate_cluster,
)
from weft.errors import InputError

BENCHMARKS: Final = Path(__file__).parents[3] / "docs" / "benchmarks"
KINDS: Final[tuple[Literal["sqlite", "postgres"], ...]] = ("sqlite", "postgres")
FREE = ClusterCosts(StepCost(0, 0), StepCost(0, 0), StepCost(0, 0), 0.0, 1e12, 0.0, 100.0, 10.0)
COSTS = st.builds(
    ClusterCosts,
    scheduler=st.builds(StepCost, st.floats(0, 1e-3), st.floats(1e-6, 1e-3)),
    journal=st.builds(StepCost, st.floats(0, 1e-3), st.floats(0, 1e-3)),
    message=st.builds(StepCost, st.floats(0, 1e-3), st.floats(0, 1e-4)),
    store_s=st.floats(0, 1e-2),
    store_bytes_s=st.floats(1e6, 1e10),
    trip_s=st.floats(0, 1e-2),
    node_bytes=st.just(100.0),
    record_bytes=st.just(10.0),
)


@given(
    costs=COSTS,
    nodes=st.integers(1, 20),
    slots=st.integers(1, 8),
    items=st.integers(1, 300),
    seconds=st.floats(1e-4, 10),
    result_bytes=st.sampled_from((0, 1_000, 100_000, 10_000_000)),
)
def test_no_part_does_more_than_it_can(
    costs: ClusterCosts, nodes: int, slots: int, items: int, seconds: float, result_bytes: int
) -> None:
    found = simulate_cluster(
        nodes=nodes,
        slots=slots,
        items=items,
        seconds=seconds,
        result_bytes=result_bytes,
        costs=costs,
    )
    assert found.wall_s >= found.ideal_s
    assert all(share <= 1 + 1e-9 for share in found.busy.values())
    process = sum(found.busy[name] for name in ("scheduler", "journal", "messages"))
    assert found.busy["process"] == pytest.approx(process)
    assert ("store" in found.capacity) == (result_bytes > costs.inline_bytes)
    assert found.steps <= items + 1
    assert (found.memory_bytes, found.journal_bytes) == (100.0 * items, 10.0 * items)


def test_without_costs_a_map_takes_its_rounds() -> None:
    found = simulate_cluster(nodes=5, slots=2, items=100, seconds=3.0, spread=0.0, costs=FREE)
    assert found.wall_s == pytest.approx(30.0)
    assert (found.efficiency, found.limit, found.steps) == (pytest.approx(1.0), "slots", 11)


def _full(costs: ClusterCosts, result_bytes: int = 0) -> ClusterPrediction:
    """Ten times what any part but the machines can do, for long."""
    return simulate_cluster(
        nodes=1_000, items=60_000, seconds=0.01, result_bytes=result_bytes, costs=costs
    )


@pytest.mark.parametrize(
    ("costs", "result_bytes", "limit"),
    [
        (measured_costs("none"), 0, "process"),
        (measured_costs("sqlite"), 0, "process"),
        (measured_costs("postgres"), 0, "process"),
        (measured_costs("sqlite"), 10_000_000, "store"),
    ],
)
def test_throughput_comes_near_the_narrowest_part(
    costs: ClusterCosts, result_bytes: int, limit: str
) -> None:
    found = _full(costs, result_bytes)
    allowed = min(found.capacity.values())
    assert found.limit == limit
    assert 0.9 * allowed < found.items / found.wall_s <= allowed


def test_the_same_seed_gives_the_same_prediction() -> None:
    one, two, other = (
        simulate_cluster(nodes=3, items=500, seconds=1.0, seed=seed) for seed in (1, 1, 2)
    )
    assert one == two
    assert one.wall_s != other.wall_s


@pytest.mark.parametrize(
    "wrong",
    [
        {"nodes": 0},
        {"slots": 0},
        {"items": 0},
        {"items": 10_000_001},
        {"seconds": 0.0},
        {"seconds": float("nan")},
        {"spread": 1.5},
        {"result_bytes": -1},
    ],
)
def test_what_cannot_be_simulated_is_refused(wrong: dict[str, float]) -> None:
    given = {"nodes": 1, "items": 1, "seconds": 1.0, **wrong}
    with pytest.raises(InputError):
        simulate_cluster(**given)  # type: ignore[arg-type]


def test_what_is_shipped_is_what_was_measured() -> None:
    rows = json.loads((BENCHMARKS / "simulation_cluster.json").read_text("utf-8"))["rows"]
    value = {(row["system"], row["metric"]): row["value"] for row in rows if row["case"] == "costs"}
    alone = measured_costs("none").scheduler
    assert alone.node_s * 1e6 == pytest.approx(value["none", "node_us"], rel=0.3)
    for kind in KINDS:
        costs = measured_costs(kind)
        node_us = (alone.node_s + costs.journal.node_s) * 1e6
        assert node_us == pytest.approx(value[kind, "node_us"], rel=0.3)
        # A server's step is one write to its disk, which takes one of two times here.
        assert 1 / 5 < costs.journal.step_s * 1e6 / value[kind, "step_us"] < 5
        assert costs.store_s * 1e3 == pytest.approx(value[kind, "store_ms"], rel=0.5)
        assert costs.store_bytes_s * 1e-6 == pytest.approx(value[kind, "store_mb_s"], rel=0.5)
