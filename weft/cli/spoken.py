"""Prints what models write, line by line, while they write it. Knows no plans."""

from __future__ import annotations

from collections import defaultdict

from rich.text import Text

from weft.cli.progress import Progress
from weft.cli.text import clean
from weft.core.events import Event, NodeFinished, NodeStarted, NodeStreamed
from weft.core.ids import NodeId

_LONGEST_LINE = 2_000


class Spoken:
    """A listener: every complete line of every node, behind the last step of the node's name."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._unfinished: defaultdict[NodeId, str] = defaultdict(str)

    def __call__(self, event: Event) -> None:
        """Take in one event."""
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
                said = Text(f"{name} │ ", style="dim")
                said.append(clean(line[:_LONGEST_LINE]), style="default")
                console.print(said, soft_wrap=True)
