"""The threads of a run as rows: what each does, what it wrote. Draws nothing.

A model call is part of the thread that makes it; the thought itself is the first thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from weft.cli.speech import Speech
from weft.core.ids import NodeId
from weft.engine.trace import NodeTrace, Trace

_THREADS: Final = frozenset(("thread", "think"))
_ENDS: Final = {"succeeded": "done", "skipped": "left out"}


@dataclass(slots=True)
class ThreadRow:
    """One thread. `name` tells it from the others inside the thread that forked it.

    `depth` is how many threads it is inside of; `calls` are its model calls.
    """

    node: NodeTrace
    name: str
    depth: int
    calls: list[NodeTrace]
    children: list[ThreadRow]

    @property
    def state(self) -> str:
        """queued, reading, writing, waiting (for its threads), working, or how it ended."""
        if self.node.outcome is not None:
            return _ENDS.get(self.node.outcome.status, self.node.outcome.status)
        if any(call.phase is not None and call.streamed_tokens for call in self.calls):
            return "writing"
        if any(child.node.outcome is None for child in self.children):
            return "waiting"
        if any(call.phase is not None for call in self.calls):
            return "reading"
        queued = any(call.ended is None for call in self.calls) or self.node.phase is None
        return "queued" if queued else "working"

    @property
    def tokens(self) -> int:
        """How many tokens its own calls have generated."""
        return sum(max(call.usage.completion_tokens, call.streamed_tokens) for call in self.calls)

    def words(self, speech: Speech) -> str:
        """The end of what it wrote last."""
        said = [speech.of[call.info.id] for call in self.calls if call.info.id in speech.of]
        latest = max(said, key=lambda one: one.until_s, default=None)
        return "" if latest is None else latest.tail


def thread_rows(trace: Trace) -> list[ThreadRow]:
    """A row for each thread, each below the one that forked it, in declared order."""
    owner: dict[NodeId, ThreadRow | None] = {}
    top: list[ThreadRow] = []
    for node in trace.nodes.values():
        parent = None if node.info.parent is None else owner.get(node.info.parent)
        if node.info.kind in _THREADS:
            row = _row(node, parent)
            owner[node.info.id] = row
            (top if parent is None else parent.children).append(row)
        else:
            owner[node.info.id] = parent
            if node.info.kind == "model" and parent is not None:
                parent.calls.append(node)
    return list(_nested(top))


def _row(node: NodeTrace, parent: ThreadRow | None) -> ThreadRow:
    name = str(node.info.id)
    if parent is None:
        return ThreadRow(node, name, 0, [], [])
    return ThreadRow(node, name.removeprefix(f"{parent.node.info.id}/"), parent.depth + 1, [], [])


def _nested(top: list[ThreadRow]) -> list[ThreadRow]:
    found: list[ThreadRow] = []
    waiting = list(reversed(top))
    while waiting:
        row = waiting.pop()
        found.append(row)
        waiting += reversed(row.children)
    return found
