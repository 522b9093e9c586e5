"""The live picture of a run as a rich renderable. Draws what it is given; reads no clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from weft.cli.speech import Speech
from weft.cli.text import amount, clean, duration, last_line, one_line
from weft.core.budget import Budget
from weft.core.ids import NodeId
from weft.engine.critical import critical_path
from weft.engine.trace import NodeTrace, Trace

_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_MANY = 2
_NARROW = 64


class RunView:
    """One frame: a headline, a row for each node at work, counters for maps, the path so far."""

    def __init__(self, trace: Trace, speech: Speech, budget: Budget | None, now_s: float) -> None:
        self._trace = trace
        self._speech = speech
        self._budget = budget
        self._now_s = now_s

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Never higher than the terminal, so that it can be redrawn in place."""
        width = options.max_width
        yield self._headline(width)
        rows = list(self._rows(max(3, (options.height or console.height) - 5), width))
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
        line.append("  " + self._spent(), style="dim")
        return line

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
        waiting = map(self._trace.nodes.__getitem__, self._trace.waiting)
        maps = [node for node in waiting if node.children >= _MANY]
        room = max(1, most - min(len(maps), most // 2))
        for node in islice(maps, most // 2):
            yield self._map_row(node)
        active = self._trace.active
        shown = room if len(active) <= room else room - 1
        for node_id in islice(active, shown):
            yield self._node_row(self._trace.nodes[node_id], width)
        if len(active) > shown:
            more = Text(f"  … {len(active) - shown:,} more", style="dim")
            yield more, Text(), Text(), Text()

    def _map_row(self, node: NodeTrace) -> tuple[Text, ...]:
        done = len(node.ended_children)
        detail = Text()
        detail.append(f"{done:,}/{node.children:,}  ")
        filled = 20 * done // node.children
        detail.append("━" * filled, style="green").append("─" * (20 - filled), style="dim")
        if node.failed_children:
            detail.append(f"  {node.failed_children:,} failed", style="bold red")
        return _named(node), _kind(node), self._since(node), detail

    def _node_row(self, node: NodeTrace, width: int) -> tuple[Text, ...]:
        phase = node.phase
        detail = Text()
        if phase is not None and phase.doing == "delay":
            wait_s = max(0.0, phase.until_s - self._now_s)
            detail.append(f"attempt {node.attempts} failed, next in {wait_s:.1f} s", "yellow")
        elif phase is not None and phase.doing == "person":
            detail.append("waits for your answer", style="bold yellow")
        elif node.info.id in self._speech.of:
            said = self._speech.of[node.info.id]
            if node.streamed_tokens:
                detail.append(f"{node.streamed_tokens:,} tok", style="cyan")
                if (speed := said.tokens_per_s) is not None:
                    detail.append(f"  {speed:.0f} tok/s", style="cyan")
                detail.append("  ")
            words = said.tail or (said.logs[-1] if said.logs else "")
            detail.append(last_line(words, width // 2), style="dim italic")
        return _named(node), _kind(node), self._since(node), detail

    def _since(self, node: NodeTrace) -> Text:
        began_s = node.started_s if node.started_s is not None else node.born.at_s
        return Text(f"{max(0.0, self._now_s - began_s):.1f} s", style="cyan")

    def _path(self, width: int) -> Text:
        line = Text("  critical path so far  ", style="dim", no_wrap=True, overflow="ellipsis")
        steps: list[tuple[NodeId, float]] = []
        for segment in critical_path(self._trace, self._now_s):
            if steps and steps[-1][0] == segment.node:
                steps[-1] = segment.node, steps[-1][1] + segment.seconds
            else:
                steps.append((segment.node, segment.seconds))
        told = ""
        for node, seconds in reversed(steps):
            step = f"{clean(node)} {duration(seconds)}"
            longer = f"{step} → {told}" if told else step
            if told and len(longer) > width - 26:
                told = "… → " + told
                break
            told = longer
        return line.append(told)


def _table(rows: Sequence[tuple[Text, ...]], width: int) -> Table:
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(no_wrap=True, width=max(14, width // 4), overflow="ellipsis")
    if narrow := width < _NARROW:
        rows = [(name, since, detail) for name, _, since, detail in rows]
    else:
        table.add_column(no_wrap=True, width=8, overflow="ellipsis")
    table.add_column(no_wrap=True, justify="right", width=6 if narrow else 8)
    table.add_column(no_wrap=True, ratio=1, overflow="ellipsis")
    for row in rows:
        table.add_row(*row)
    return table


def _named(node: NodeTrace) -> Text:
    return Text("  " + clean(node.info.id))


def _kind(node: NodeTrace) -> Text:
    return Text(clean(node.info.kind), style="dim")
