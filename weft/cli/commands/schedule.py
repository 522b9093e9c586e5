"""`weft schedule`: adds, applies, lists and removes schedules of runs, with cron expressions."""

from __future__ import annotations

import time
from typing import Annotated, Final

import typer

from weft.cli import options
from weft.cli.errors import report_errors
from weft.cli.journal import journal_at, tell_new_journal
from weft.cli.queue import (
    ConcurrencyKey,
    ConcurrencyLimit,
    Inputs,
    InputsFile,
    Priority,
    Queue,
    applied_line,
    zoned_time,
)
from weft.cli.text import clean, json_text
from weft.cli.workflow_files import FilesOrFolders, load_all

_CATCH_UPS: Final = ("one", "skip", "all")

schedule = typer.Typer(
    help="Schedules with cron expressions, which workers fire: add, apply, list, remove.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@schedule.command()
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The schedule; replaced if known.")],
    cron: Annotated[str, typer.Argument(metavar="CRON", help="Such as '0 3 * * MON-FRI'.")],
    file: options.WorkflowFile,
    given: Inputs = None,
    inputs_file: InputsFile = None,
    zone: Annotated[
        str, typer.Option(metavar="ZONE", help="The time zone, such as Europe/Berlin.")
    ] = "UTC",
    catch_up: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="Times that no worker was there for: one (the last of them), skip, or all.",
        ),
    ] = "one",
    priority: Priority = 0,
    queue: Queue = "default",
    concurrency_limit: ConcurrencyLimit = None,
    concurrency_key: ConcurrencyKey = "",
    journal: options.JournalPlace = None,
    debug: options.Debug = False,
) -> None:
    """Submit a run of a workflow at each time of a cron expression.

    The run of a time has the id NAME-TIME, and is one run however many workers there are. Runs have
    the version that the workflow has now: add the schedule again after a change.
    """
    how = options.one_of(catch_up, _CATCH_UPS, "--catch-up")
    texts = options.pairs(given or (), "--input")
    with report_errors(debug=debug, file=file):
        from weft.workflow import load
        from weft.workflow.queue.scheduling import add_schedule

        flow = load(file)
        inputs = {} if inputs_file is None else options.inputs_file(inputs_file)
        tell_new_journal(journal)
        with journal_at(journal, make=True) as opened:
            added = add_schedule(
                opened,
                name,
                cron,
                flow.unit,
                inputs | flow.coerce_inputs(texts),
                zone=zone,
                catch_up=how,
                now_s=time.time(),
                queue=queue,
                priority=priority,
                concurrency_limit=concurrency_limit,
                concurrency_key=concurrency_key,
            )
    typer.echo(f"{clean(name)} fires next at {zoned_time(added.next_s, zone)}")


@schedule.command()
def apply(
    files: FilesOrFolders,
    journal: options.JournalPlace = None,
    debug: options.Debug = False,
) -> None:
    """Register the schedules that workflow files declare under `schedule`.

    Repeated, it changes nothing. What these workflows declared before and no longer do is removed;
    what `weft schedule add` added stays. Apply it again after each change of a workflow: runs have
    the version that it has now.
    """
    with report_errors(debug=debug):
        from weft.workflow.queue.declared import apply_schedules

        units = [flow.unit for flow in load_all(files)]
        tell_new_journal(journal)
        with journal_at(journal, make=True) as opened:
            applied = apply_schedules(opened, units, time.time())
    for one in applied:
        typer.echo(applied_line(one))
    if not applied:
        typer.echo("these workflows declare no `schedule`")


@schedule.command("list")
def list_command(
    as_json: options.Json = False,
    journal: options.JournalPlace = None,
    debug: options.Debug = False,
) -> None:
    """List the schedules, by name."""
    with report_errors(debug=debug, as_json=as_json):
        from weft.core.ports.queue import queue_of
        from weft.workflow.queue.waiting import FlowVersion, waiting_versions

        with journal_at(journal, to_read=True) as opened:
            found = queue_of(opened).schedules()
            waiting = waiting_versions(opened, time.time())
        rows = [
            {
                "name": one.name,
                "cron": one.cron,
                "zone": one.zone,
                "catch_up": one.catch_up,
                "next": zoned_time(one.next_s, one.zone),
                "flow": one.header.flow,
                "version": one.terms.version,
                "waiting": waiting[key].runs if key in waiting else 0,
            }
            for one in found
            for key in [FlowVersion(one.header.flow, one.terms.version)]
        ]
        if as_json:
            typer.echo(json_text(rows))
        for row in () if as_json else rows:
            when = f"{row['cron']} ({row['zone']})"
            what = f"{row['flow']}@{row['version']}"
            line = f"{row['name']}  {when}  {what}  next {row['next']}"
            ready = f"  runs of this version that wait for a worker: {row['waiting']}"
            typer.echo(clean(line + (ready if row["waiting"] else "")))
        if not rows and not as_json:
            typer.echo("there are none; `weft schedule add NAME CRON FILE` adds one")


@schedule.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The schedule.")],
    journal: options.JournalPlace = None,
    debug: options.Debug = False,
) -> None:
    """Remove a schedule; runs that it has submitted stay."""
    with report_errors(debug=debug):
        from weft.core.ports.queue import queue_of
        from weft.workflow.queue.scheduling import unknown_schedule

        with journal_at(journal) as opened:
            queue = queue_of(opened)
            if not queue.remove_schedule(name):
                raise unknown_schedule(name, queue.schedules())
    typer.echo(f"removed {clean(name)}")
