"""What an earlier part of a run came to, as far as a new one may build on it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, Protocol

from weft.core.errors import Failure
from weft.core.events import NodeInfo, Outcome
from weft.core.ids import NodeId
from weft.core.ports import StoreEntry
from weft.core.values import JsonSchema, Usage


@dataclass(frozen=True, slots=True)
class RestoredChild:
    """A node inside one that is recalled: how it ended. It belongs to the result, and never runs.

    `born` is the attempt of its parent that appended it. `tolerated`: its parent had enough without
    it. `by_name`: somebody had cancelled it.
    """

    info: NodeInfo
    born: int
    outcome: Outcome
    tolerated: bool = False
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class RestoredNode:
    """What is known of one node that had started.

    `outcome`: how it ended; it ends so again, and neither it nor what is inside it runs. None: it
    had not ended, and runs. `usage`: what that consumed, in the node and all inside it; it is
    charged again, so that a run costs what it costs undisturbed. What a lost attempt had consumed
    before the process died is not known to any budget: its work is done, and charged, anew.

    Of a node that had not ended: `failed_attempts` were over (they count, and are not repeated),
    with `gave_up` as the last one's failure when its retries were used up.

    `inside`: what it had appended, and those had in turn, parents first: all of it, or of a node
    that had not ended that of its attempts that were over.

    `whole`: false for the value of a map that lacks the items left out on purpose; where its items
    are streamed it grows again, so that they keep their numbers.

    `by_name`: somebody had cancelled it. One that is cancelled otherwise is what a join, or the
    work that appended it, did without.
    """

    outcome: Outcome | None
    usage: Usage = field(default_factory=Usage)
    failed_attempts: int = 0
    gave_up: Failure | None = None
    inside: tuple[RestoredChild, ...] = ()
    whole: bool = True
    by_name: bool = False


class ResumeState(Protocol):
    """The earlier parts of a run, or another run whose ends hold for this one too.

    Its methods are quick, and the same question always has the same answer.
    """

    @property
    def part(self) -> int:
        """Which process of the run this is, from 1. A new run that builds on another is a first."""

    @property
    def elapsed_s(self) -> float:
        """Seconds of the run that have passed in earlier parts; 0 in a first."""

    def outcome(self, node: NodeId, digest: str) -> RestoredNode | None:
        """What is known of `node`, which is now the work and has the inputs that `digest` tells."""

    def called_off(self, node: NodeId) -> Outcome | None:
        """How `node` ended where somebody cancelled it before it had started."""

    def winners(self, node: NodeId, among: Collection[NodeId]) -> tuple[NodeId, ...] | None:
        """Which of the branches `among` a join of `node` was decided for, if it was."""

    def asks(
        self, node: NodeId, attempt: int, number: int, question: str, schema: JsonSchema
    ) -> bool:
        """Whether that is the `number`-th question (from 0) of an attempt of `node`, and open."""

    def answer(self, node: NodeId, attempt: int, number: int) -> StoreEntry | None:
        """What a person answered to the `number`-th question (from 0) of an attempt of `node`."""


class _NoHistory:
    """A run that builds on nothing."""

    part = 1
    elapsed_s = 0.0

    def outcome(self, node: NodeId, digest: str) -> None:
        del node, digest

    def called_off(self, node: NodeId) -> None:
        del node

    def winners(self, node: NodeId, among: Collection[NodeId]) -> None:
        del node, among

    def asks(
        self, node: NodeId, attempt: int, number: int, question: str, schema: JsonSchema
    ) -> bool:
        del node, attempt, number, question, schema
        return False

    def answer(self, node: NodeId, attempt: int, number: int) -> None:
        del node, attempt, number


NO_HISTORY: Final[ResumeState] = _NoHistory()
"""No earlier part. A recorded run has it, so that its nodes are told apart by their digests."""
