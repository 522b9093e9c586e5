"""`weft runs`: lists recorded runs, shows one, checks, prunes, exports and imports."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.errors import report_errors
from weft.cli.exit_code import ExitCode
from weft.cli.journal import histories_at, journal_at
from weft.cli.options import Debug, JournalPlace, Json, Run, byte_count, run_name, seconds
from weft.cli.text import amount, clean, json_text
from weft.core.ids import RunId

if TYPE_CHECKING:
    from weft.workflow.history.run_history import RunHistory
    from weft.workflow.runtime.results.result import FlowResult

Flow = Annotated[str | None, typer.Option(metavar="NAME", help="Only runs of this workflow.")]
Limit = Annotated[int, typer.Option(metavar="N", help="At most so many.", min=1)]

runs = typer.Typer(
    help="List the runs that were recorded, the latest first; or look at one.",
    invoke_without_command=True,
    rich_markup_mode=None,
)


@runs.callback()
def list_runs(
    context: typer.Context,
    flow: Flow = None,
    limit: Limit = 20,
    as_json: Json = False,
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """List the runs that were recorded, the latest first; or look at one.

    Exit status 3: the journal has lost a run, and says so.
    """
    if (command := context.invoked_subcommand) is not None:
        if flow or journal or as_json or debug:
            raise typer.BadParameter(f"options come behind the command: weft runs {command} ...")
        return
    _print_list(flow, limit, as_json, journal, debug)


@runs.command("list")
def list_command(
    flow: Flow = None,
    limit: Limit = 20,
    as_json: Json = False,
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """List runs, as `weft runs` alone does."""
    _print_list(flow, limit, as_json, journal, debug)


def _print_list(
    flow: str | None, limit: int, as_json: bool, journal: str | None, debug: bool
) -> None:
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.console import stderr, stdout
        from weft.cli.reports.show import print_lost_runs, print_runs, run_data
        from weft.workflow.history.run_history import queue_states, standing_word, with_beginning

        with journal_at(journal, to_read=True) as opened:
            queued = queue_states(opened)
            listed = [
                (with_beginning(opened, run), queued.get(run.run) or standing_word(run))
                for run in opened.runs(flow=flow, limit=limit)
            ]
            gone = opened.lost_runs()
        if as_json:
            typer.echo(json_text([run_data(*one) for one in listed]))
        elif listed:
            print_runs(stdout(), listed, datetime.now(UTC))
        elif not gone:
            typer.echo("no run is recorded; `weft run FILE` records one")
        print_lost_runs(stderr(), gone)
        if gone:
            raise typer.Exit(ExitCode.PARTIAL)


Salvage = Annotated[
    bool,
    typer.Option("--salvage", help="Of a damaged record take what is sound, and say what is not."),
]


@runs.command()
def show(
    run: Run,
    outputs: Annotated[bool, typer.Option("--outputs", help="Print what it came to, too.")] = False,
    salvage: Salvage = False,
    as_json: Json = False,
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """Show a run: how its nodes ended, what it asks, which effects it had, what it took.

    Exit status 3: something of its record is missing or damaged, and said.
    """
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.console import stdout
        from weft.cli.reports.outcome import print_outputs
        from weft.cli.reports.show import history_data, print_lost_calls, print_run, result_data
        from weft.durability.journal.refusals import RunLost
        from weft.workflow.history.answers import answered_nodes
        from weft.workflow.history.run_history import (
            find_run,
            read_history,
            salvage_history,
            standing_word,
            with_beginning,
        )

        with journal_at(journal, to_read=True) as opened:
            try:
                summary = opened.summary(find_run(opened, run))
            except RunLost:
                print_lost_calls(stdout(), opened.lost_runs(), run)
                raise
            read = salvage_history if salvage else read_history
            history, standing = read(opened, summary.run), standing_word(summary)
            answered = answered_nodes(opened, summary.run)
            summary = with_beginning(opened, summary)
        result = _result(history) if outputs else None
        if as_json:
            data = history_data(history, summary, standing, answered)
            typer.echo(json_text(data | ({} if result is None else result_data(result))))
        else:
            now = datetime.now(UTC)
            print_run(stdout(), history, summary, standing, now, journal, answered)
            if result is not None:
                stdout().print()
                print_outputs(stdout(), result.outputs, result.missing, result.state)
        if history.losses.notes:
            raise typer.Exit(ExitCode.PARTIAL)


@runs.command()
def check(as_json: Json = False, journal: JournalPlace = None, debug: Debug = False) -> None:
    """Read a whole journal, and say what of it is damaged or missing; exit status 1 then."""
    with report_errors(debug=debug, as_json=as_json):
        with journal_at(journal, to_read=True) as opened:
            problems, count = list(opened.check()), len(opened.runs())
        if as_json:
            typer.echo(json_text({"sound": not problems, "problems": problems}))
        for problem in () if as_json else problems:
            typer.echo(clean(problem))
        if problems:
            raise typer.Exit(ExitCode.FAILED)
        if not as_json:
            typer.echo(f"{amount(count, 'run')}: all that was recorded is there")


@runs.command()
def prune(
    run: Annotated[
        list[str] | None, typer.Argument(metavar="RUN", help="Remove these, and no others.")
    ] = None,
    keep: Annotated[
        int | None, typer.Option(metavar="N", help="Keep the latest so many.", min=0)
    ] = None,
    older_than: Annotated[
        str | None, typer.Option(metavar="TIME", help="Remove what is older, such as 72h or 30d.")
    ] = None,
    max_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Keep no more than that, such as 500MB.")
    ] = None,
    as_json: Json = False,
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """Remove runs that no process has, and what only they held."""
    older_than_s = None if older_than is None else seconds(older_than)
    size = None if max_bytes is None else byte_count(max_bytes, "--max-bytes")
    if not run and keep is None and older_than_s is None and size is None:
        raise typer.BadParameter("say which: RUN, --keep, --older-than or --max-bytes")
    with report_errors(debug=debug, as_json=as_json):
        from weft.workflow.history.run_history import find_run

        with journal_at(journal) as opened:
            named = [find_run(opened, one) for one in run or ()]
            gone = opened.prune(
                keep=keep, older_than_s=older_than_s, max_bytes=size, runs=named or None
            )
        if as_json:
            data = {"runs": gone.runs, "freed_bytes": gone.freed_bytes, "bytes": gone.left_bytes}
            typer.echo(json_text(data))
        else:
            freed = f"{gone.freed_bytes:,} bytes freed, {gone.left_bytes:,} left"
            typer.echo(f"{amount(len(gone.runs), 'run')} removed, {freed}")


@runs.command()
def export(
    run: Run,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The cassette to write.", dir_okay=False)
    ],
    salvage: Salvage = False,
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """Write a run to a file of its own, which replays anywhere: secrets were left out.

    Exit status 3: something of its record is missing or damaged, and said.
    """
    with report_errors(debug=debug):
        from weft.cli.console import stderr
        from weft.cli.reports.show import print_losses
        from weft.workflow.history.cassette_file import write_cassette

        (history,) = histories_at(journal, run, salvage=salvage)
        size = write_cassette(history, file)
        typer.echo(f"wrote {file}, {size:,} bytes")
        if history.losses.notes:
            print_losses(stderr(), history.losses)
            raise typer.Exit(ExitCode.PARTIAL)


@runs.command("import")
def import_file(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A cassette.", exists=True, dir_okay=False),
    ],
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="RUN", help="Give it another id.", callback=run_name),
    ] = None,
    journal: JournalPlace = None,
    debug: Debug = False,
) -> None:
    """Add a run from a file that `weft runs export` wrote."""
    with report_errors(debug=debug):
        from weft.workflow.history.cassette_file import import_run, read_cassette

        history = read_cassette(file)
        with journal_at(journal, make=True) as opened:
            run = import_run(opened, history, None if name is None else RunId(name))
        typer.echo(f"imported {clean(run)}")


def _result(history: RunHistory) -> FlowResult:
    from weft.workflow.history.recorded_workflow import result_of  # imports the reader of workflows

    return result_of(history)
