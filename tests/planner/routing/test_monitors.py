"""Monitors beside the work: the strongest signal counts, and none of them can hold it up."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tests.planner.routing.route_run import errand
from tests.planner.routing.test_heal import HAVE, PAGES, broken, tools
from weft.planner.routing import (
    DOWN,
    Goal,
    MonitorSignal,
    RoutedCall,
    RoutedTool,
    RouterState,
    ToolGraph,
    ToolRouter,
)
from weft.planner.routing.monitors import IntentMonitor, LatencyMonitor, ProbeMonitor, RiskMonitor
from weft.testing import FakeTools


class Says:
    """A monitor that says the same, after `takes_s`."""

    def __init__(
        self, *signals: MonitorSignal, takes_s: float = 0.0, every_s: float | None = None
    ) -> None:
        self.name = "says"
        self.every_s = every_s
        self.signals = signals
        self.takes_s = takes_s
        self.scenes: list[RouterState] = []

    async def look(self, scene: RouterState) -> Sequence[MonitorSignal]:
        self.scenes.append(scene)
        await asyncio.sleep(self.takes_s)
        return self.signals


def called(*monitors: Any, **others: Any) -> list[str]:
    runner = tools(**others)
    ran = errand(ToolRouter(PAGES, runner, monitors=monitors), "summarise", HAVE)
    assert ran.arrival is not None
    return [name for name, _ in runner.calls]


CLOSED = MonitorSignal(0.5, "down for repairs", "fetch", health=DOWN)


def test_a_tool_is_closed_before_it_is_called() -> None:
    assert called(Says(CLOSED)) == ["archive", "summarise"]


def test_a_degraded_tool_is_dearer() -> None:
    assert called(Says(MonitorSignal(0.5, "slow", "fetch", health=3.0))) == ["fetch", "summarise"]
    assert called(Says(MonitorSignal(0.5, "slow", "fetch", health=5.0))) == ["archive", "summarise"]


def test_a_risk_is_dear() -> None:
    assert called(Says(MonitorSignal(0.5, "leaks", "fetch", risk=9.0))) == ["archive", "summarise"]


def test_the_strongest_signal_counts() -> None:
    well = MonitorSignal(0.6, "I have just seen it work", "fetch", health=1.0)
    assert called(Says(CLOSED), Says(well)) == ["fetch", "summarise"]
    assert called(Says(well), Says(MonitorSignal(0.7, "no", "fetch", health=DOWN)))[0] == "archive"


def test_all_look_at_once_and_a_slow_one_is_not_waited_for() -> None:
    late = Says(CLOSED, takes_s=100.0)
    assert called(late) == ["fetch", "summarise"]
    assert len(late.scenes) == 1
    runner = tools()
    monitors = [Says(takes_s=0.08), Says(takes_s=0.08)]
    ran = errand(ToolRouter(PAGES, runner, monitors=monitors), "page", HAVE)
    assert ran.events[-1].at_s < 0.25


def test_a_monitor_that_raises_is_heard_no_more() -> None:
    class Breaks(Says):
        async def look(self, scene: RouterState) -> Sequence[MonitorSignal]:
            if scene.calls:
                raise ZeroDivisionError
            return [CLOSED]

    runner = tools()
    ran = errand(ToolRouter(PAGES, runner, monitors=[Breaks()]), "summarise", HAVE)
    assert ran.arrival is not None
    assert any("failed and is heard no more" in line for line in ran.logged)


@pytest.mark.parametrize(
    "numbers", [{"health": 0.0}, {"health": float("nan")}, {"risk": -1.0}, {"risk": DOWN}]
)
def test_signals_that_mean_nothing(numbers: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="got"):
        MonitorSignal(0.5, "x", "fetch", **numbers)
    with pytest.raises(ValueError, match="got"):
        MonitorSignal(float("nan"), "x")


def test_they_look_after_every_call() -> None:
    seen = Says()
    called(seen, fetch=broken)
    assert [tuple(call.tool for call in scene.calls) for scene in seen.scenes] == [
        (),
        ("fetch",),
        ("fetch", "archive"),
        ("fetch", "archive", "summarise"),
    ]
    assert seen.scenes[1].calls[0].failure is not None
    assert seen.scenes[2].ahead == ("archive", "summarise")


def test_everything_closed_is_an_escalation_not_a_call() -> None:
    closed = [
        MonitorSignal(0.5, "closed on Sundays", name, health=DOWN) for name in ("fetch", "archive")
    ]
    runner = tools()
    ran = errand(ToolRouter(PAGES, runner, monitors=[Says(*closed)]), "summarise", HAVE)
    assert ran.error is not None
    assert "fetch: closed on Sundays" in ran.error.message
    assert not runner.calls


def test_probes() -> None:
    async def up() -> bool:
        return True

    async def down() -> bool:
        return False

    async def breaks() -> bool:
        raise OSError("refused")

    async def hangs() -> bool:
        await asyncio.Event().wait()
        return True

    assert called(ProbeMonitor({"fetch": up}))[0] == "fetch"
    assert called(ProbeMonitor({"fetch": down}))[0] == "archive"
    assert called(ProbeMonitor({"fetch": breaks}))[0] == "archive"
    assert called(ProbeMonitor({"fetch": hangs}, timeout_s=0.05))[0] == "archive"


def test_a_probe_that_changes_its_mind_opens_the_way_again() -> None:
    """Looks are repeated while calls run."""
    times: list[float] = []

    async def later() -> bool:
        times.append(asyncio.get_running_loop().time())
        return times[-1] >= 5.0

    async def slow(url: str) -> str:
        await asyncio.sleep(10.0)
        return url

    graph = ToolGraph(
        [RoutedTool("slow", {"url": "address"}), RoutedTool("after", {"url": "slow"})]
    )
    runner = FakeTools(slow=slow, after=lambda url: url)
    monitor = ProbeMonitor({"slow": _yes, "other": later}, every_s=1.0)
    ran = errand(ToolRouter(graph, runner, monitors=[monitor]), "after", HAVE)
    assert ran.arrival is not None
    assert len(times) >= 10


async def _yes() -> bool:
    return True


def test_slowness_is_shared_by_a_group() -> None:
    late = LatencyMonitor({"web": 1.0}, {"fetch": "web", "archive": "web"}, factor=3.0, most=4.0)
    signals = asyncio.run(late.look(_scene(("fetch", 10.0))))
    assert {s.tool: s.health for s in signals} == {"fetch": 4.0, "archive": 4.0}
    assert not asyncio.run(late.look(_scene(("fetch", 2.0))))
    assert not asyncio.run(late.look(_scene(("unknown", 99.0))))


def _scene(*calls: tuple[str, float]) -> RouterState:
    return RouterState(Goal("g"), {}, tuple(RoutedCall(name, took) for name, took in calls))


def test_risks_see_what_has_been_had() -> None:
    def rule(tool: str, values: Any) -> float:
        return float("inf") if tool == "fetch" and values["address"] == "here" else 0.0

    assert called(RiskMonitor(["fetch", "archive"], rule)) == ["archive", "summarise"]


def test_another_intent() -> None:
    def meaning(goal: Goal, values: Any) -> Goal | None:
        return Goal("page") if "page" in values else None

    runner = tools()
    ran = errand(ToolRouter(PAGES, runner, monitors=[IntentMonitor(meaning)]), "summarise", HAVE)
    assert ran.arrival is not None
    assert (ran.arrival.goal, ran.arrival.value) == ("page", "page here")
    assert "the goal is 'page' now: page is meant now" in ran.logged
