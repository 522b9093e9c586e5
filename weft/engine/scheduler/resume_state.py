"""The outcomes of an earlier part of a run that a new part may reuse."""

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
    """An ended node inside a restored one. It belongs to that result, and never runs.

    `born` is the attempt of its parent that appended it. `tolerated`: its parent had enough without
    it. `by_name`: the user had cancelled it.
    """

    info: NodeInfo
    born: int
    outcome: Outcome
    tolerated: bool = False
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class RestoredNode:
    """The history of one node that had started.

    `outcome`: its end; it ends so again, and neither it nor the nodes inside it run. None: it had
    not ended, and runs. `usage`: its consumption, with all nodes inside it; it is charged again, so
    that a run costs what it costs undisturbed. A lost attempt's consumption before the process died
    is in no budget: its work is done, and charged, anew.

    For a node that had not ended: `failed_attempts` were over (they count, and are not repeated),
    with `gave_up` as the last one's failure when its retries were used up.

    `inside`: the nodes that it had appended, and theirs in turn, parents first: all of them, or for
    a node that had not ended those of its finished attempts.

    `whole`: false for the value of a map without the items left out on purpose; where its items are
    streamed it expands again, so that they keep their numbers.

    `by_name`: the user had cancelled it. A node cancelled otherwise is one that a join, or the node
    that appended it, did without.
    """

    outcome: Outcome | None
    usage: Usage = field(default_factory=Usage)
    failed_attempts: int = 0
    gave_up: Failure | None = None
    inside: tuple[RestoredChild, ...] = ()
    whole: bool = True
    by_name: bool = False


class ResumeState(Protocol):
    """The earlier parts of a run, or another run whose outcomes hold for this one too.

    Its methods are fast; the same arguments always give the same answer.
    """

    @property
    def part(self) -> int:
        """The number of this process in the run, from 1. A new run that reuses another has 1."""

    @property
    def elapsed_s(self) -> float:
        """Seconds of the run in earlier parts; 0 in a first."""

    def outcome(self, node: NodeId, digest: str) -> RestoredNode | None:
        """The history of `node` whose node function and inputs have `digest`."""

    def called_off(self, node: NodeId) -> Outcome | None:
        """The outcome of `node` where it was cancelled by name before it had started."""

    def winners(self, node: NodeId, among: Collection[NodeId]) -> tuple[NodeId, ...] | None:
        """The branches `among` for which a join of `node` was decided, if it was."""

    def asks(
        self, node: NodeId, attempt: int, number: int, question: str, schema: JsonSchema
    ) -> bool:
        """Whether that is the `number`-th question (from 0) of an attempt of `node`, and open."""

    def answer(self, node: NodeId, attempt: int, number: int) -> StoreEntry | None:
        """A person's answer to the `number`-th question (from 0) of an attempt of `node`."""


class _NoHistory:
    """A run without earlier parts."""

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
"""No earlier part. For a recorded run, whose nodes need digests."""
