"""What is printed after a thought: its threads, what they cost, the answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft.cli.report import print_headline, print_outputs, print_times
from weft.cli.text import clean, duration, one_line
from weft.cli.threads.citations import citations
from weft.cli.threads.rows import ThreadRow, thread_rows
from weft.cli.threads.summary import summary
from weft.engine.trace import Trace

if TYPE_CHECKING:
    from weft.reasoning.thought import Thought
    from weft.workflow import FlowResult

_MOST_ROWS: Final = 60


class ThoughtReport:
    """Implements `Report`. `thought` gives what came of it once it has ended; None: nothing."""

    def __init__(self, strategy: str, thought: Callable[[], Thought | None]) -> None:
        self._strategy = strategy
        self._thought = thought

    def text(self, screen: Console, trace: Trace, result: FlowResult) -> None:
        """Print everything."""
        print_headline(screen, trace)
        _print_threads(screen, thread_rows(trace))
        print_times(screen, trace)
        thought = self._thought()
        if thought is not None:
            for line in summary(self._strategy, thought):
                screen.print(line, soft_wrap=not screen.is_terminal)
            screen.print()
        elif trace.recalled and result.outputs:
            where = f"weft runs show {clean(trace.run)}"
            screen.print(f"answered in an earlier part: {where}", soft_wrap=True)
            screen.print()
        print_outputs(screen, result.outputs, result.missing)
        if thought is not None and thought.evidence:
            screen.print()
            for line in citations(thought):
                screen.print(Text(line, "dim"), soft_wrap=not screen.is_terminal)

    def keys(self) -> Mapping[str, Any]:
        """`thought`, without the texts of its threads."""
        thought = self._thought()
        if thought is None:
            return {"strategy": self._strategy, "thought": None}
        samples = [
            {**dataclasses.asdict(sample), "text": one_line(sample.text, 200)}
            for sample in thought.samples
        ]
        told = {
            "key": thought.key,
            "why": thought.why,
            "cut": thought.cut,
            "fidelity": thought.fidelity,
            "lost": thought.lost,
            "counts": dataclasses.asdict(thought.counts),
            "samples": samples,
            "evidence": [
                {**dataclasses.asdict(piece), "text": one_line(piece.text, 200)}
                for piece in thought.evidence
            ],
        }
        return {"strategy": self._strategy, "thought": told}


def _print_threads(screen: Console, rows: list[ThreadRow]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("thread", no_wrap=True, overflow="ellipsis", max_width=40)
    table.add_column("state", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True)
    table.add_column("note", overflow="fold")
    for row in rows[:_MOST_ROWS]:
        node = row.node
        lasted = ""
        if node.started_s is not None and node.finished_s is not None:
            lasted = duration(node.finished_s - node.started_s)
        failure = None if node.outcome is None else node.outcome.failure
        table.add_row(
            Text("  " * row.depth + clean(row.name)),
            Text(row.state),
            lasted,
            f"{row.tokens:,}" if row.tokens else "",
            "" if failure is None else one_line(str(failure), 300),
        )
    screen.print(table)
    if len(rows) > _MOST_ROWS:
        screen.print(f"… and {len(rows) - _MOST_ROWS:,} more threads; --trace FILE has them all")
    screen.print()
