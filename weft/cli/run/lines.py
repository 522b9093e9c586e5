"""Progress as plain lines for pipes, files and CI; and streamed output of models, by lines.

Lines depend only on events, so that equal runs give equal lines.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext

from rich.console import Console
from rich.text import Text

from weft.cli.run import ProgressDisplay
from weft.cli.text import amount, clean, duration, one_line
from weft.core.events import (
    BreakerChanged,
    BudgetReached,
    Event,
    HumanAsked,
    NodeFinished,
    NodeLogged,
    NodeRepairing,
    NodeRerouted,
    NodeRetrying,
    NodeStarted,
    NodeStreamed,
    RunFinished,
    RunStarted,
)
from weft.core.ids import NodeId
from weft.engine.analysis.trace import NodeTrace, Trace

_FEW = 20
_WIDTH = 200


class LineProgress:
    """Prints lines. Nodes inside a wide map are counted, not listed."""

    def __init__(self, console: Console, trace: Trace) -> None:
        self._console = console
        self._trace = trace

    def __call__(self, event: Event) -> None:
        line = self._line(event)
        if line is not None:
            self._console.print(f"[{event.at_s:8.2f} s] {line}", soft_wrap=True)

    def shown(self) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    def paused(self) -> AbstractContextManager[Console]:
        """The console; lines and questions do not disturb each other."""
        return nullcontext(self._console)

    def _line(self, event: Event) -> str | None:
        match event:
            case RunStarted():
                how = "goes on" if self._trace.parts > 1 else "started"
                return f"{clean(event.flow)} {how}: {amount(len(event.nodes), 'node')}"
            case RunFinished():
                return f"{clean(self._trace.flow)} {event.status}"
            case NodeFinished():
                return self._finished(event)
            case HumanAsked():
                asks = "still asks" if event.recalled else "asks"
                return f"{clean(event.node)} {asks}: {one_line(event.question, _WIDTH)}"
            case BudgetReached():
                owner = "the run" if event.scope is None else clean(event.scope)
                return f"budget of {owner} reached: {one_line(event.reason, _WIDTH)}"
            case BreakerChanged():
                what = f"circuit breaker of the {event.kind} {clean(event.name)}"
                return f"{what} is {event.state}: {one_line(event.reason, _WIDTH)}"
            case NodeRerouted():
                why = one_line(str(event.failure), _WIDTH)
                return f"{clean(event.node)} goes on as {clean(event.to)}: {why}"
            case NodeRepairing() | NodeRetrying() | NodeLogged() if (
                self._wide_scope(event.node) is None
            ):
                return self._note(event)
        return None

    def _note(self, event: NodeRepairing | NodeRetrying | NodeLogged) -> str:
        if isinstance(event, NodeLogged):
            return f"{clean(event.node)}: {one_line(event.text, _WIDTH)}"
        why = one_line(str(event.failure), _WIDTH)
        if isinstance(event, NodeRepairing):
            return f"{clean(event.node)} answer did not fit, asked again: {why}"
        again = f"next in {duration(event.delay_s)}"
        return f"{clean(event.node)} attempt {event.attempt} failed, {again}: {why}"

    def _finished(self, event: NodeFinished) -> str | None:
        node, outcome = self._trace.nodes[event.node], event.outcome
        if outcome.ok and self._in_a_thread(node):
            return None
        wide = self._wide_scope(event.node)
        if wide is not None and outcome.status != "failed":
            return self._counted(node, wide)
        line = f"{clean(event.node)} {outcome.status}"
        if event.recalled:
            return f"{line} before"
        if outcome.via:
            line += f" ({outcome.via})"
        if node.started_s is not None:
            line += f" in {duration(event.at_s - node.started_s)}"
        if outcome.attempts > 1:
            line += f" after {outcome.attempts} attempts"
        if tokens := self._tokens(node):
            line += f", {amount(tokens, 'token')}"
        if outcome.failure is not None:
            line += f": {one_line(str(outcome.failure), _WIDTH)}"
        return line

    def _tokens(self, node: NodeTrace) -> int:
        """The usage of the node itself, with calls that have no lines of their own."""
        inside = [self._trace.nodes[child] for _, child in node.ended_children]
        calls = [child for child in inside if self._in_a_thread(child)]
        return node.usage.tokens + sum(call.usage.tokens for call in calls)

    def _in_a_thread(self, node: NodeTrace) -> bool:
        """True for a call of a thread: the thread's own line is enough."""
        parent = None if node.info.parent is None else self._trace.nodes.get(node.info.parent)
        return node.info.kind == "model" and parent is not None and parent.info.kind == "thread"

    def _counted(self, node: NodeTrace, wide: NodeTrace) -> str | None:
        """A line at each tenth of a wide map."""
        done, total = len(wide.ended_children), wide.children
        tenth = done * 10 // total != (done - 1) * 10 // total
        if node.info.parent != wide.info.id or not tenth:
            return None
        failed = f", {wide.failed_children:,} failed" if wide.failed_children else ""
        return f"{clean(wide.info.id)} {done:,}/{total:,} done{failed}"

    def _wide_scope(self, node_id: NodeId) -> NodeTrace | None:
        """The outermost node around `node_id` with too many children to list."""
        wide = None
        parent = self._trace.nodes[node_id].info.parent
        while parent is not None and parent in self._trace.nodes:
            scope = self._trace.nodes[parent]
            wide = scope if scope.children > _FEW else wide
            parent = scope.info.parent
        return wide


_LONGEST_LINE = 2_000


class StreamPrinter:
    """A listener that prints each complete line of a node after the last part of its name."""

    def __init__(self, progress: ProgressDisplay) -> None:
        self._progress = progress
        self._unfinished: defaultdict[NodeId, str] = defaultdict(str)

    def __call__(self, event: Event) -> None:
        match event:
            case NodeStreamed():
                *lines, rest = (self._unfinished[event.node] + event.text).split("\n")
                self._unfinished[event.node] = rest[:_LONGEST_LINE]
                self._print(event.node, lines)
            case NodeFinished() | NodeStarted():
                rest = self._unfinished.pop(event.node, "")
                self._print(event.node, [rest] if rest else [])

    def _print(self, node: NodeId, lines: list[str]) -> None:
        if not lines:
            return
        name = clean(node.rpartition("/")[2])
        with self._progress.paused() as console:
            for line in lines:
                printed = Text(f"{name} │ ", style="dim")
                printed.append(clean(line[:_LONGEST_LINE]), style="default")
                console.print(printed, soft_wrap=True)
