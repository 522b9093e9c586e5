"""The threads of a run as rows, and the live view with a line for each.

A model call belongs to the thread that makes it; the thought itself is the first thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich.text import Text

from weft.cli.run.listeners import NodeOutputLog
from weft.cli.run.live import RunView
from weft.cli.text import last_line
from weft.core.ids import NodeId
from weft.engine.analysis.trace import NodeTrace, Trace

_THREADS: Final = frozenset(("thread", "think"))
_ENDS: Final = {"succeeded": "done", "skipped": "left out"}


@dataclass(slots=True)
class ThreadRow:
    """One thread. `name` is unique inside the thread that forked it.

    `depth`: how many threads are around it; `calls`: its model calls.
    """

    node: NodeTrace
    name: str
    depth: int
    calls: list[NodeTrace]
    children: list[ThreadRow]

    @property
    def state(self) -> str:
        """queued, reading, writing, waiting (for its threads), working, or its end."""
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
        """The generated tokens of its own calls."""
        return sum(max(call.usage.completion_tokens, call.streamed_tokens) for call in self.calls)

    def latest_text(self, node_outputs: NodeOutputLog) -> str:
        """The end of its latest output."""
        outputs = [
            node_outputs.of[call.info.id] for call in self.calls if call.info.id in node_outputs.of
        ]
        latest = max(outputs, key=lambda one: one.until_s, default=None)
        return "" if latest is None else latest.tail


def thread_rows(trace: Trace) -> list[ThreadRow]:
    """A row for each thread, below the one that forked it, in declared order."""
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
    rows: list[ThreadRow] = []
    waiting = list(reversed(top))
    while waiting:
        row = waiting.pop()
        rows.append(row)
        waiting += reversed(row.children)
    return rows


_STYLES: Final = {
    "writing": "cyan",
    "done": "green",
    "failed": "bold red",
    "cancelled": "magenta",
}
_DEEPEST: Final = 6
_LEAST_NAME: Final = 8
_EAGER: Final = ("writing", "reading", "working", "waiting", "queued")


class ThreadView(RunView):
    """One frame: a headline, a line for each thread, the critical path so far.

    If there are more threads than lines, finished ones are counted first.
    """

    def _rows(self, most: int, width: int) -> Iterator[tuple[Text, ...]]:
        rows = thread_rows(self._trace)
        shown = rows if len(rows) <= most else _chosen(rows, most - 1)
        for row in shown:
            yield self._thread(row, width)
        hidden = Counter(row.state for row in rows) - Counter(row.state for row in shown)
        if hidden:
            counts = ", ".join(f"{number:,} {state}" for state, number in hidden.items())
            yield Text(f"  … {hidden.total():,} more", "dim"), Text(), Text(), Text(counts, "dim")

    def _thread(self, row: ThreadRow, width: int) -> tuple[Text, ...]:
        before = "  " * min(row.depth + 1, _DEEPEST)
        name = Text(before + last_line(row.name, max(_LEAST_NAME, width // 4 - len(before))))
        detail = Text()
        if tokens := row.tokens:
            detail.append(f"{tokens:,} tok  ", "cyan")
        detail.append(last_line(row.latest_text(self._node_outputs), width // 2), "dim italic")
        return name, Text(row.state, _STYLES.get(row.state, "dim")), self._lasted(row), detail

    def _lasted(self, row: ThreadRow) -> Text:
        node = row.node
        began_s = node.started_s if node.started_s is not None else node.born.at_s
        ended_s = self._now_s if node.finished_s is None else node.finished_s
        return Text(f"{max(0.0, ended_s - began_s):.1f} s", "cyan")


def _chosen(rows: Sequence[ThreadRow], most: int) -> list[ThreadRow]:
    """The `most` most important rows, in the order of `rows`."""
    rank = {state: place for place, state in enumerate(_EAGER)}
    places = sorted(range(len(rows)), key=lambda i: (rank.get(rows[i].state, len(rank)), i))
    return [rows[i] for i in sorted(places[:most])]
