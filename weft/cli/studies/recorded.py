"""Recorded studies of `weft.optimise`, as `weft resume` and `weft replay` go on with them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from weft.cli.console import stderr, stdout
from weft.cli.exit_code import ExitCode
from weft.cli.text import clean

if TYPE_CHECKING:
    from weft.core.ports.journal import Journal
    from weft.optimisation.result import StudyResult
    from weft.workflow.history.run_history import RunHistory


def resume_recorded(
    run: str, journal: Journal, *, as_json: bool, place: str | None = None
) -> ExitCode:
    """Go on with a study to its end, or to Ctrl-C, and print its steps and what it found.

    `place`: where `journal` is; None: the user's own.
    """
    from weft.cli.studies.session import StudyReports, code_of, watched_study
    from weft.optimisation.optimise import resume_study, until_interrupted
    from weft.workflow.history.resume import RunSucceeded

    try:
        result = asyncio.run(
            until_interrupted(
                lambda watch: watched_study(
                    lambda both: resume_study(run, journal=journal, watch=both), watch
                )
            )
        )
    except RunSucceeded as error:
        stderr().print(clean(error.message), soft_wrap=True)
        return ExitCode.SUCCEEDED
    _print(result, as_json=as_json)
    return code_of(result, StudyReports(as_json, journal=place))


def replay_recorded(history: RunHistory, *, as_json: bool) -> ExitCode:
    """Search again from the record alone, without a call, and print what that finds."""
    from weft.optimisation.optimise import recorded_result, replayed_study

    result = asyncio.run(replayed_study(history))
    _print(result, as_json=as_json)
    before = recorded_result(history)
    same = before.verdict == result.verdict and before.best.digest == result.best.digest
    if not same:
        stderr().print("the replay differs from its record", style="red")
    return ExitCode.SUCCEEDED if same else ExitCode.FAILED


def _print(result: StudyResult, *, as_json: bool) -> None:
    if as_json:
        typer.echo(result.to_json())
        return
    from weft.cli.studies.report import print_study

    print_study(stdout(), result)
