"""`weft replay`: replays a recorded run offline; or runs a part of it again, live."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.cli.errors import report_errors
from weft.cli.exit_code import ExitCode
from weft.cli.journal import histories_at, journal_at
from weft.cli.text import clean, json_text

if TYPE_CHECKING:
    from weft.cli.run.session import CommandOptions
    from weft.core.ports.journal import Journal
    from weft.workflow.document.unit import Unit
    from weft.workflow.history.run_history import RunHistory

HELP = """Repeat a recorded run without its models and tools, and compare what it comes to.

Nothing leaves this machine and no time passes: models, tools and people answer as they did; plain
functions, templates and joins run. What is asked otherwise than in the record (a changed prompt,
tool or model) is reported. RUN may be a file that `weft runs export` wrote.

With --from, that node and everything that depends on it run live instead, as a new run that is
recorded; all else comes from the record. A call of a `once` tool that the run made is made again
only where --confirm NODE=repeat says so.

\b
Exit status:
  0    identical; with --from: as `weft run`
  1    something differs, or the run cannot be read
  2    wrong usage, an invalid workflow, or no such run or node
"""


def replay(
    run: options.Run = "last",
    node: Annotated[
        str | None,
        typer.Option("--from", metavar="NODE", help="Run this node, and what needs it, live."),
    ] = None,
    confirm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE=repeat",
            help="With --from: a call that must not be repeated may be made again. NODE may be a "
            "pattern. Repeat the option for more.",
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="A call that differs from its record fails.")
    ] = False,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where the workflow is now.", exists=True, dir_okay=False
        ),
    ] = None,
    answer: options.GivenAnswers = None,
    on: options.OnCluster = None,
    as_json: options.AsJson = False,
    journal: options.JournalPlace = None,
    debug: options.Debug = False,
) -> None:
    """See `HELP`."""
    answers = options.pairs(answer or (), "--answer")
    if node is None and answers:
        raise typer.BadParameter("people answer as they did, unless there is --from NODE")
    if node is not None and strict:
        raise typer.BadParameter("--strict is for a repetition: with --from calls are made live")
    confirmations = options.pairs(confirm or (), "--confirm")
    place = options.placement(on)
    if node is None and (confirmations or place is not None):
        raise typer.BadParameter("nothing is called, unless there is --from NODE")
    if any(answer != "repeat" for answer in confirmations.values()):
        raise typer.BadParameter("expected NODE=repeat", param_hint="--confirm")
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.run.session import CommandOptions
        from weft.cli.studies.recorded import replay_recorded
        from weft.optimisation.notes import is_study
        from weft.workflow.history.recorded_workflow import rebuild_or_read_unit, rebuild_unit

        if node is None:
            history = _history_of(run, journal)
            if is_study(history.header.settings):
                raise typer.Exit(replay_recorded(history, as_json=as_json))
            unit = rebuild_or_read_unit(history.header, file)
            _warn_of_other_flow(history, unit)
            code = _replayed(history, unit, strict, as_json)
        else:
            with journal_at(journal) as opened:
                history = _history_of(run, journal)
                unit = rebuild_unit(history.header, file)
                _warn_of_other_flow(history, unit)
                command = CommandOptions(
                    as_json=as_json, answers=answers, journal=journal, on=place
                )
                code = _forked(history, unit, node, opened, command, confirmations)
    raise typer.Exit(code)


def _history_of(run: str, journal: str | None) -> RunHistory:
    """The run in a cassette file, or in the journal."""
    from weft.workflow.history.cassette_file import read_cassette

    if Path(run).suffix and Path(run).is_file():
        return read_cassette(Path(run))
    (history,) = histories_at(journal, run)
    return history


def _warn_of_other_flow(history: RunHistory, unit: Unit) -> None:
    """Print a warning when the workflow's name differs from that of the run."""
    from weft.cli.console import stderr

    recorded, now = clean(history.header.flow), clean(unit.document.name)
    if recorded != now:
        message = f"warning: this is the workflow {now}; the run is one of {recorded}"
        stderr().print(message, style="yellow", soft_wrap=True)


def _replayed(history: RunHistory, unit: Unit, strict: bool, as_json: bool) -> ExitCode:
    from weft.cli.console import stdout, stdout_reserved
    from weft.cli.reports.replay import print_replay, replay_data
    from weft.workflow.history.replay import replay as repeat

    if as_json:
        with stdout_reserved():
            replayed = repeat(history, unit, strict=strict)
        typer.echo(json_text(replay_data(history.run, replayed)))
    else:
        replayed = repeat(history, unit, strict=strict)
        print_replay(stdout(), history.run, replayed)
    return ExitCode.SUCCEEDED if replayed.ok else ExitCode.FAILED


def _forked(
    history: RunHistory,
    unit: Unit,
    node: str,
    journal: Journal,
    command: CommandOptions,
    repeat: Collection[str],
) -> ExitCode:
    """Run a part of the recorded run again, live."""
    from weft.cli.run.resumed import run_live
    from weft.workflow.history.fork import fork_run

    return asyncio.run(
        run_live(
            lambda settings: fork_run(
                history, unit, node, journal, settings=settings, repeat=repeat
            ),
            history.header,
            unit,
            command,
            journal,
        )
    )
