"""Runs a graph in virtual time and looks at everything that a run must leave in order behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tests.engine.event_stream import assert_well_formed
from weft.core.events import Event, Listener, NodeFinished, NodeStarted, Outcome
from weft.core.ids import NodeId
from weft.core.ports import ResultStore
from weft.core.ports.clock import Timer
from weft.engine import Edge, Graph, Inputs, Node, NodeContext, NodeFn, Policy, Run, RunOptions
from weft.engine.runner.result import RunResult
from weft.testing import FakeClock

FOR_EVER_S = 1e6
E = TypeVar("E")


class WatchedClock(FakeClock):
    """A fake clock that knows which of its timers are still set."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: set[int] = set()
        self._timers = 0

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        self._timers += 1
        number = self._timers

        def fire() -> None:
            self.alive.discard(number)
            callback()

        timer = super().call_later(delay_s, fire)
        self.alive.add(number)
        return _Watched(self.alive, number, timer)


@dataclass(frozen=True)
class _Watched:
    alive: set[int]
    number: int
    timer: Timer

    def cancel(self) -> None:
        self.alive.discard(self.number)
        self.timer.cancel()


@dataclass
class Played:
    """A run that is over, and its events."""

    result: RunResult
    events: list[Event]
    by_node: dict[str, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.by_node = {str(node): outcome for node, outcome in self.result.outcomes.items()}

    def __getitem__(self, node: str) -> Outcome:
        return self.by_node[node]

    @property
    def statuses(self) -> dict[str, str]:
        return {node: outcome.status for node, outcome in self.by_node.items()}

    def value(self, node: str) -> Any:
        outcome = self.by_node[node]
        assert outcome.ok, outcome
        return outcome.value

    def error(self, node: str) -> str:
        failure = self.by_node[node].failure
        assert failure is not None
        return failure.error

    def all(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def started_s(self, node: str) -> float:
        return next(e.at_s for e in self.all(NodeStarted) if e.node == node)

    def ended_s(self, node: str) -> float:
        return next(e.at_s for e in self.all(NodeFinished) if e.node == node)

    @property
    def start_order(self) -> list[str]:
        return [str(event.node) for event in self.all(NodeStarted)]


def play(
    *nodes: Node,
    keep: Iterable[str] = (),
    options: RunOptions | None = None,
    store: ResultStore | None = None,
    clock: WatchedClock | None = None,
    at: Mapping[float, Callable[[Run], object]] | None = None,
    listeners: Sequence[Listener] = (),
    **settings: Any,
) -> Played:
    """Run `nodes` to the end; call `at[seconds](run)` on the way. `settings` are `RunOptions`.

    Asserts that the run ends, that its events are well formed, and that it leaves neither a timer
    nor a task behind (but for those it calls leaked).
    """
    graph = Graph("test", nodes, keep=[NodeId(node) for node in keep])
    clock = clock or WatchedClock()
    events: list[Event] = []
    run = Run(
        graph,
        options or RunOptions(**settings),
        clock=clock,
        store=store,
        listeners=[events.append, *listeners],
    )

    async def main() -> RunResult:
        for seconds, act in (at or {}).items():
            asyncio.get_running_loop().call_later(seconds, act, run)
        result = await ended(run)
        await assert_nothing_left(clock, leaked=bool(result.leaked))
        return result

    result = clock.run(main())
    assert_well_formed(events, result)
    return Played(result, events)


async def ended(run: Run) -> RunResult:
    """The result of `run`. Virtual time jumps to the limit when nothing is left that may happen."""
    async with asyncio.timeout(FOR_EVER_S):
        return await run.wait()


async def assert_nothing_left(clock: WatchedClock, *, leaked: bool = False) -> None:
    """No timer and no task, now or in the next turns of the loop."""
    assert not clock.alive, "timers are still set"
    for _ in range(3):
        assert leaked or asyncio.all_tasks() == {asyncio.current_task()}
        await asyncio.sleep(0)


def node(name: str, work: NodeFn, *sources: str | Edge, **fields: Any) -> Node:
    """A node whose inputs are called like their sources. Fields of `Policy` may be given too."""
    edges = tuple(s if isinstance(s, Edge) else Edge(NodeId(s), s) for s in sources)
    policy = {key: fields.pop(key) for key in list(fields) if key in Policy.__dataclass_fields__}
    if policy:
        fields["policy"] = Policy(**policy)
    return Node(NodeId(name), work, edges, **fields)


def after(seconds: float, value: Any = None) -> NodeFn:
    """A work that takes `seconds` and gives `value` (None: the sum of its inputs)."""

    async def work(_: NodeContext, inputs: Inputs) -> Any:
        await asyncio.sleep(seconds)
        return sum(inputs.values()) if value is None else value

    return work


def give(value: Any) -> NodeFn:
    """A work that gives `value` at once."""

    async def work(_: NodeContext, inputs: Inputs) -> Any:
        return value

    return work


def fail(error: BaseException, seconds: float = 0.0) -> NodeFn:
    """A work that raises `error` after `seconds`."""

    async def work(_: NodeContext, inputs: Inputs) -> Any:
        await asyncio.sleep(seconds)
        raise error

    return work


def script(*steps: Any) -> NodeFn:
    """A work that in attempt n does `steps[n-1]`: raises it, awaits its work, or gives it."""

    async def work(context: NodeContext, inputs: Inputs) -> Any:
        step = steps[min(context.attempt, len(steps)) - 1]
        if isinstance(step, BaseException):
            raise step
        return await step(context, inputs) if callable(step) else step

    return work


async def echo(_: NodeContext, inputs: Inputs) -> dict[str, Any]:
    """A work that gives what it received."""
    return dict(inputs)


async def for_ever(_: NodeContext, inputs: Inputs) -> Awaitable[None]:
    """A work that never ends by itself."""
    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]
