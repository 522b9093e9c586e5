"""The report after a run: outcomes, times, the critical path, what to speed up, the outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich.console import Console
from rich.table import Table
from rich.text import Text

from weft.cli.console import print_more, table
from weft.cli.reports.rows import OutcomeRow, rows
from weft.cli.text import amount, clean, duration, listing, money, one_line, plain
from weft.core.events import SUBSTITUTES
from weft.engine.analysis.critical_path import (
    WORTH_A_WORD,
    PathSegment,
    PathShare,
    critical_path,
    shares,
    speed_advice,
)
from weft.engine.analysis.trace import Trace

_MOST_ROWS = 200
_MOST_STEPS = 10
_SHORT = 0.005
_MOST_REASONS = 5
_BAR = 24
_LONGEST_OUTPUT = 20_000
_STYLES = {
    "succeeded": "green",
    "failed": "bold red",
    "skipped": "yellow",
    "cancelled": "magenta",
    "asking": "bold yellow",
    "partial": "yellow",
}
_WAITS = {"slot": "waits for a slot", "delay": "waits to try again", "person": "waits for a person"}


def print_report(
    console: Console,
    trace: Trace,
    outputs: Mapping[str, object],
    missing: Mapping[str, str],
    serial_wall_s: float | None = None,
    *,
    left: str | None = None,
) -> None:
    """Print the report of a finished run.

    `serial_wall_s`: the measured time of the same workflow with one node at a time, if any.
    `left`: why a recorded run ends here although it can be resumed.
    """
    print_headline(console, trace, left)
    print_outcomes(console, rows(trace))
    print_times(console, trace, serial_wall_s)
    print_breakers(console, trace)
    path = critical_path(trace)
    _path(console, trace, path)
    console.print()
    lines = list(advice(trace, shares(trace, path)))
    for line in lines:
        console.print(line, soft_wrap=not console.is_terminal)
    if lines:
        console.print()
    print_outputs(console, outputs, missing)


def print_outputs(
    console: Console,
    outputs: Mapping[str, object],
    missing: Mapping[str, str],
    state: Mapping[str, object] | None = None,
) -> None:
    """Print the outputs of a run, text as it is and the rest as JSON; clipped on a terminal.

    `state`: the workflow's state, to be printed after them.
    """
    fields = {f"state.{name}": value for name, value in (state or {}).items()}
    for name, value in {**outputs, **fields}.items():
        console.print(clean(name), style="bold underline")
        text = clean(value if isinstance(value, str) else _json(value))
        if console.is_terminal and len(text) > _LONGEST_OUTPUT:
            text = f"{text[:_LONGEST_OUTPUT]}\n… {len(text):,} characters; --json prints them all"
        console.print(text, soft_wrap=not console.is_terminal)
        console.print()
    for name, why in missing.items():
        console.print(Text(f"{clean(name)} is missing:", "bold red"), one_line(why, 300))


def advice(trace: Trace, path_shares: Sequence[PathShare]) -> Iterator[str]:
    """Sentences on what to speed up first, from the trace only."""
    best = speed_advice(trace, path_shares)
    if best is not None:
        yield (
            f"Speed up first: {clean(best.target)}. If it took no time, the run would take about "
            f"{duration(best.saves_s)} less ({best.fraction:.0%} of its wall time)."
        )
    for share in path_shares:
        if share.doing == "slot" and share.fraction >= WORTH_A_WORD:
            if not trace.limits:
                continue  # no slots: it is the time to start a node
            limit = trace.limits.get(share.target)
            of = f" of {clean(share.target)!r}" if share.target else ""
            of += f" (limit {limit})" if limit else ""
            yield f"Waiting for a free slot{of} took {share.fraction:.0%}: more slots may save it."
        elif share.doing in ("person", "delay") and share.fraction >= WORTH_A_WORD:
            why = "an answer to" if share.doing == "person" else "the next attempt of"
            yield f"Waiting for {why} {clean(share.target)} took {share.fraction:.0%}."


def print_headline(console: Console, trace: Trace, left: str | None = None) -> None:
    """Print how the run ended, or was `left`, and why."""
    status = trace.status or "unfinished"
    words = left or ("ended with a partial result" if status == "partial" else status)
    took = f" after {duration(trace.wall_s)}" if left else f" in {duration(trace.wall_s)}"
    line = Text(clean(trace.flow) + " ", "bold")
    line.append(words, _STYLES.get(status, "")).append(took)
    console.print(line)
    print_reasons(console, trace)
    if trace.leaked:
        names = clean(listing(trace.leaked))
        console.print(f"  did not stop when cancelled: {names}", style="bold yellow")
    console.print()


def print_reasons(console: Console, trace: Trace) -> None:
    """Print why the run did not succeed, the first reasons, one a line."""
    for reason in trace.reasons[:_MOST_REASONS]:
        console.print("  " + one_line(reason, 300), soft_wrap=not console.is_terminal)
    if len(trace.reasons) > _MOST_REASONS:
        console.print(f"  and {len(trace.reasons) - _MOST_REASONS} more reasons")


def print_outcomes(console: Console, outcome_rows: Sequence[OutcomeRow]) -> None:
    """Print a table of nodes: how they ended, when, and their usage."""
    shown = table("node", "outcome", ">attempts", ">time", ">tokens", "~note")
    shown.columns[0].max_width = 40
    for row in outcome_rows[:_MOST_ROWS]:
        instead = row.via in SUBSTITUTES
        status = Text(row.status, "yellow" if instead else _STYLES.get(row.status, ""))
        if row.via:
            status.append(f" ({row.via})", "" if instead else "dim")
        shown.add_row(
            Text("  " * row.depth + clean(row.name)),
            status,
            str(row.attempts) if row.attempts else "",
            "" if row.seconds is None else duration(row.seconds),
            f"{row.tokens:,}" if row.tokens else "",
            Text(row.note, "" if row.status == "failed" else "dim"),
        )
    console.print(shown)
    print_more(console, len(outcome_rows), _MOST_ROWS, "rows; --json has them all")
    console.print()


def print_times(console: Console, trace: Trace, serial_wall_s: float | None = None) -> None:
    """Print the run's usage of time, tokens and money."""
    usage, speed_up = trace.usage, trace.speed_up()
    parts = [f"wall time {duration(trace.wall_s)}", f"node times {duration(trace.all_busy_s())}"]
    parts.append(f"at most {trace.max_running:,} at once")
    console.print(" · ".join(parts), style="bold")
    if speed_up is not None:
        console.print(f"parallel speed-up {speed_up:.1f}x (node times over wall time)")
    if serial_wall_s is not None and trace.wall_s:
        console.print(
            f"measured speed-up {serial_wall_s / trace.wall_s:.1f}x "
            f"({duration(serial_wall_s)} one node at a time, models loaded before both)",
            style="bold green",
        )
    if usage.tokens:
        generated = f"{usage.completion_tokens:,} generated"
        if usage.reasoning_tokens:
            generated += f" ({usage.reasoning_tokens:,} of thoughts)"
        spent = [f"{usage.prompt_tokens:,} prompt tokens", generated]
        spent.append(amount(usage.requests, "request"))
        if usage.money:
            spent.append(money(usage.money))
        console.print(" · ".join(spent))
    console.print()


def print_breakers(console: Console, trace: Trace) -> None:
    """Print the first changes of circuit breakers, one a line."""
    for change in trace.breakers[:_MOST_REASONS]:
        what = f"circuit breaker of the {change.kind} {clean(change.name)}: {change.state}"
        line = f"{what} at {duration(change.at_s)}, {one_line(change.reason, 300)}"
        console.print(line, soft_wrap=not console.is_terminal)
    print_more(console, len(trace.breakers), _MOST_REASONS, "changes of circuit breakers")
    if trace.breakers:
        console.print()


def _path(console: Console, trace: Trace, path: Sequence[PathSegment]) -> None:
    if not path:
        return
    console.print("critical path", style="dim")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=42)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    waits = _WAITS if trace.limits else {**_WAITS, "slot": "waits to be started"}
    for name, doing, seconds in _steps(path, trace.wall_s * _SHORT):
        fraction = seconds / trace.wall_s
        bar = Text(("█" if doing == "work" else "░") * max(1, round(_BAR * fraction)), "cyan")
        bar.append("  " + waits[doing] if doing in waits else "", "dim")
        grid.add_row(Text("  " + name), duration(seconds), f"{fraction:.0%}", bar)
    console.print(grid)


def _steps(path: Sequence[PathSegment], short_s: float) -> Iterator[tuple[str, str, float]]:
    """The longest segments in order of time; sequences of shorter ones together, if they matter."""
    longest = set(sorted(path, key=lambda segment: -segment.seconds)[:_MOST_STEPS])
    shown = {segment for segment in longest if segment.seconds >= short_s}
    for is_shown, group in groupby(path, shown.__contains__):
        segments = list(group)
        if is_shown:
            yield from ((clean(s.node), s.doing, s.seconds) for s in segments)
        elif (total_s := sum(segment.seconds for segment in segments)) >= short_s:
            yield f"({amount(len(segments), 'shorter step')})", "work", total_s


def _json(value: object) -> str:
    return json.dumps(plain(value), ensure_ascii=False, indent=2)
