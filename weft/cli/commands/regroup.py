"""`weft regroup`: a plan of the calls that a run made one after the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.journal import histories_at
from weft.cli.options import AsJson, Debug, JournalPlace
from weft.cli.text import amount, clean, json_text, plain

HELP = """Make a plan of the tool calls of a recorded run, by the flow of their data.

A call waits for an earlier one if a value in its arguments first appeared in that result.
What the data does not tell is listed. Nothing is called.
"""


def regroup(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run's id, or the beginning, or last.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a training turn for each level, as JSON lines."),
    ] = None,
    as_json: AsJson = False,
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """See `HELP`."""
    with report_errors(debug=debug, as_json=as_json):
        from weft.planner.regroup import regroup as regrouped
        from weft.planner.regroup import training_turns
        from weft.planner.text.writer import write
        from weft.workflow.plans.recorded_calls import recorded_calls

        (history,) = histories_at(journal, run)
        found = recorded_calls(history)
        made = regrouped(found.question, found.calls)
        if out is not None:
            lines = [json.dumps(plain(turn), ensure_ascii=False) for turn in training_turns(made)]
            out.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        text, notes = write(made.plan), [str(each) for each in made.ambiguities]
        if as_json:
            data = {
                "run": history.run,
                "plan": text,
                "levels": made.levels,
                "needs": {str(step): sorted(needed) for step, needed in made.needs.items()},
                "ambiguities": notes,
                "failed_calls": found.failed,
            }
            typer.echo(json_text(data))
            return
        typer.echo(clean(text), nl=False)
        for number, level in enumerate(made.levels, 1):
            typer.echo(f"level {number}: {', '.join(map(str, level))}")
        if found.failed:
            typer.echo(f"left out: {amount(found.failed, 'call')} that failed")
        for note in notes:
            typer.echo(clean(note))
