"""`weft resume`: continues a run that was interrupted, asks a person, or failed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options
from weft.cli.errors import report_errors, statuses
from weft.cli.exit_code import ExitCode
from weft.cli.journal import journal_at
from weft.cli.text import clean, json_text

if TYPE_CHECKING:
    from weft.cli.run.session import CommandOptions
    from weft.core.ports.journal import Journal
    from weft.durability.calls import Confirmation
    from weft.workflow.history.resume import ResumableRun
    from weft.workflow.history.workflow_diff import WorkflowDiff

HELP = f"""Go on with a run: what is finished is not done again.

A run that was interrupted goes on where it was, also inside maps, loops and workflows; what is
asked can be answered with --answer or by `weft answer`. Of a run that had ended, what failed is
tried again. Inputs and settings are those it was started with, but for --budget. Where tools run is
not recorded: the workflow says it, or --on. Of a run that has succeeded nothing is left to do: that
is said, and is no failure.

A workflow that has changed since is refused, and the change shown node by node; --accept-changes
goes on with it, and keeps what is the same. A tool whose effect is `once` is not called again where
nobody knows whether it was carried out, nor where its call was made with other inputs: find out,
and say so with --confirm. NODE may be a pattern: 'first[*]/charge=repeat'.

\b
Exit status:
{statuses()}
"""


def resume(
    run: options.Run = "last",
    answer: options.GivenAnswers = None,
    yes: options.ApproveCalls = False,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Go on although the workflow has changed.")
    ] = False,
    confirm: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE=WORD",
            help="Of a call that must not be repeated: done (or done:JSON, with its result), or "
            "repeat. Repeat the option for more.",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="TOKENS",
            help="The run may spend so much in all, such as 20000tok, from now on.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where the workflow is now.", exists=True, dir_okay=False
        ),
    ] = None,
    as_json: options.AsJson = False,
    events: options.EventsFile = None,
    timeline: options.TimelineFile = None,
    journal: options.JournalPlace = None,
    on: options.OnCluster = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print the outputs and nothing else.")
    ] = False,
    debug: options.Debug = False,
) -> None:
    """See `HELP`."""
    answers = options.pairs(answer or (), "--answer")
    confirmations = options.pairs(confirm or (), "--confirm")
    tokens = None if budget is None else options.token_count(budget)
    place = options.placement(on)
    with report_errors(debug=debug, as_json=as_json):
        from weft.cli.console import stderr
        from weft.cli.reports.show import print_losses
        from weft.cli.run.session import CommandOptions
        from weft.cli.studies.recorded import resume_recorded
        from weft.optimisation.notes import is_study
        from weft.workflow.history.resume import RunSucceeded, WorkflowChanged, claim_run
        from weft.workflow.history.run_history import find_run

        command = CommandOptions(
            as_json=as_json,
            quiet=quiet,
            debug=debug,
            events=events,
            timeline=timeline,
            answers=answers,
            approve=yes,
            journal=journal,
            on=place,
        )
        confirmed = {node: _confirmation(text) for node, text in confirmations.items()}
        with journal_at(journal) as opened:
            if is_study(opened.header(find_run(opened, run)).settings):
                code = resume_recorded(run, opened, as_json=as_json, place=journal)
                raise typer.Exit(code)
            try:
                claimed = claim_run(
                    opened,
                    run,
                    file=file,
                    accept_changes=accept_changes,
                    confirmed=confirmed,
                    as_written=True,
                )
            except WorkflowChanged as error:
                _show(error.changes)
                raise
            except RunSucceeded as error:
                if answers or confirmations or accept_changes:
                    raise  # nothing is left to do with them
                stderr().print(clean(error.message), soft_wrap=True)
                if as_json:
                    data = {"run": error.run, "status": "succeeded", "exit_code": 0}
                    typer.echo(json_text(data))
                return
            print_losses(stderr(), claimed.history.losses)
            if any(node.may_act_twice for node in claimed.changes.nodes):
                _show(claimed.changes)
            code = _resumed(claimed, opened, command, tokens)
    raise typer.Exit(code)


def _resumed(
    claimed: ResumableRun, journal: Journal, command: CommandOptions, tokens: int | None
) -> ExitCode:
    """Run the next part to its end; `tokens` replace those of its budget."""
    from weft.cli.run.resumed import run_live
    from weft.workflow.history.resume import resume_run

    limit = None if tokens is None else claimed.limit_of(tokens)
    try:
        return asyncio.run(
            run_live(
                lambda settings: resume_run(claimed, **settings),
                claimed.history.header,
                claimed.unit,
                command,
                journal,
                limit,
            )
        )
    finally:
        claimed.release()


def _show(changes: WorkflowDiff) -> None:
    """Print the changes of a workflow that prevent the resumption, or may repeat calls."""
    from weft.cli.console import stderr
    from weft.cli.reports.difference import print_changes

    print_changes(stderr(), changes)


def _confirmation(text: str) -> Confirmation:
    from weft.workflow.history.confirmations import parse_confirmation

    confirmation = parse_confirmation(text)
    if confirmation is None:
        message = f"expected done, done:JSON or repeat, got {text!r}"
        raise typer.BadParameter(message, param_hint="--confirm")
    return confirmation
