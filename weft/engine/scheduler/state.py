"""What the scheduler remembers of one node of a run. Data only."""

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
    """Where a node is in its life. It only ever ends once."""

    PENDING = 0  # inputs are missing
    QUEUED = 1  # ready, waits for a slot
    RUNNING = 2  # its work, or the continuation of its work, runs
    WAITING = 3  # waits for the nodes it appended
    ASKING = 4  # waits for a person
    BACKOFF = 5  # waits before its next attempt
    ENDED = 6


class Account:
    """What was charged to one limit so far. `reached` says in words that it is spent."""

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
    """The children a node waits for. `free` and `queue` hold back those beyond its width."""

    __slots__ = ("count", "decided", "free", "grow", "queue")

    def __init__(self, grow: Expand, count: JoinCount) -> None:
        self.grow = grow
        self.count = count
        self.decided = False
        self.free = len(grow.results) if grow.width is None else grow.width
        self.queue: deque[NodeState] = deque()


class NodeState:
    """One node of one run.

    `order` is its declared place; `epoch` counts starts, pauses and ends, so that late answers are
    recognised; `born` is the parent's attempt that appended it; `digest` stands for its work and
    its inputs, where somebody records them. `missing` counts unmet inputs of an "all" join, and
    `left_out` says that one was left out on purpose; `count` serves the other joins and `winners`
    is what it decided. `open` counts children that have not ended; `held` is the end that waits for
    them; `awaited` are other nodes that its work waits for. `cause` is the failure that a fallback,
    a default or a cheaper node stands in for. `due_s` is when its attempt times out. `tolerated`: a
    join was decided without it, or the work that appended it cancelled it, so that its failure is
    none of the run. `by_name`: somebody cancelled it, or a node that it is inside. `heard`: the
    work of another node waits for its end.
    """

    __slots__ = (
        "account",
        "attempt",
        "awaited",
        "born",
        "by_name",
        "cause",
        "children",
        "count",
        "dependents",
        "digest",
        "due_s",
        "epoch",
        "gate",
        "growth",
        "heard",
        "held",
        "left_out",
        "missing",
        "node",
        "open",
        "order",
        "outcome",
        "parent",
        "phase",
        "rank",
        "resume",
        "slotted",
        "tolerated",
        "via",
        "watchers",
        "winners",
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
        self.held: tuple[Any, WeftError | None] | None = None
        self.resume: Then | None = None
        self.cause: Failure | None = None
        self.via: Via = ""
        self.due_s: float | None = None
        self.slotted = False
        self.left_out = False
        self.tolerated = False
        self.by_name = False
        self.heard = False

    @property
    def lost(self) -> tuple[Failure, Via] | None:
        """What its join went on without, where that counts, and what stands in for it."""
        count = self.count if self.growth is None else self.growth.count
        join = self.node.join if self.growth is None else self.growth.grow.join
        if count is None or count.lost is None:
            return None
        return count.lost, "" if join.default is MISSING else "default"

    @property
    def streams(self) -> bool:
        """True when its items may be consumed one by one: they are final the moment they end."""
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
        """This node and those that it is inside, innermost first."""
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
