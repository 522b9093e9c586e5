"""Runs one errand in virtual time, and holds what must be true of every errand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.engine.event_stream import assert_well_formed
from weft.core.errors import RouteError
from weft.core.events import Event, NodeFinished, NodeLogged, NodeRerouted, RunFinished
from weft.core.ids import NodeId, RunId
from weft.engine.runner.result import RunResult
from weft.planner.routing import Goal, RouteResult, ToolRouter, heal
from weft.testing import FakeClock

HEAL = NodeId("heal")


@dataclass
class Ran:
    """How it ended, and what was seen of it."""

    arrival: RouteResult | None
    error: RouteError | None
    events: list[Event]

    @property
    def logged(self) -> list[str]:
        return [event.text for event in self.events if isinstance(event, NodeLogged)]

    @property
    def rerouted(self) -> list[NodeRerouted]:
        return [event for event in self.events if isinstance(event, NodeRerouted)]

    @property
    def failed(self) -> list[NodeFinished]:
        """The calls of tools that failed."""
        return [
            event
            for event in self.events
            if isinstance(event, NodeFinished)
            and event.outcome.status == "failed"
            and event.node != HEAL
            and "/." not in event.node
        ]

    @property
    def status(self) -> str:
        return next(event.status for event in self.events if isinstance(event, RunFinished))


def errand(
    router: ToolRouter,
    goal: Goal | str,
    have: Mapping[str, Any],
    lesser: Sequence[Goal | str] = (),
    *,
    cut: bool = False,
    **more: Any,
) -> Ran:
    """Run it on a clock that jumps; `cut`: it may be cut off before its end."""
    clock = FakeClock()
    events: list[Event] = []

    async def main() -> tuple[RouteResult | None, RouteError | None]:
        try:
            found = await heal(
                router, goal, have, lesser=lesser, clock=clock, listeners=[events.append], **more
            )
        except RouteError as error:
            return None, error
        return found, None

    arrival, error = clock.run(main())
    assert_well_formed(events, _result(events))
    ran = Ran(arrival, error, events)
    if not (cut and ran.status == "partial"):
        assert_no_silent_failure(ran)
    return ran


def _left_off(ran: Ran, event: NodeFinished) -> bool:
    """Whether a line said, before the call failed, that it is no longer needed."""
    before = ran.events[: ran.events.index(event)]
    tool = event.node.partition("/")[2]
    return any(
        isinstance(e, NodeLogged) and e.text == f"{tool} is no longer needed" for e in before
    )


def _result(events: Sequence[Event]) -> RunResult:
    """What the run came to, from its last event and the ends of its nodes."""
    end = events[-1]
    assert isinstance(end, RunFinished)
    ends = {event.node: event.outcome for event in events if isinstance(event, NodeFinished)}
    run = RunId("heal")
    return RunResult(run, end.status, ends, end.usage, end.at_s, end.reasons, end.leaked)


def assert_no_silent_failure(ran: Ran) -> None:
    """Every failed call is answered by a reroute that is an event and a line, or an escalation."""
    failures = [e.outcome.failure for e in ran.failed if not _left_off(ran, e)]
    answered = [event.failure for event in ran.rerouted]
    if ran.arrival is not None:
        assert ran.status == "succeeded"
        lowered = [failure for one in ran.arrival.lowered for failure in one.failures.values()]
        assert [reroute.failure for reroute in ran.arrival.reroutes] == answered
        assert len(lowered) + len(answered) == len(failures)
        assert all(failure in [*answered, *lowered] for failure in failures)
    else:
        assert ran.status == "failed"
        left = [failure for failure in failures if failure not in answered]
        assert not left or any(line.startswith("escalation: ") for line in ran.logged)
        assert ran.error is not None
        assert "no way is left" in ran.error.message
    assert sum(line.startswith("reroute: ") for line in ran.logged) == len(answered)
