"""Progress on a terminal: one frame of the run, redrawn in place."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from weft.cli.run.listeners import NodeOutputLog
from weft.cli.text import amount, clean, duration, last_line, one_line
from weft.core.budget import Budget
from weft.core.events import Event, RunFinished, RunStarted
from weft.core.ids import NodeId
from weft.engine.analysis.critical_path import critical_path, path_nodes
from weft.engine.analysis.trace import NodeTrace, Trace

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_FEW = 3
_NARROW = 64


class RunView:
    """One frame: a headline, a row for each active node, counters for maps, the path so far."""

    def __init__(
        self, trace: Trace, node_outputs: NodeOutputLog, budget: Budget | None, now_s: float
    ) -> None:
        self._trace = trace
        self._node_outputs = node_outputs
        self._budget = budget
        self._now_s = now_s

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Never higher than the terminal, so that it can be redrawn in place."""
        width = options.max_width
        yield self._headline(width)
        rows = list(self._rows(max(3, (options.height or console.height) - 4), width))
        if rows:
            yield _table(rows, width)
        yield self._path(width)

    def _headline(self, width: int) -> Text:
        trace = self._trace
        line = Text(no_wrap=True, overflow="ellipsis")
        line.append(_SPINNER[int(self._now_s * 10) % len(_SPINNER)] + " ", style="cyan")
        line.append(one_line(trace.flow, width // 3), style="bold")
        line.append(f"  {duration(self._now_s)}", style="cyan")
        done = trace.ended.get("succeeded", 0)
        counts = [(f"{done} done", "green"), (f"{trace.running} running", "")]
        for status, style in (("failed", "bold red"), ("skipped", "yellow"), ("cancelled", "")):
            if number := trace.ended.get(status):
                counts.append((f"{number} {status}", style))
        for words, style in counts:
            line.append("  ")
            line.append(words, style=style)
        if speed := sum(self._speed(name) for name in trace.active):
            line.append(f"  {speed:,.0f} tok/s", style="cyan")
        line.append("  " + self._spent(), style="dim")
        return line

    def _speed(self, name: NodeId) -> float:
        output = self._node_outputs.of.get(name)
        return (output.tokens_per_s or 0.0) if output is not None else 0.0

    def _spent(self) -> str:
        usage, budget = self._trace.usage, self._budget
        if budget is None or budget.unlimited:
            return amount(usage.tokens, "token") if usage.tokens else ""
        parts = []
        if budget.tokens is not None:
            parts.append(f"{usage.tokens:,}/{budget.tokens:,} tokens")
        if budget.money is not None:
            parts.append(f"${usage.money:.4f}/${budget.money:.4f}")
        if budget.seconds is not None:
            parts.append(f"{self._now_s:.0f}/{budget.seconds:.0f} s")
        return "budget " + "  ".join(parts)

    def _rows(self, most: int, width: int) -> Iterator[tuple[Text, ...]]:
        """At most `most` rows: active nodes, those inside a wide scope below its counters."""
        groups = self._grouped(most // 3)
        headed = len(groups) - 1
        parts = _fair_parts(most - headed, [len(members) for members in groups.values()])
        for (scope, members), part in zip(groups.items(), parts, strict=True):
            if scope is not None:
                yield self._scope_row(self._trace.nodes[scope])
            shown = members if len(members) <= part else members[: part - 1]
            for node in shown:
                yield self._node_row(node, width, 1 if scope is None else 2)
            if len(members) > len(shown):
                more = Text(f"    … {len(members) - len(shown):,} more", style="dim")
                yield more, Text(), Text(), Text()

    def _grouped(self, most: int) -> dict[NodeId | None, list[NodeTrace]]:
        """The active nodes by the wide scope around them (at most `most`), or under None."""
        nodes = self._trace.nodes
        scopes = [name for name in self._trace.waiting if _is_wide(nodes[name])]
        outermost = [name for name in scopes if self._outer(name, scopes) is None][:most]
        groups: dict[NodeId | None, list[NodeTrace]] = {name: [] for name in (None, *outermost)}
        for name in self._trace.active:
            groups[self._outer(name, outermost)].append(nodes[name])
        return groups

    def _outer(self, name: NodeId, scopes: Sequence[NodeId]) -> NodeId | None:
        """The outermost of `scopes` around the node."""
        outermost = None
        parent = self._trace.nodes[name].info.parent
        while parent is not None and parent in self._trace.nodes:
            outermost = parent if parent in scopes else outermost
            parent = self._trace.nodes[parent].info.parent
        return outermost

    def _scope_row(self, node: NodeTrace) -> tuple[Text, ...]:
        done = len(node.ended_children)
        detail = Text()
        detail.append(f"{done:,}/{node.children:,}  ")
        filled = 20 * done // node.children
        detail.append("━" * filled, style="green").append("─" * (20 - filled), style="dim")
        if node.failed_children:
            detail.append(f"  {node.failed_children:,} failed", style="bold red")
        return _named(node, 1), _kind(node), self._since(node), detail

    def _node_row(self, node: NodeTrace, width: int, depth: int) -> tuple[Text, ...]:
        phase = node.phase
        detail = Text()
        if phase is not None and phase.doing == "delay":
            wait_s = max(0.0, phase.until_s - self._now_s)
            detail.append(f"attempt {node.attempts} failed, next in {wait_s:.1f} s", "yellow")
        elif phase is not None and phase.doing == "person":
            detail.append("waits for your answer", style="bold yellow")
        elif node.info.id in self._node_outputs.of:
            output = self._node_outputs.of[node.info.id]
            if node.streamed_tokens:
                detail.append(f"{node.streamed_tokens:,} tok", style="cyan")
                if (speed := output.tokens_per_s) is not None:
                    detail.append(f"  {speed:.0f} tok/s", style="cyan")
                detail.append("  ")
            words = output.tail or (output.logs[-1] if output.logs else "")
            detail.append(last_line(words, width // 2), style="dim italic")
        return _named(node, depth), _kind(node), self._since(node), detail

    def _since(self, node: NodeTrace) -> Text:
        began_s = node.started_s if node.started_s is not None else node.born.at_s
        return Text(f"{max(0.0, self._now_s - began_s):.1f} s", style="cyan")

    def _path(self, width: int) -> Text:
        line = Text("  critical path so far  ", style="dim", no_wrap=True, overflow="ellipsis")
        steps = path_nodes(critical_path(self._trace, self._now_s))
        path = ""
        for node, seconds in reversed(steps):
            step = f"{clean(node)} {duration(seconds)}"
            longer = f"{step} → {path}" if path else step
            if path and len(longer) > width - 26:
                path = "… → " + path
                break
            path = longer
        return line.append(path)


def _table(rows: Sequence[tuple[Text, ...]], width: int) -> Table:
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(no_wrap=True, width=max(16, width // 4), overflow="ellipsis")
    if narrow := width < _NARROW:
        rows = [(name, since, detail) for name, _, since, detail in rows]
    else:
        table.add_column(no_wrap=True, width=8, overflow="ellipsis")
    table.add_column(no_wrap=True, justify="right", width=6 if narrow else 8)
    table.add_column(no_wrap=True, ratio=1, overflow="ellipsis")
    for row in rows:
        table.add_row(*row)
    return table


def _fair_parts(room: int, sizes: Sequence[int]) -> list[int]:
    """How many of `room` rows each group gets: its fair share, at least one, at most its size."""
    parts = []
    for index, size in enumerate(sizes):
        part = min(size, max(1, room // (len(sizes) - index)))
        parts.append(part)
        room -= part
    return parts


def _is_wide(node: NodeTrace) -> bool:
    return node.info.kind == "map" or node.children > _FEW


def _named(node: NodeTrace, depth: int) -> Text:
    return Text("  " * depth + clean(node.info.id))


def _kind(node: NodeTrace) -> Text:
    return Text(clean(node.info.kind), style="dim")


_FRAME_S = 0.1


class LiveProgress:
    """Draws in the event loop, not in a thread, so that nothing changes while it draws."""

    def __init__(
        self,
        console: Console,
        trace: Trace,
        node_outputs: NodeOutputLog,
        budget: Budget | None,
        view: type[RunView] = RunView,
    ) -> None:
        self._view = view
        self._trace = trace
        self._node_outputs = node_outputs
        self._budget = budget
        self._started_s: float | None = None
        self._console = console
        self._live = self._new_live()

    def __call__(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._started_s = time.monotonic() - event.at_s
        elif isinstance(event, RunFinished):
            self._live.stop()

    def _new_live(self) -> Live:
        return Live(
            console=self._console, auto_refresh=False, transient=True, get_renderable=self._frame
        )

    def _frame(self) -> RunView:
        now_s = 0.0 if self._started_s is None else time.monotonic() - self._started_s
        return self._view(self._trace, self._node_outputs, self._budget, now_s)

    @contextmanager
    def paused(self) -> Iterator[Console]:
        """Release the terminal for a while."""
        drawing = self._live.is_started
        self._live.stop()
        try:
            yield self._console
        finally:
            if drawing:
                # The old one would erase the lines that it last drew, which are gone.
                self._live = self._new_live()
                self._live.start()

    @asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Draw while the context is open."""
        self._live.start()
        drawing = asyncio.create_task(self._redraw())
        try:
            yield
        finally:
            drawing.cancel()
            await asyncio.wait([drawing])
            self._live.stop()

    async def _redraw(self) -> None:
        while True:
            if self._live.is_started:
                self._live.refresh()
            await asyncio.sleep(_FRAME_S)
