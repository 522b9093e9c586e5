"""Nodes of the engine that are played from scripts: their ids, edges, joins and policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.core.errors import InternalError
from weft.core.events import JoinMode
from weft.core.ids import NodeId, attempt
from weft.engine.node import MISSING, Edge, Join, Node, Policy, Retry
from weft.engine.simulate.script import Scripted
from weft.engine.state import NodeState


class Played:
    """The `work` of a scripted node. It is never called: the player knows what it would do.

    `prefix`: what ids inside it begin with in the record, and what they begin with here.
    """

    __slots__ = ("prefix", "script")

    def __init__(self, script: Scripted, prefix: tuple[str, str] = ("", "")) -> None:
        self.script = script
        self.prefix = prefix

    async def __call__(self, _context: object, _inputs: object) -> Any:
        raise InternalError("a script is played, not run")

    def named(self, node: NodeId) -> NodeId:
        """What a recorded node is called here."""
        before, now = self.prefix
        return NodeId(now + node[len(before) :]) if before and node.startswith(before) else node


async def continues(_context: object, _value: object) -> Any:
    """Stands for what a node does after it paused. It is never called, either."""
    raise InternalError("a script is played, not run")


def played(state: NodeState) -> Played:
    """What `state` plays."""
    work = state.node.work
    assert isinstance(work, Played)
    return work


def inside(state: NodeState) -> Played:
    """How what `state` appends now is called: as recorded, or as the engine calls it in an attempt
    that the record does not have."""
    own = played(state)
    if state.attempt <= max(len(own.script.attempts), 1):
        return own
    return Played(own.script, (own.script.info.id, attempt(state.node.id, state.attempt)))


class Nodes:
    """Makes nodes of scripts. `every`: all of the record, by their ids.

    The value of a played node is its id in the record, so that a join for valid values can tell
    whose it is; that of a map is the list of its items' values.
    """

    def __init__(self, every: Mapping[NodeId, Scripted]) -> None:
        self._every = every

    def node(self, script: Scripted, prefix: tuple[str, str]) -> Node:
        """The node that plays `script`."""
        info = script.info
        own = Played(script, prefix)
        edges = tuple(
            Edge(own.named(source), str(n), stream=source in info.streams)
            for n, source in enumerate(info.sources)
        )
        join = self.join(script, info.join, info.quorum, cancels=info.cancels)
        return Node(own.named(info.id), own, edges, {}, join, self._policy(script, own), info.kind)

    def join(self, script: Scripted, mode: JoinMode, k: int, *, cancels: bool = False) -> Join:
        """A join of `script`: its own, or that of what it grew."""
        if mode != "first_valid":
            return Join(mode, k, default=MISSING, cancel_rest=cancels)
        rejects = script.rejects
        return Join(mode, k, lambda value: self._whose(value) not in rejects, None, cancels)

    def _policy(self, script: Scripted, own: Played) -> Policy:
        info = script.info
        retry, fallback = None, None
        if info.attempts > 1:
            retry = Retry(info.attempts, script.retry_delay_s, jitter=0.0)
        if script.fallback is not None:
            inner = self.node(script.fallback, own.prefix)
            name = NodeId(inner.id.rpartition("/")[2])
            fallback = Node(name, inner.work, policy=inner.policy)
        return Policy(
            retry=retry,
            fallback=fallback,
            default=info.id if script.default else MISSING,
            on_failure="skip" if info.may_fail else "fail",
            resource=info.resource,
            weight=info.weight,
        )

    def _whose(self, value: object) -> NodeId | None:
        if isinstance(value, str):
            return NodeId(value)
        first = self._whose(value[0]) if isinstance(value, list) and value else None
        return None if first is None else self._every[first].info.parent
