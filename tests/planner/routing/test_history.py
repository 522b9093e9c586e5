"""What past calls teach, and that it survives."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.planner.routing.route_run import errand
from tests.planner.routing.test_heal import HAVE, PAGES, broken, tools
from tests.profile import examples
from weft.core.errors import StoreError
from weft.durability.result_store import SqliteStore
from weft.planner.routing import DOWN, CallCost, RouteWeights, ToolHistory, ToolRouter, heal
from weft.planner.routing.cost import HALF_LIFE_S, CallStats
from weft.testing import FakeClock, FakeTools, MemoryStore

DECLARED = CallCost(latency_s=2.0, reliability=0.9)


def test_nothing_known_is_what_was_declared() -> None:
    assert ToolHistory().expected("a", DECLARED) == DECLARED
    assert CallStats().expected(DECLARED) == DECLARED


def test_the_means_of_prior_and_calls() -> None:
    tally = CallStats().after(True, 4.0).after(False, 9.0)
    found = tally.expected(DECLARED)
    assert found.reliability == pytest.approx((5 * 0.9 + 1) / 7)
    assert found.latency_s == pytest.approx((5 * 2.0 + 4.0) / 6)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1e6))), st.floats(0.01, 1.0))
@examples(100)
def test_whatever_was_seen_is_a_cost(calls: list[tuple[bool, float]], reliability: float) -> None:
    tally = CallStats()
    for succeeded, latency_s in calls:
        tally = tally.after(succeeded, latency_s)
    found = tally.expected(CallCost(1.0, reliability=reliability))
    assert 0 < found.reliability <= 1
    assert RouteWeights().price(found) < DOWN


def test_what_was_seen_fades() -> None:
    tally = CallStats(8.0, 4.0, 16.0, at_s=100.0).faded(100.0 + HALF_LIFE_S)
    assert (tally.successes, tally.failures, tally.latency_s) == (4.0, 2.0, 8.0)
    assert tally.faded(0.0) == CallStats(4.0, 2.0, 8.0, 0.0), (
        "a clock that was set back fades nothing"
    )


def test_the_next_run_avoids_a_tool_that_kept_failing(tmp_path: Path) -> None:
    """Also when everything was forgotten but the file."""

    def run(fetch: Any) -> list[str]:
        runner = tools(fetch=fetch)
        asyncio.run(healed(runner))
        return [name for name, _ in runner.calls]

    async def healed(runner: FakeTools) -> None:
        store = SqliteStore(tmp_path / "kept.sqlite")
        await heal(ToolRouter(PAGES, runner, history=ToolHistory(store)), "summarise", HAVE)
        await store.aclose()

    for _ in range(20):
        first = run(broken)
        if "fetch" not in first:
            break
    else:
        pytest.fail("it is called for ever")
    assert run(lambda url: url) == ["archive", "summarise"]


def test_scopes_keep_tools_apart_and_processes_add_up() -> None:
    async def main() -> None:
        store, clock = MemoryStore(), FakeClock()
        one, two = ToolHistory(store, clock=clock), ToolHistory(store, clock=clock)
        other = ToolHistory(store, scope="other", clock=clock)
        for history in (one, two, one):
            await history.note("a", False)
        await two.load(["a"])
        await other.load(["a"])
        assert two.expected("a", DECLARED) == CallStats(0.0, 3.0).expected(DECLARED)
        assert other.expected("a", DECLARED) == DECLARED

    asyncio.run(main())


@pytest.mark.parametrize(
    "kept",
    [
        None,
        3,
        "x",
        [],
        {},
        {"successes": 1.0},
        {"successes": -1.0, "failures": 0, "latency_s": 0, "at_s": 0},
        {"successes": float("inf"), "failures": 0, "latency_s": 0, "at_s": 0},
        {"successes": "9", "failures": 0, "latency_s": 0, "at_s": 0},
    ],
)
def test_what_no_tally_could_be_is_nothing(kept: object) -> None:
    async def main() -> CallCost:
        store = MemoryStore()
        await store.put("weft.routing/1//a", kept)
        history = ToolHistory(store)
        await history.load(["a"])
        return history.expected("a", DECLARED)

    assert asyncio.run(main()) == DECLARED


class Gone:
    """A store that cannot be used, or never answers."""

    def __init__(self, hangs: bool) -> None:
        self.hangs = hangs

    async def get(self, key: str) -> None:
        await self._fail()

    async def put(self, key: str, value: Any, ttl_s: float | None = None) -> None:
        await self._fail()

    async def aclose(self) -> None:
        pass

    async def _fail(self) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        raise StoreError("the disk is full")


@pytest.mark.parametrize("hangs", [False, True])
def test_a_store_that_is_gone_costs_no_errand(hangs: bool) -> None:
    router = ToolRouter(PAGES, tools(fetch=broken), history=ToolHistory(Gone(hangs)))
    ran = errand(router, "summarise", HAVE)
    assert ran.arrival is not None
    assert any("cannot be read" in line for line in ran.logged)
    assert any("is not remembered" in line for line in ran.logged)


def test_our_own_mistakes_are_not_held_against_a_tool() -> None:
    history = ToolHistory()
    runner = tools(fetch=lambda address: address)  # called with `url`
    errand(ToolRouter(PAGES, runner, history=history), "summarise", HAVE)
    assert history.expected("fetch", DECLARED) == DECLARED


@pytest.mark.parametrize(
    ("cost", "weights", "health", "price"),
    [
        (CallCost(2.0, 0.5, 1.0), RouteWeights(call=0.0), 1.0, 7.0),
        (CallCost(2.0, 0.5, 0.5), RouteWeights(call=0.0), 1.0, 14.0),
        (CallCost(2.0, 0.5, 0.5), RouteWeights(reliability=0.0, call=1.0), 1.0, 8.0),
        (CallCost(2.0, 0.0, 1.0, risk=0.5), RouteWeights(call=0.0, risk=2.0), 3.0, 12.0),
        (CallCost(), RouteWeights(), DOWN, DOWN),
        (CallCost(0.0, 0.0), RouteWeights(call=0.0), DOWN, DOWN),
    ],
)
def test_prices(cost: CallCost, weights: RouteWeights, health: float, price: float) -> None:
    assert weights.price(cost, health) == pytest.approx(price)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CallCost(-1.0),
        lambda: CallCost(money=float("nan")),
        lambda: CallCost(reliability=0.0),
        lambda: CallCost(reliability=1.5),
        lambda: CallCost(risk=float("inf")),
        lambda: RouteWeights(latency=-0.1),
    ],
)
def test_costs_that_mean_nothing(make: Any) -> None:
    with pytest.raises(ValueError, match="is a"):
        make()
