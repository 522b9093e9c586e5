"""Which node functions wait for other nodes, so that a run knows when only people can go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from weft.engine.scheduler.state import NodeState


class NodeWaits:
    """The waits of a run's node functions for the ends of nodes.

    A node function may wait in several tasks at once. It is blocked while one of them waits and
    none of the others that have waited before does anything else. `changed` is called when a task
    that has waited ends.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._waiting: dict[NodeState, set[asyncio.Task[object]]] = {}
        self._subtasks: dict[NodeState, set[asyncio.Task[object]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, state: NodeState, main: asyncio.Task[None] | None) -> asyncio.Task[object]:
        """The current task waits; `main` is the task of the node function of `state`."""
        task: asyncio.Task[object] | None = asyncio.current_task()
        assert task is not None
        self._waiting.setdefault(state, set()).add(task)
        if task is not main and task not in self._subtasks.setdefault(state, set()):
            self._subtasks[state].add(task)
            task.add_done_callback(lambda done: self._ended(state, done))
        return task

    def end(self, state: NodeState, task: asyncio.Task[object]) -> None:
        """`task` waits no longer. Harmless when repeated."""
        waiting = self._waiting.get(state)
        if waiting is not None:
            waiting.discard(task)
            if not waiting:
                del self._waiting[state]

    def block(self, state: NodeState) -> bool:
        """Whether the node function of `state` only waits."""
        waiting = self._waiting.get(state)
        return waiting is not None and self._subtasks.get(state, waiting) <= waiting

    def _ended(self, state: NodeState, task: asyncio.Task[object]) -> None:
        self.end(state, task)
        subtasks = self._subtasks.get(state, set())
        subtasks.discard(task)
        if not subtasks:
            self._subtasks.pop(state, None)
        self._changed()
