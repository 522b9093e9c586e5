"""What must hold of the events of every run, whatever its graph: checked by a second bookkeeping.

Knows nothing of scheduling; it only reads events and the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from weft.core.events import (
    BreakerChanged,
    BudgetReached,
    CacheMissed,
    Event,
    GraphGrew,
    HumanAnswered,
    HumanAsked,
    JoinDecided,
    NodeDecoded,
    NodeDenoised,
    NodeFinished,
    NodeInfo,
    NodeLogged,
    NodeRepairing,
    NodeRerouted,
    NodeRetrying,
    NodeSpent,
    NodeStarted,
    NodeStreamed,
    NodeWaiting,
    Outcome,
    RunFinished,
    RunResumed,
    RunStarted,
)
from weft.core.ids import NodeId
from weft.engine.runner.result import RunResult


def assert_well_formed(events: Sequence[Event], result: RunResult) -> None:
    """Replay `events` and assert that they tell one consistent story, which ends in `result`."""
    earlier = isinstance(events[0], RunResumed)
    events = events[earlier:]
    first, last = events[0], events[-1]
    assert isinstance(first, RunStarted)
    assert isinstance(last, RunFinished)
    assert all(a.at_s <= b.at_s for a, b in pairwise(events)), "time goes back"
    replay = Replay(first, earlier)
    for event in events[1:-1]:
        replay.take(event)
    replay.conclude()
    outcomes = dict(result.outcomes)
    if earlier:  # it tells of what is inside nodes that it recalls without their events
        outcomes = {node: outcome for node, outcome in outcomes.items() if node in replay.infos}
    assert replay.outcomes == outcomes
    assert set(replay.infos) == set(outcomes), "a node without an outcome"
    assert (last.status, last.reasons, last.leaked) == (
        result.status,
        result.reasons,
        result.leaked,
    )
    assert last.usage == result.usage


class Replay:
    """The nodes of a run as its events tell of them."""

    def __init__(self, started: RunStarted, earlier: bool = False) -> None:
        self.earlier = earlier
        self.limits = dict(started.limits)
        self.infos: dict[NodeId, NodeInfo] = {}
        self.attempts: Counter[NodeId] = Counter()
        self.holding: dict[NodeId, NodeInfo] = {}
        self.asking: set[NodeId] = set()
        self.open_children: Counter[NodeId] = Counter()
        self.outcomes: dict[NodeId, Outcome] = {}
        self.budgets: list[BudgetReached] = []
        self.announce(started.nodes, None)

    def announce(self, infos: Sequence[NodeInfo], parent: NodeId | None) -> None:
        for info in infos:
            assert info.id not in self.infos, f"{info.id} is announced twice"
            assert info.parent == parent
            self.infos[info.id] = info
        for info in infos:
            assert set(info.sources) <= set(self.infos), f"{info.id} waits for nobody known"
        if parent is not None:
            self.open_children[parent] += len(infos)

    def take(self, event: Event) -> None:
        match event:
            case GraphGrew():
                assert event.parent not in self.outcomes, f"{event.parent} grew after its end"
                self.announce(event.nodes, event.parent)
            case NodeStarted():
                self.started(event)
            case NodeFinished():
                self.finished(event)
            case BudgetReached():
                self.budgets.append(event)
            case (
                NodeStreamed()
                | NodeLogged()
                | NodeSpent()
                | NodeDecoded()
                | NodeDenoised()
                | NodeRepairing()
                | BreakerChanged()
            ):
                # also while code unwinds
                assert event.node in self.infos
            case HumanAsked():
                self.pause(event.node)
                self.asking.add(event.node)
            case HumanAnswered():
                self.answered(event)
            case JoinDecided() | CacheMissed():
                self.told(event)
            case NodeWaiting() | NodeRetrying() | NodeRerouted():
                self.pause(event.node)
            case _:
                raise AssertionError(f"{type(event).__name__} in the middle")

    def alive(self, node: NodeId) -> None:
        assert node in self.infos, f"{node} was never announced"
        assert node not in self.outcomes, f"{node} goes on after its end"

    def pause(self, node: NodeId) -> None:
        self.alive(node)
        self.holding.pop(node, None)
        self.asking.discard(node)

    def started(self, event: NodeStarted) -> None:
        self.alive(event.node)
        self.attempts[event.node] += 1
        if self.attempts[event.node] == 1:  # an earlier part may have made others
            self.attempts[event.node] = event.attempt
        assert event.attempt == self.attempts[event.node]
        assert event.node not in self.holding, f"{event.node} started twice"
        info = self.infos[event.node]
        self.holding[event.node] = info
        self.within("", len(self.holding))
        if info.resource is not None:
            taken = sum(i.resource == info.resource for i in self.holding.values())
            self.within(info.resource, taken)

    def within(self, resource: str, taken: int) -> None:
        limit = self.limits.get(resource)
        assert limit is None or taken <= limit, f"{taken} of {limit} slots of {resource!r}"

    def finished(self, event: NodeFinished) -> None:
        self.pause(event.node)
        info, outcome = self.infos[event.node], event.outcome
        if event.recalled:
            assert not self.attempts[event.node], f"{event.node} was started, and is recalled"
        elif self.attempts[event.node] or not self.earlier:
            assert outcome.attempts == self.attempts[event.node]
        assert not self.open_children[event.node], f"{event.node} ended before its children"
        self.outcomes[event.node] = outcome
        if info.parent is not None:
            self.open_children[info.parent] -= 1
        if outcome.status in ("failed", "cancelled"):
            assert outcome.failure is not None, f"{event.node} does not say why"
        if outcome.status != "succeeded":
            assert outcome.value is None

    def answered(self, event: HumanAnswered) -> None:
        self.alive(event.node)
        assert event.recalled == (event.node not in self.asking), "asked again, or not asked"
        self.asking.discard(event.node)

    def told(self, event: JoinDecided | CacheMissed) -> None:
        self.alive(event.node)
        if isinstance(event, CacheMissed):
            assert event.node in self.holding, f"{event.node} looked up before it started"
            return
        for winner in event.winners:
            assert self.outcomes[winner].ok, f"{winner} won without a value"

    def conclude(self) -> None:
        missing = set(self.infos) - set(self.outcomes)
        assert not missing, f"no end of {sorted(missing)}"
        assert not self.holding
        assert not self.asking
