"""`weft submit`: leaves a run in a journal's queue, for a worker."""

from __future__ import annotations

from typing import Annotated

import typer

from weft.cli import console, options
from weft.cli.errors import report_errors
from weft.cli.journal import run_reference, tell_new_journal
from weft.cli.queue import ConcurrencyKey, ConcurrencyLimit, Inputs, InputsFile, Priority, Queue
from weft.cli.text import clean, json_text

HELP = """Submit a run to a queue: a `weft worker` with the same workflow executes it.

Prints the run's id. With --key the id is yours, and submitting it again is the same run, so that a
submission can be repeated safely. Workers take higher priorities first, then the older ones.

A worker takes only runs of the version that it has: of the same workflow and code.
"""


def submit(
    file: options.WorkflowFile,
    given: Inputs = None,
    inputs_file: InputsFile = None,
    key: Annotated[
        str | None, typer.Option(metavar="RUN", help="The run's id: one run, however often given.")
    ] = None,
    priority: Priority = 0,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="Not before: 2026-01-05T09:00+01:00, or a delay such as 10m."
        ),
    ] = None,
    queue: Queue = "default",
    concurrency_limit: ConcurrencyLimit = None,
    concurrency_key: ConcurrencyKey = "",
    as_json: options.Json = False,
    journal: options.JournalPlace = None,
    debug: options.Debug = False,
) -> None:
    """See `HELP`."""
    texts = options.pairs(given or (), "--input")
    with report_errors(debug=debug, as_json=as_json, file=file):
        from weft.workflow import load

        flow = load(file)
        inputs = {} if inputs_file is None else options.inputs_file(inputs_file)
        tell_new_journal(journal)
        submitted = flow.submit(
            inputs | flow.coerce_inputs(texts),
            key=key,
            priority=priority,
            at=at,
            queue=queue,
            concurrency_limit=concurrency_limit,
            concurrency_key=concurrency_key,
            journal=journal,
        )
        entry = submitted.entry()
    asked = {"priority": priority, "queue": queue, "concurrency_limit": concurrency_limit}
    for name, value in asked.items():
        if (kept := getattr(entry.terms, name)) != value:
            note = f"{clean(entry.run)} was submitted before: its {name} stays {kept}"
            console.stderr().print(note, style="yellow", soft_wrap=True)
    if as_json:
        data = {"run": entry.run, "state": submitted.status, "version": entry.terms.version}
        typer.echo(json_text(data))
    else:
        typer.echo(clean(entry.run))
        watch = f"weft runs show {run_reference(entry.run, journal)}"
        typer.echo(f"{submitted.status}; see: {watch}", err=True)
