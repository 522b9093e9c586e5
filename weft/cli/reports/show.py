"""Recorded runs: a list, and one of them with its nodes, questions, effects and losses."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from weft.cli.console import table
from weft.cli.journal import run_reference
from weft.cli.reports.effects import effect_data, print_calls, print_effects, unsettled_data
from weft.cli.reports.outcome import print_outcomes, print_times
from weft.cli.reports.rows import rows
from weft.cli.run.document import node_data
from weft.cli.run.questions import print_call
from weft.cli.text import clean, duration, listing, one_line, plain
from weft.core.calls import ToolCalled, ToolReturned
from weft.core.codec import encode
from weft.core.events import HumanAsked
from weft.core.ids import NodeId
from weft.core.ports.journal import Losses, LostRun, RunSummary
from weft.durability.calls import once_calls
from weft.durability.journal.refusals import lost
from weft.workflow.history.answer_text import expected
from weft.workflow.history.run_history import RunHistory

if TYPE_CHECKING:
    from weft.workflow.runtime.results.result import FlowResult


STYLES = {
    "running": "cyan",
    "asking": "bold yellow",
    "interrupted": "magenta",
    "succeeded": "green",
    "partial": "yellow",
    "failed": "bold red",
    "cancelled": "magenta",
    "unfinished": "magenta",
}


def print_runs(console: Console, runs: Sequence[tuple[RunSummary, str]], now: datetime) -> None:
    """Print a table of runs, each with its standing."""
    shown = table("!run", "standing", "began", ">took", ">records", "~note")
    for summary, standing in runs:
        shown.add_row(
            Text(clean(summary.run)),
            Text(standing, STYLES.get(standing, "")),
            ago(summary.wall, now),
            took(summary),
            f"{summary.records:,}",
            Text("; ".join(_notes(summary)), "dim"),
        )
    console.print(shown)


def run_data(summary: RunSummary, standing: str) -> dict[str, object]:
    """A run as JSON data."""
    return {
        "run": summary.run,
        "flow": summary.flow,
        "standing": standing,
        "held": summary.standing in ("running", "asking"),
        "began": summary.wall or None,
        "ended": summary.ended_wall or None,
        "parts": summary.parts,
        "records": summary.records,
        "asking": list(summary.asking),
    }


def ago(wall: str, now: datetime) -> str:
    """The time since a time in ISO 8601, such as `3 min 20 s ago`; the date after a day."""
    then = moment(wall)
    if then is None:
        return clean(wall)
    seconds = (now - then).total_seconds()
    if seconds >= 24 * 3600:
        return then.astimezone().strftime("%Y-%m-%d %H:%M")
    if seconds < 60:
        return f"{max(0, round(seconds))} s ago"
    return f"{duration(seconds)} ago"


def took(summary: RunSummary) -> str:
    """The time from a run's start to its end, pauses included; empty before its end."""
    began, ended = moment(summary.wall), moment(summary.ended_wall)
    if began is None or ended is None:
        return ""
    return duration(max(0.0, (ended - began).total_seconds()))


def moment(wall: str) -> datetime | None:
    """A time in ISO 8601, in UTC without a zone; None for other texts."""
    try:
        time = datetime.fromisoformat(wall)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _notes(summary: RunSummary) -> Iterable[str]:
    if summary.parts > 1:
        yield f"resumed {summary.parts - 1}x"
    if summary.asking:
        yield f"waits for an answer to {clean(listing(summary.asking))}"


def print_losses(console: Console, losses: Losses) -> None:
    """Print a line for each loss, and its meaning for `once` calls; nothing without losses."""
    for note in losses.notes:
        console.print(f"lost: {clean(note)}", style="bold yellow", soft_wrap=True)
    if losses.calls:
        text = f"{len(losses.calls):,} records of once calls are known from beside the journal"
        console.print(f"  {text}; a call without a known end is unknown", soft_wrap=True)


def print_lost_runs(console: Console, gone: Sequence[LostRun]) -> None:
    """Print a line for each run that the journal has lost, and what to do."""
    for run in gone:
        error = lost(run)
        console.print(f"lost: {clean(error.message)}", style="bold yellow", soft_wrap=True)
        console.print(f"  {clean(error.hint or '')}", soft_wrap=True)


def print_lost_calls(console: Console, gone: Sequence[LostRun], run: str) -> None:
    """Print the `once` calls of the lost runs whose ids begin with `run`."""
    for each in gone:
        records = [c for c in each.calls if isinstance(c, ToolCalled | ToolReturned)]
        if each.run.startswith(run) and records:
            calls = once_calls(records)
            print_calls(console, calls, len(calls))


_LONGEST_INPUT = 200


def print_run(
    console: Console,
    history: RunHistory,
    summary: RunSummary,
    standing: str,
    now: datetime,
    place: str | None = None,
    answered: Collection[NodeId] = (),
) -> None:
    """Print a run without its values.

    `place`: the value of `--journal`. `answered`: nodes whose answer waits for the run to go on.
    """
    run = run_reference(summary.run, place)
    line = Text(clean(summary.flow) + " ", "bold").append(standing, STYLES.get(standing, ""))
    line.append(f"  {clean(summary.run)}", "dim")
    console.print(line, soft_wrap=True)
    parts = f", in {summary.parts} parts" if summary.parts > 1 else ""
    began = f"began {ago(summary.wall, now)}" if summary.wall else "not begun"
    console.print(f"  {began}{parts}, with weft {clean(history.header.weft)}")
    for reason in history.trace.reasons[:5]:
        console.print("  " + one_line(reason, 300))
    for name, value in history.header.inputs.items():
        shown = one_line(json.dumps(plain(value), ensure_ascii=False), _LONGEST_INPUT)
        console.print(Text(f"  {clean(name)} = ", "dim").append(shown), soft_wrap=True)
    print_losses(console, history.losses)
    console.print()
    print_outcomes(console, rows(history.trace))
    questions = list(history.questions.values())
    _questions(console, questions, run, answered)
    print_effects(console, history, run)
    print_times(console, history.trace)
    console.print(f"{summary.records:,} records, {stored_bytes(history):,} bytes as text")
    ready = questions and all(question.node in answered for question in questions)
    left = standing == "asking" and ready and summary.standing != "asking"
    if left or standing in ("interrupted", "failed", "partial", "cancelled"):
        from weft.workflow.history.recorded_workflow import way_on  # it loads the compiler

        way = clean(way_on(history.header, run))
        console.print(f"go on with it: {way}", soft_wrap=True)


def history_data(
    history: RunHistory, summary: RunSummary, standing: str, answered: Collection[NodeId] = ()
) -> dict[str, object]:
    """The run as JSON data. `answered`: as in `print_run`."""
    return {
        **run_data(summary, standing),
        "weft": history.header.weft,
        "inputs": plain(history.header.inputs),
        "settings": plain(history.header.settings),
        "files": list(history.header.document),
        "outcomes": {
            node.info.id: {**node_data(node), "tokens": node.usage.tokens}
            for node in history.trace.nodes.values()
        },
        "questions": [
            {
                "node": asked.node,
                "question": asked.question,
                "schema": plain(asked.schema),
                "answered": asked.node in answered,
                **({"tool": asked.tool, "arguments": plain(asked.arguments)} if asked.tool else {}),
            }
            for asked in history.questions.values()
        ],
        "once": [effect_data(call) for call in once_calls(history.calls)],
        "unsettled": unsettled_data(history, ()),
        "lost": list(history.losses.notes),
        "reasons": list(history.trace.reasons),
        "wall_s": history.trace.wall_s,
        "bytes": stored_bytes(history),
    }


def result_data(result: FlowResult) -> dict[str, object]:
    """The outputs of a run as JSON data, and its state if it has one."""
    state = {"state": plain(result.state)} if result.state else {}
    return {"outputs": plain(result.outputs), "missing": dict(result.missing), **state}


def stored_bytes(history: RunHistory) -> int:
    """The bytes of the records as text; repeated values are counted each time."""
    texts = (encode(numbered.record) for numbered in history.records)
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def _questions(
    console: Console, asked: Sequence[HumanAsked], run: str, answered: Collection[NodeId]
) -> None:
    for question in asked:
        console.print(Text(clean(question.node), "bold").append(" asks: "), end="")
        if question.tool:
            print_call(console, question.tool, question.arguments)
        else:
            console.print(clean(question.question).rstrip(), soft_wrap=True)
        if question.node in answered:
            console.print("  answered; the run has not gone on with it yet", style="dim")
            continue
        hint = expected(question.schema)
        command = f"  weft answer {run} {clean(question.node)} VALUE"
        command += f"   ({clean(hint)})" if hint else ""
        console.print(command, style="cyan", soft_wrap=True)
    if asked:
        console.print()
