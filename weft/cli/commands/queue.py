"""`weft queue`: lists the runs that wait for a worker, lets one be tried again, cancels one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from weft.cli.errors import report_errors
from weft.cli.journal import journal_at, run_reference
from weft.cli.options import Debug, JournalPlace, Json, Run, one_of
from weft.cli.text import amount, clean, json_text

if TYPE_CHECKING:
    from weft.core.ports.queue import QueueState

_STATES: Final = ("queued", "running", "asking", "stopped", "ended")

queue = typer.Typer(
    help="The runs in the queue of a journal: list them, retry one, cancel one.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@queue.command("list")
def list_command(
    state: Annotated[
        list[str] | None,
        typer.Option(metavar="STATE", help=f"Only these: {', '.join(_STATES)}; repeat it."),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="At most so many.", min=1)] = 50,
    as_json: Json = False,
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """List the runs that have not ended, in the order in which workers take them.

    The column `version` names the workflow and the version that a worker must have.
    """
    states: tuple[QueueState, ...] = tuple(
        one_of(each, _STATES, "--state") for each in state or _STATES[:-1]
    )
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.console import stdout
        from weft.cli.queue import entry_data, print_entries
        from weft.core.ports.queue import queue_of
        from weft.workflow.queue.waiting import waiting_versions

        with journal_at(journal, to_read=True) as opened:
            entries = queue_of(opened).entries(states, limit + 1)
            waiting = waiting_versions(opened, datetime.now(UTC).timestamp())
        if as_json:
            typer.echo(json_text([entry_data(entry, waiting) for entry in entries[:limit]]))
        elif entries:
            print_entries(stdout(), entries[:limit], waiting, datetime.now(UTC))
            if len(entries) > limit:
                typer.echo("there are more: raise --limit")
        else:
            none = f"no run is {' or '.join(state)}" if state else "no run waits"
            typer.echo(f"{none}; `weft submit FILE` submits one")


@queue.command()
def retry(run: Run, journal: JournalPlace = None, debug: Debug = False) -> None:
    """Let a worker try again a run that failed, was cancelled or was stopped.

    What is finished is kept.
    """
    with report_errors(debug=debug):
        from weft.core.errors import InputError
        from weft.core.ports.queue import queue_of
        from weft.workflow.history.run_history import find_run, read_history
        from weft.workflow.history.unsettled_calls import unsettled_calls

        with journal_at(journal) as opened:
            found = find_run(opened, run)
            queue_of(opened).requeue(found)
            entry = queue_of(opened).entry(found)
            history = read_history(opened, found)
        if entry is not None and entry.state == "ended":
            hint = "submit its inputs again, with another key"
            raise InputError(f"the run {found!r} has {entry.status}", hint=hint)
        state = "not in the queue" if entry is None else entry.state
        typer.echo(f"{clean(found)} is {state}")
        ready = state == "queued"
        for node in {call.node: None for call in unsettled_calls(history.records) if ready}:
            typer.echo(_undecided(found, node, journal), err=True)


@queue.command()
def cancel(
    run: Run,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; it is recorded.")] = "cancelled",
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """End a run: at once where it waits, soon where a worker executes it."""
    with report_errors(debug=debug):
        from weft.workflow.history.cancel import cancel_run
        from weft.workflow.history.run_history import find_run, standing_word

        with journal_at(journal) as opened:
            found = find_run(opened, run)
            done = cancel_run(opened, found, reason)
            ended = standing_word(opened.summary(found))
        typer.echo(f"{clean(found)} {f'has ended: {ended}' if done else 'ends soon'}")


@queue.command()
def versions(as_json: Json = False, journal: JournalPlace = None, debug: Debug = False) -> None:
    """Count the runs that have not ended, by the version that a worker needs."""
    with report_errors(debug=debug, as_json=as_json):
        from collections import Counter

        from weft.core.ports.queue import queue_of
        from weft.workflow.queue.waiting import version_of_entry, waiting_versions

        with journal_at(journal, to_read=True) as opened:
            waiting = waiting_versions(opened, datetime.now(UTC).timestamp())
            entries = queue_of(opened).entries(("queued", "running", "asking", "stopped"))
        counted = Counter(version_of_entry(entry) for entry in entries)
        if as_json:
            rows = [
                {**key._asdict(), "runs": n, "waiting": waiting[key].runs if key in waiting else 0}
                for key, n in counted.items()
            ]
            typer.echo(json_text(rows))
        for key, number in () if as_json else counted.most_common():
            line = f"{clean(key.flow)}@{key.version}  {amount(number, 'run')}"
            typer.echo(line + (f"  {waiting[key].note}" if key in waiting else ""))


@queue.command()
def workers(as_json: Json = False, journal: JournalPlace = None, debug: Debug = False) -> None:
    """List the workers that are alive: where, with which workflows, and what they execute."""
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.queue import worker_line
        from weft.workflow.queue.live_workers import live_workers

        with journal_at(journal, to_read=True) as opened:
            found = live_workers(opened)
    if as_json:
        typer.echo(json_text([worker.data() for worker in found]))
    for worker in () if as_json else found:
        typer.echo(worker_line(worker))
    if not found and not as_json:
        typer.echo("no worker is alive; `weft worker FILE` starts one")


def _undecided(run: str, node: str, journal: str | None) -> str:
    """What to do about a call of `node` that may have been carried out."""
    from weft.engine.scheduler.effects import word_for

    words = f"{word_for(node, 'done:JSON')} or {word_for(node, 'repeat')}"
    return (
        f"nobody knows whether a call of {clean(node)} was carried out: unless you decide, "
        f"it fails again. weft resume {run_reference(run, journal)} --confirm {clean(words)}"
    )
