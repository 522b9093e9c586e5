"""The history of each node in the records of a run, for the part that resumes it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from weft.core.codec import opaque_in
from weft.core.errors import Failure
from weft.core.events import (
    GraphGrew,
    HumanAnswered,
    HumanAsked,
    JoinDecided,
    NodeFinished,
    NodeInfo,
    NodeRerouted,
    NodeRetrying,
    NodeSpent,
    NodeStarted,
    Outcome,
    RunFinished,
    RunResumed,
    whole,
)
from weft.core.ids import NodeId
from weft.core.ports import StoreEntry
from weft.core.ports.journal import NumberedRecord, Record
from weft.core.values import JsonSchema, Usage
from weft.engine.scheduler.effects import is_unknown
from weft.engine.scheduler.resume_state import RestoredChild, RestoredNode

T = TypeVar("T")


@dataclass(slots=True)
class _Child:
    """A node that another appended, in which attempt, and whether that attempt did without it."""

    info: NodeInfo
    born: int
    tolerated: bool = False


@dataclass(slots=True)
class _Node:
    """The recorded state of one node.

    `before`: its usage, with all inside it, in finished attempts, and `past` the nodes it appended
    in them; `own`: its own usage since then; `children`: the nodes it has appended since then,
    `grown` the last expansion; `items`: the number of them offered to streaming edges. `by_name`:
    the user cancelled it.
    """

    parent: NodeId | None = None
    digest: str = ""
    attempt: int = 0
    outcome: Outcome | None = None
    before: Usage = field(default_factory=Usage)
    own: Usage = field(default_factory=Usage)
    total: Usage = field(default_factory=Usage)
    failed_attempts: int = 0
    gave_up: Failure | None = None
    children: dict[NodeId, _Child] = field(default_factory=dict)
    past: dict[NodeId, _Child] = field(default_factory=dict)
    grown: GraphGrew | None = None
    parts: list[GraphGrew] = field(default_factory=list)
    items: int = 0
    by_name: bool = False
    answers: dict[int, list[Any]] = field(default_factory=dict)
    asked: int = 0
    questions: dict[tuple[int, int], HumanAsked] = field(default_factory=dict)
    decided: list[tuple[NodeId, ...]] = field(default_factory=list)


class RecordedResumeState:
    """Implements `ResumeState` over the records of the earlier parts of a run.

    part     the number of the new part; 1 for a new run that builds on the recorded one
    skip     nodes whose history is ignored
    restore  puts redacted secrets back into a value

    While the run had not ended, every ended node is restored, failures too. When it had, failed and
    cancelled nodes are tried again, with the nodes around them where the run did not absorb that.
    Nodes cancelled with the whole run are always tried again. Never restored are a value that the
    record has only in a lossy form (`inexact` names such nodes), and a failure by a call with an
    unknown end: a person may have settled it since, and until then the call is not made.
    """

    def __init__(
        self,
        records: Iterable[NumberedRecord],
        *,
        part: int | None = None,
        skip: Collection[NodeId] = (),
        restore: Callable[[Any], Any] | None = None,
    ) -> None:
        self.inexact: list[NodeId] = []
        self._nodes: dict[NodeId, _Node] = {}
        self._skip = skip
        self._restore = restore
        self._ended = False
        self._around: set[NodeId] = set()
        last, self._last_s = 0, 0.0
        for numbered in records:
            last = numbered.part
            self._last_s = max(self._last_s, numbered.record.at_s)
            self._take(numbered.record)
        self.part = last + 1 if part is None else part
        self.elapsed_s = self._last_s if self.part > 1 else 0.0

    # -- queries of the next part --------------------------------------------------------------

    def outcome(self, node: NodeId, digest: str) -> RestoredNode | None:
        known = self._nodes.get(node)
        if known is None or node in self._skip:
            return None
        outcome = known.outcome
        if outcome is not None and outcome.status == "cancelled" and not known.digest:
            return None if self._ended else self._whole(known, outcome)  # it had not started
        if not digest or known.digest != digest:
            return None
        if outcome is None:
            if not known.failed_attempts:
                return None
            inside = self._inside(known.past)
            return RestoredNode(None, known.before, known.failed_attempts, known.gave_up, inside)
        if self._ended and (outcome.status in ("failed", "cancelled") or node in self._around):
            return None
        if opaque_in(outcome.value) is not None or _is_unknown(outcome):
            return None
        return self._whole(known, outcome)

    def called_off(self, node: NodeId) -> Outcome | None:
        known = self._nodes.get(node)
        if known is None or known.outcome is None or node in self._skip or self._ended:
            return None
        unstarted = known.by_name and not known.outcome.attempts
        return self._restored(known.outcome) if unstarted else None

    def winners(self, node: NodeId, among: Collection[NodeId]) -> tuple[NodeId, ...] | None:
        known = self._nodes.get(node)
        if known is None or node in self._skip:
            return None
        branches = frozenset(among)
        return next((w for w in reversed(known.decided) if branches.issuperset(w)), None)

    def asks(
        self, node: NodeId, attempt: int, number: int, question: str, schema: JsonSchema
    ) -> bool:
        known = self._nodes.get(node)
        if known is None or node in self._skip or self._ended or self.part == 1:
            return False
        recorded = self._restored(known.questions.get((attempt, number)))
        return recorded is not None and (recorded.question, recorded.schema) == (question, schema)

    def answer(self, node: NodeId, attempt: int, number: int) -> StoreEntry | None:
        known = self._nodes.get(node)
        answers = [] if known is None or node in self._skip else known.answers.get(attempt, [])
        return StoreEntry(self._restored(answers[number])) if number < len(answers) else None

    # -- reading the records -------------------------------------------------------------------

    def _take(self, record: Record) -> None:
        match record:
            case NodeStarted():
                _start(self._node(record.node), record)
            case NodeFinished():
                self._finish(self._node(record.node), record)
            case NodeSpent():
                _spend(self._node(record.node), record)
            case NodeRetrying() | NodeRerouted(instead=True):
                self._attempt_over(self._node(record.node), record)
            case GraphGrew():
                self._grow(self._node(record.parent), record)
            case JoinDecided():
                _decide(self._node(record.node), record)
            case HumanAsked():
                _ask(self._node(record.node), record)
            case HumanAnswered(node=node, value=value):
                _answer(self._node(node), value)
            case RunFinished() | RunResumed():
                self._ended = isinstance(record, RunFinished)
                missed = record.missed if isinstance(record, RunFinished) else ()
                self._around = {scope for node in missed for scope in self._scopes(node)}

    def _node(self, node: NodeId) -> _Node:
        found = self._nodes.get(node)
        if found is None:
            found = self._nodes[node] = _Node()
        return found

    def _grow(self, node: _Node, event: GraphGrew) -> None:
        spared = event.join == "best_effort"
        for info in event.nodes:
            node.children[info.id] = _Child(info, node.attempt, spared)
            self._node(info.id).parent = event.parent
        if event.results is not None:
            node.parts.append(event)
        if event.results is not None and not event.more:
            node.grown, node.parts = whole(node.parts), []
            if event.items:
                node.items = len(node.grown.results or ())

    def _scopes(self, node: NodeId) -> Iterator[NodeId]:
        """The nodes that enclose `node`."""
        known = self._nodes.get(node)
        while known is not None and known.parent is not None:
            yield known.parent
            known = self._nodes.get(known.parent)

    def _finish(self, node: _Node, event: NodeFinished) -> None:
        if event.run_ended or (event.recalled and node.digest == event.digest and node.outcome):
            return
        if event.recalled:
            node.digest = event.digest
        else:
            node.total = self._consumed(node)
            if not event.outcome.attempts:
                node.digest = ""  # not started in this part: the end belongs to no inputs
        node.outcome, node.by_name = event.outcome, event.by_name
        if not event.recalled and opaque_in(event.outcome.value) is not None:
            self.inexact.append(event.node)

    def _attempt_over(self, node: _Node, event: NodeRetrying | NodeRerouted) -> None:
        if node.gave_up is not None:  # in an earlier part, and its substitute runs again
            node.children.clear()
            return
        node.before = self._consumed(node)
        node.own = Usage()
        node.past.update(node.children)
        node.children.clear()
        node.parts.clear()
        node.failed_attempts = node.attempt
        if isinstance(event, NodeRerouted):
            node.gave_up = event.failure

    def _consumed(self, node: _Node) -> Usage:
        total = node.before + node.own
        for child in node.children:
            total += self._nodes[child].total if child in self._nodes else Usage()
        return total

    def _whole(self, node: _Node, outcome: Outcome) -> RestoredNode:
        """The history of an ended node."""
        inside = self._inside(node.past, node.children)
        every = _has_all(node, outcome)
        ended = self._restored(outcome)
        return RestoredNode(ended, node.total, inside=inside, whole=every, by_name=node.by_name)

    def _inside(self, *appended: Mapping[NodeId, _Child]) -> tuple[RestoredChild, ...]:
        """The appended nodes, and what these had appended in turn, parents first."""
        found: list[RestoredChild] = []
        doubtful = [child for children in appended for child in children.values()][::-1]
        while doubtful:
            child = doubtful.pop()
            known = self._nodes.get(child.info.id)
            if known is None or known.outcome is None:
                continue
            # Other cancelled nodes are restored only where a join or a node did without them.
            cancelled = known.outcome.status == "cancelled"
            spared = child.tolerated or (cancelled and not known.by_name)
            outcome = self._restored(known.outcome)
            found.append(RestoredChild(child.info, child.born, outcome, spared, known.by_name))
            doubtful += [*known.past.values(), *known.children.values()][::-1]
        return tuple(found)

    def _restored(self, value: T) -> T:
        return value if self._restore is None else self._restore(value)


def _start(node: _Node, event: NodeStarted) -> None:
    node.attempt = event.attempt
    node.asked = 0
    if not event.digest and event.attempt > 1:
        return  # in the same part
    if event.attempt == 1 or event.digest != node.digest:
        node.before, node.failed_attempts = Usage(), event.attempt - 1
        node.past.clear()
    node.digest = event.digest
    node.outcome = node.gave_up = None
    node.own = Usage()
    node.children.clear()
    node.parts.clear()


def _decide(node: _Node, event: JoinDecided) -> None:
    node.decided.append(event.winners)
    grown = node.grown
    if grown is not None and set(event.winners) <= set(grown.results or ()):
        for info in grown.nodes:
            if info.id in node.children:
                node.children[info.id].tolerated = True


def _spend(node: _Node, event: NodeSpent) -> None:
    if not event.recalled:
        node.own += event.usage
    elif node.outcome is not None:
        node.total = event.usage
    else:
        node.before = event.usage


def _ask(node: _Node, event: HumanAsked) -> None:
    node.questions[node.attempt, node.asked] = event


def _answer(node: _Node, value: Any) -> None:
    answers = node.answers.setdefault(node.attempt, [])
    answers[node.asked : node.asked + 1] = [value]
    node.asked += 1


def _is_unknown(outcome: Outcome) -> bool:
    return outcome.failure is not None and is_unknown(outcome.failure)


def _has_all(node: _Node, outcome: Outcome) -> bool:
    """Whether the value of a map has a place for each of its items, or is a substitute."""
    replaced = outcome.via in ("default", "fallback")
    return not node.items or not outcome.ok or replaced or len(outcome.value) == node.items
