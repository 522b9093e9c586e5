"""The scheduler's state of one node of a run. Data only."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from weft.core.budget import Budget
from weft.core.errors import Failure, WeftError
from weft.core.events import Outcome, Via
from weft.core.ids import NodeId
from weft.core.values import Usage
from weft.engine.graph.join import JoinCount
from weft.engine.graph.node import MISSING, BudgetLimit, Expand, Node, Then


class NodePhase(IntEnum):
    """The phase of a node. It ends once."""

    PENDING = 0  # inputs are missing
    QUEUED = 1  # ready, waits for a slot
    RUNNING = 2  # its node function, or the continuation, runs
    WAITING = 3  # waits for the nodes it appended
    ASKING = 4  # waits for a person
    BACKOFF = 5  # waits before its next attempt
    ENDED = 6


class Account:
    """The consumption charged to one limit. `reached` says in words that the limit is spent."""

    __slots__ = ("limit", "reached", "scope", "since_s", "spent")

    def __init__(self, limit: BudgetLimit, scope: NodeState | None, since_s: float) -> None:
        self.limit = limit
        self.scope = scope
        self.since_s = since_s
        self.spent = Usage()
        self.reached: str | None = None

    @property
    def budget(self) -> Budget:
        """The limit's budget."""
        return self.limit.budget


class ExpandState:
    """The children a node waits for. `free` and `queue` limit them to its width."""

    __slots__ = ("count", "decided", "free", "grow", "queue")

    def __init__(self, grow: Expand, count: JoinCount) -> None:
        self.grow = grow
        self.count = count
        self.decided = False
        self.free = len(grow.results) if grow.width is None else grow.width
        self.queue: deque[NodeState] = deque()


class NodeState:
    """One node of one run.

    `order` is its declared place. `epoch` counts starts, pauses and ends, to recognise late
    results. `born` is the parent's attempt that appended it. `digest` identifies its node function
    and inputs, where the run is recorded. `missing` counts unmet inputs of an "all" join, and
    `left_out` says that one was left out on purpose; `count` serves the other joins, and `winners`
    is its decision. `open` counts children that have not ended; `pending_end` is the end that waits
    for them; `awaited` are other nodes that its node function waits for. `cause` is the failure
    that a fallback, a default or a cheaper node replaces. `due_s` is when its attempt times out,
    `timed_out` the last attempt that did.
    `tolerated`: a join was decided without it, or the node that appended it cancelled it, so that
    its failure is not the run's. `by_name`: the user cancelled it, or a node that encloses it.
    `observed`: another node's function waits for its end.
    """

    __slots__ = (
        *("account", "attempt", "awaited", "born", "by_name", "cause", "children", "count"),
        *("dependents", "digest", "due_s", "epoch", "gate", "growth", "left_out", "missing"),
        *("node", "observed", "open", "order", "outcome", "parent", "pending_end", "phase", "rank"),
        *("resume", "slotted", "timed_out", "tolerated", "via", "watchers", "winners"),
    )

    def __init__(self, node: Node, order: int, rank: float, parent: NodeState | None) -> None:
        self.node = node
        self.order = order
        self.rank = rank
        self.parent = parent
        self.phase = NodePhase.PENDING
        self.epoch = 0
        self.attempt: int = 0
        self.born: int = 0 if parent is None else parent.attempt
        self.digest = ""
        self.missing = 0
        self.open = 0
        self.count: JoinCount | None = None
        self.winners: tuple[NodeId, ...] | None = None
        self.dependents: list[NodeState] | None = None
        self.watchers: list[NodeState] | None = None
        self.children: list[NodeState] | None = None
        self.awaited: list[NodeState] | None = None
        self.growth: ExpandState | None = None
        self.gate: ExpandState | None = None
        self.account: Account | None = None
        self.outcome: Outcome | None = None
        self.pending_end: tuple[Any, WeftError | None] | None = None
        self.resume: Then | None = None
        self.cause: Failure | None = None
        self.via: Via = ""
        self.due_s: float | None = None
        self.timed_out = 0
        self.slotted = False
        self.left_out = False
        self.tolerated = False
        self.by_name = False
        self.observed = False

    @property
    def lost(self) -> tuple[Failure, Via] | None:
        """The losses of its join, where they count, and what replaces them."""
        count = self.count if self.growth is None else self.growth.count
        join = self.node.join if self.growth is None else self.growth.grow.join
        if count is None or count.lost is None:
            return None
        return count.lost, "" if join.default is MISSING else "default"

    @property
    def streams(self) -> bool:
        """True when its items may be consumed one by one: they are final as soon as they end."""
        policy = self.node.policy
        return (
            self.growth is not None
            and self.growth.grow.items
            and self.growth.grow.then is None
            and self.growth.grow.join.mode == "all"
            and policy.retry is None
            and policy.fallback is None
            and policy.default is MISSING
        )

    def scopes(self) -> Iterator[NodeState]:
        """This node and those that enclose it, innermost first."""
        state: NodeState | None = self
        while state is not None:
            yield state
            state = state.parent

    def inside(self) -> list[NodeState]:
        """Everything below this node, innermost first."""
        found: list[NodeState] = []
        doubtful = list(self.children or ())
        while doubtful:
            child = doubtful.pop()
            found.append(child)
            doubtful += child.children or ()
        found.reverse()
        return found
