"""The report of a thought: strategies, threads, cost, votes, citations, the answer."""

from __future__ import annotations

import dataclasses
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.text import Text

from weft.cli import console
from weft.cli.reports.outcome import print_headline, print_outputs, print_times
from weft.cli.text import amount, clean, duration, json_text, one_line
from weft.cli.threads.view import ThreadRow, ThreadView, thread_rows
from weft.engine.analysis.trace import Trace
from weft.reasoning.strategies import STRATEGIES
from weft.reasoning.thought import Sample, Thought

if TYPE_CHECKING:
    from weft.workflow import FlowResult, FlowRun


_MOST_ANSWERS: Final = 8


def summary(strategy: str, thought: Thought) -> Iterator[str]:
    """The summary of a thought in lines, the cost first."""
    counts = thought.counts
    parts = [
        f"{counts.total_tokens:,} tokens generated",
        f"{counts.critical_path_tokens:,} on the critical path",
        amount(counts.threads, "thread"),
        amount(counts.forks, "fork"),
    ]
    if counts.reasoning_tokens:
        parts.insert(1, f"{counts.reasoning_tokens:,} of them thoughts")
    if counts.cancelled_tokens:
        parts.append(f"{counts.cancelled_tokens:,} tokens cancelled")
    if counts.prefill_extra_tokens:
        parts.append(f"{counts.prefill_extra_tokens:,} tokens read again at joins")
    yield f"{clean(strategy)}: {' · '.join(parts)}"
    yield from _votes(thought.samples)
    if thought.why:
        yield f"ended: {one_line(thought.why, 300)}"
    if thought.fidelity == "approximate" or thought.lost:
        yield f"{thought.fidelity}: {one_line(thought.lost or 'not as it was published', 300)}"


def _votes(samples: Sequence[Sample]) -> Iterator[str]:
    """The compared answers with their samples, the most frequent first."""
    if len(samples) < 2:
        return
    by_key: defaultdict[str | None, list[int]] = defaultdict(list)
    for sample in samples:
        by_key[sample.key].append(sample.index)
    answers = sorted(by_key.items(), key=lambda each: (each[0] is None, -len(each[1]), each[1]))
    for key, voters in answers[:_MOST_ANSWERS]:
        what = "no answer that can be compared" if key is None else f"answer {key!r}"
        yield one_line(f"{what}: {amount(len(voters), 'sample')} ({_listed(voters)})", 300)
    if len(answers) > _MOST_ANSWERS:
        yield f"and {len(answers) - _MOST_ANSWERS} more answers"


def _listed(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:_MOST_ANSWERS]))
    return f"{shown}, …" if len(numbers) > _MOST_ANSWERS else shown


_MOST: Final = 20
_NAME_CHARS: Final = 60
_TEXT_CHARS: Final = 120


def citations(thought: Thought) -> Iterator[str]:
    """Marker, document, character range and the beginning of the cited text."""
    for piece in thought.evidence[:_MOST]:
        place = f"{one_line(piece.document, _NAME_CHARS)} {piece.start}-{piece.end}"
        yield f"[{one_line(piece.marker, 12)}] {place}: {one_line(piece.text, _TEXT_CHARS)}"
    if len(thought.evidence) > _MOST:
        yield f"and {len(thought.evidence) - _MOST} more"


_MOST_ROWS: Final = 60


class ThoughtReport:
    """Implements `RunReport`. `thought` returns the thought of a finished run, or None."""

    def __init__(self, strategy: str, thought: Callable[[], Thought | None]) -> None:
        self._strategy = strategy
        self._thought = thought

    def text(self, screen: Console, trace: Trace, result: FlowResult) -> None:
        """Print the report."""
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
        """`strategy` and `thought`, with clipped texts of its threads."""
        thought = self._thought()
        if thought is None:
            return {"strategy": self._strategy, "thought": None}
        data = {"cut": thought.cut, **thought_data(thought)}
        for each in (*data["samples"], *data["evidence"]):
            each["text"] = one_line(each["text"], 200)
        return {"strategy": self._strategy, "thought": data}


def thought_data(thought: Thought) -> dict[str, Any]:
    """The JSON data of a thought, without its answer and its tree."""
    return {
        **{key: getattr(thought, key) for key in ("key", "why", "fidelity", "lost")},
        "counts": dataclasses.asdict(thought.counts),
        "samples": [dataclasses.asdict(sample) for sample in thought.samples],
        "evidence": [dataclasses.asdict(piece) for piece in thought.evidence],
    }


def _print_threads(screen: Console, rows: list[ThreadRow]) -> None:
    table = console.table("thread", "state", ">time", ">tokens", "~note")
    table.columns[0].max_width = 40
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
    console.print_more(screen, len(rows), _MOST_ROWS, "threads; --trace FILE has them all")
    screen.print()


class ThoughtDisplay:
    """How a `Session` shows a thought. `run` is the prepared run."""

    view: Final = ThreadView

    def __init__(self, strategy: str) -> None:
        self.run: FlowRun | None = None
        self.report = ThoughtReport(strategy, self.thought)
        self._strategy = strategy

    def thought(self) -> Thought | None:
        """The thought; None without an answer, or with one from an earlier part."""
        from weft.core.errors import ReasoningError
        from weft.workflow.apps.think import thought_of_run

        try:
            return None if self.run is None else thought_of_run(self.run, self._strategy)
        except ReasoningError:
            return None


def print_strategies(*, as_json: bool) -> None:
    """Print the strategies: name, summary, where they are exact, what they need."""
    if as_json:
        keys = ("summary", "source", "exact", "needs")
        rows = [
            {"name": name, **{key: getattr(entry, key) for key in keys}}
            for name, entry in STRATEGIES.items()
        ]
        sys.stdout.write(json_text(rows) + "\n")
        return
    table = console.table("strategy", "~what it does", "~exact with", "~needs")
    for column, ratio in zip(table.columns[1:], (3, 2, 2), strict=True):
        column.ratio = ratio
    for name, entry in STRATEGIES.items():
        what = f"{entry.summary} ({entry.source})" if entry.source else entry.summary
        table.add_row(name, what, entry.exact or "nothing: approximate", entry.needs)
    console.stdout().print(table)
