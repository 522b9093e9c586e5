"""One recorded run: its nodes, what it asks, what it did once, how much it holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from weft.cli.answer import expected
from weft.cli.report import print_outcomes, print_times
from weft.cli.rows import rows
from weft.cli.runs.again import again
from weft.cli.runs.effects import effect_data, print_effects, unsettled_data
from weft.cli.runs.listing import STYLES, ago, run_data
from weft.cli.runs.losses import print_losses
from weft.cli.text import clean, one_line
from weft.cli.values import plain
from weft.core.codec import encode
from weft.core.events import HumanAsked
from weft.core.ports.journal import RunSummary
from weft.engine.cassette import once_calls
from weft.engine.trace import NodeTrace
from weft.workflow.runs.story import Story

if TYPE_CHECKING:
    from weft.workflow.result import FlowResult

_LONGEST_INPUT = 200


def print_run(
    console: Console,
    story: Story,
    summary: RunSummary,
    standing: str,
    now: datetime,
    place: str | None = None,
) -> None:
    """Everything about a run, but its values. `place`: what `--journal` said."""
    run = again(summary.run, place)
    line = Text(clean(summary.flow) + " ", "bold").append(standing, STYLES.get(standing, ""))
    line.append(f"  {clean(summary.run)}", "dim")
    console.print(line, soft_wrap=True)
    parts = f", in {summary.parts} parts" if summary.parts > 1 else ""
    console.print(f"  began {ago(summary.wall, now)}{parts}, with weft {clean(story.header.weft)}")
    for reason in story.trace.reasons[:5]:
        console.print("  " + one_line(reason, 300))
    for name, value in story.header.inputs.items():
        shown = one_line(json.dumps(plain(value), ensure_ascii=False), _LONGEST_INPUT)
        console.print(Text(f"  {clean(name)} = ", "dim").append(shown), soft_wrap=True)
    print_losses(console, story.losses)
    console.print()
    print_outcomes(console, rows(story.trace))
    _questions(console, list(story.questions.values()), run)
    print_effects(console, story, run)
    print_times(console, story.trace)
    console.print(f"{summary.records:,} records, {stored_bytes(story):,} bytes as text")
    if standing in ("interrupted", "failed", "partial", "cancelled"):
        console.print(f"go on with it: weft resume {run}", soft_wrap=True)


def story_data(story: Story, summary: RunSummary, standing: str) -> dict[str, object]:
    """The run as the JSON document has it."""
    return {
        **run_data(summary, standing),
        "weft": story.header.weft,
        "inputs": plain(story.header.inputs),
        "settings": plain(story.header.settings),
        "files": list(story.header.document),
        "outcomes": {node.info.id: _ended(node) for node in story.trace.nodes.values()},
        "questions": [
            {"node": asked.node, "question": asked.question, "schema": plain(asked.schema)}
            for asked in story.questions.values()
        ],
        "once": [effect_data(call) for call in once_calls(story.calls)],
        "unsettled": unsettled_data(story, ()),
        "lost": list(story.losses.notes),
        "reasons": list(story.trace.reasons),
        "wall_s": story.trace.wall_s,
        "bytes": stored_bytes(story),
    }


def result_data(result: FlowResult) -> dict[str, object]:
    """What the run came to as the JSON document has it."""
    return {"outputs": plain(result.outputs), "missing": dict(result.missing)}


def stored_bytes(story: Story) -> int:
    """What the records are as text, in bytes; what comes again is counted again."""
    texts = (encode(numbered.record) for numbered in story.records)
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)


def _ended(found: NodeTrace) -> dict[str, object]:
    outcome = found.outcome
    return {
        "kind": found.info.kind,
        "status": None if outcome is None else outcome.status,
        "via": "" if outcome is None else outcome.via,
        "attempts": found.attempts if outcome is None else outcome.attempts,
        "failure": None if outcome is None else plain(outcome.failure),
        "started_s": found.started_s,
        "finished_s": found.finished_s,
        "tokens": found.usage.tokens,
    }


def _questions(console: Console, asked: Sequence[HumanAsked], run: str) -> None:
    for question in asked:
        console.print(Text(clean(question.node), "bold").append(" asks: "), end="")
        console.print(clean(question.question).rstrip(), soft_wrap=True)
        hint = expected(question.schema)
        said = f"  weft answer {run} {clean(question.node)} VALUE"
        console.print(said + (f"   ({clean(hint)})" if hint else ""), style="cyan", soft_wrap=True)
    if asked:
        console.print()
