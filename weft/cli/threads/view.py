"""The live picture of a thought: a line for each thread. Draws what it is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from rich.text import Text

from weft.cli.progress.view import RunView
from weft.cli.text import last_line
from weft.cli.threads.rows import ThreadRow, thread_rows

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

    Where there are more threads than lines, those that have ended are counted first.
    """

    def _rows(self, most: int, width: int) -> Iterator[tuple[Text, ...]]:
        rows = thread_rows(self._trace)
        shown = rows if len(rows) <= most else _chosen(rows, most - 1)
        for row in shown:
            yield self._thread(row, width)
        hidden = Counter(row.state for row in rows) - Counter(row.state for row in shown)
        if hidden:
            told = ", ".join(f"{number:,} {state}" for state, number in hidden.items())
            yield Text(f"  … {hidden.total():,} more", "dim"), Text(), Text(), Text(told, "dim")

    def _thread(self, row: ThreadRow, width: int) -> tuple[Text, ...]:
        before = "  " * min(row.depth + 1, _DEEPEST)
        name = Text(before + last_line(row.name, max(_LEAST_NAME, width // 4 - len(before))))
        detail = Text()
        if tokens := row.tokens:
            detail.append(f"{tokens:,} tok  ", "cyan")
        detail.append(last_line(row.words(self._speech), width // 2), "dim italic")
        return name, Text(row.state, _STYLES.get(row.state, "dim")), self._lasted(row), detail

    def _lasted(self, row: ThreadRow) -> Text:
        node = row.node
        began_s = node.started_s if node.started_s is not None else node.born.at_s
        ended_s = self._now_s if node.finished_s is None else node.finished_s
        return Text(f"{max(0.0, ended_s - began_s):.1f} s", "cyan")


def _chosen(rows: Sequence[ThreadRow], most: int) -> list[ThreadRow]:
    """The `most` rows that matter most, in the order of `rows`."""
    rank = {state: place for place, state in enumerate(_EAGER)}
    places = sorted(range(len(rows)), key=lambda i: (rank.get(rows[i].state, len(rank)), i))
    return [rows[i] for i in sorted(places[:most])]
