"""`weft worker`: executes runs of a journal's queue until a signal comes."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import console, options
from weft.cli.console import interrupts, leave_at_once
from weft.cli.errors import report_errors
from weft.cli.exit_code import ExitCode
from weft.cli.journal import tell_new_journal
from weft.cli.queue import applied_line
from weft.cli.text import clean, one_line
from weft.cli.workflow_files import FilesOrFolders, load_all

if TYPE_CHECKING:
    from weft.core.ports.journal import Journal
    from weft.workflow.queue.worker import Worker, WorkerEvent

HELP = """Execute the runs that `weft submit` and schedules leave in a queue.

Workers on any number of machines share a journal on a PostgreSQL server; on one machine a file
will do. A run whose worker died is continued by another one: what is finished is not done again. A
run that asks a person occupies no worker; `weft answer` lets it go on. A run of another version of
a workflow is left to a worker that has it: `weft queue list`. Files of a folder that are no
workflows, or broken ones, are warned of and left out.

The first Ctrl-C (or SIGTERM) drains: no further runs are taken, running nodes may end, and what is
left is continued by other workers. The second ends the process at once.

\b
Exit status:
  0    ended in order
  1    cannot work: no journal, a workflow that cannot run here
  2    wrong usage, or an invalid workflow
  130  ended, but running nodes were cut off
"""


def worker(
    files: FilesOrFolders,
    concurrency: Annotated[
        int, typer.Option(metavar="N", help="At most so many runs at once.", min=1)
    ] = 4,
    queue: Annotated[
        list[str] | None,
        typer.Option("--queue", metavar="NAME", help="Only runs of this queue; repeat it."),
    ] = None,
    grace: Annotated[
        str, typer.Option(metavar="TIME", help="How long a drain waits for running nodes.")
    ] = "30s",
    lease: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="How long after its death this worker is still listed and, on a server, its runs "
            "wait for another one.",
        ),
    ] = "20s",
    schedules: Annotated[
        bool,
        typer.Option(
            "--schedules", help="First register what the workflows declare under `schedule`."
        ),
    ] = False,
    journal: options.JournalPlace = None,
    on: options.OnCluster = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No line for each run.")] = False,
    debug: options.Debug = False,
) -> None:
    """See `HELP`."""
    grace_s, lease_s = options.seconds(grace), options.seconds(lease)
    place = options.placement(on)
    with report_errors(debug=debug):
        from contextlib import closing

        from weft.workflow.queue.declared import apply_schedules
        from weft.workflow.queue.worker import Worker
        from weft.workflow.runtime.journals import open_journal

        flows = load_all(files)
        tell_new_journal(journal)
        with closing(open_journal(journal, lease_s=lease_s)) as opened:
            made = Worker(
                flows,
                opened,
                concurrency=concurrency,
                queues=queue or ("default",),
                grace_s=grace_s,
                lease_s=lease_s,
                on=place,
                report=None if quiet else _print_event,
            )
            for version, flow in made.versions.items():
                typer.echo(f"{clean(flow.name)}@{version}")
            if schedules:
                for one in apply_schedules(opened, [flow.unit for flow in flows], time.time()):
                    typer.echo(applied_line(one), err=True)
            whole = asyncio.run(_serve_until_signal(made, _place(opened)))
    code = ExitCode.SUCCEEDED if whole else ExitCode.INTERRUPTED
    leave_at_once(code)  # without waiting for code that does not react to its cancellation


def _place(opened: Journal) -> str:
    """The journal for a person, without the address of a server; a mistyped path is new."""
    path = getattr(opened, "path", None)
    place = "a journal on a server" if path is None else clean(str(path))
    return place if opened.runs(limit=1) else f"{place}, which has no runs yet"


async def _serve_until_signal(made: Worker, place: str) -> bool:
    screen = console.stderr()

    def stop() -> None:
        text = "taking no more runs; running nodes may end, once more ends them at once"
        screen.print(text, style="dim")
        made.drain()

    with interrupts(stop):
        return await made.serve(
            lambda: screen.print(f"waiting for runs in {place}", style="dim", soft_wrap=True)
        )


_STYLES = {"stopped": "bold red", "changed": "bold red", "asking": "yellow", "left": "magenta"}


def _print_event(event: WorkerEvent) -> None:
    parts = [datetime.now().astimezone().strftime("%H:%M:%S"), event.kind, clean(event.run)]
    if event.attempts > 1:
        parts.append(f"attempt {event.attempts}")
    if event.text:
        parts.append(one_line(event.text, 300))
    console.stderr().print("  ".join(parts), style=_STYLES.get(event.kind), soft_wrap=True)
