"""Timeouts of nodes around a question: they do not run while a person thinks."""

from __future__ import annotations

from collections.abc import Iterator

from weft.engine.scheduler.commands import ClearTimers, Command, SetTimer
from weft.engine.scheduler.state import NodeState


class SuspendedTimeouts:
    """The nodes with a timeout around open questions: how many there are, and the seconds left.

    The own timeout of a node that asks runs on: it limits how long a person may think.
    """

    def __init__(self) -> None:
        self._suspended: dict[NodeState, tuple[int, float]] = {}

    def asked(self, state: NodeState, now_s: float) -> Iterator[Command]:
        """`state` asks: stop the timeouts around it."""
        for scope in state.scopes():
            if scope is state or scope.due_s is None or scope.node.policy.timeout_s is None:
                continue
            open_, left_s = self._suspended.get(scope, (0, scope.due_s - now_s))
            self._suspended[scope] = open_ + 1, left_s
            if not open_:
                yield ClearTimers(scope)

    def ended(self, state: NodeState, now_s: float) -> Iterator[Command]:
        """The question of `state` is over: let the timeouts continue that no other one stops."""
        for scope in state.scopes():
            if scope is state or scope not in self._suspended:
                continue
            open_, left_s = self._suspended.pop(scope)
            if open_ > 1:
                self._suspended[scope] = open_ - 1, left_s
            else:
                scope.due_s = now_s + left_s
                yield SetTimer(scope, scope.attempt, "timeout", left_s)
