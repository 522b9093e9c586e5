"""Studies from the command line: begin, show, write what was chosen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import typer

from weft.cli.console import stderr, stdout
from weft.cli.exit_code import ExitCode
from weft.cli.files import check_writable, writing
from weft.cli.journal import journal_at, run_reference
from weft.cli.studies.page import study_page
from weft.cli.studies.report import print_preview, print_study
from weft.cli.text import clean, json_text, plain
from weft.core.errors import InputError
from weft.optimisation.data_size import shortage
from weft.optimisation.edits.patch import check_beside
from weft.optimisation.optimise import (
    optimise,
    recorded_result,
    resume_study,
    until_interrupted,
)
from weft.optimisation.preview import preview_study
from weft.optimisation.record import find_study
from weft.optimisation.result import FrontMember, StudyResult
from weft.optimisation.study import Study
from weft.workflow import load
from weft.workflow.history.recorded_workflow import rebuild_unit
from weft.workflow.history.run_history import RunHistory, read_history

_LOOK_S: Final = 0.5
_TELL_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class StudyReports:
    """What to print and write of a study. `journal`: where runs are; None is the user's own."""

    as_json: bool = False
    page: Path | None = None
    out: Path | None = None
    pick: int | None = None
    journal: str | None = None

    def check(self, file: Path | None) -> None:
        """Raises: `InputError` for a file that cannot be written. `file`: the workflow."""
        if self.page is not None:
            check_writable(self.page)
        if self.out is not None and file is not None:
            check_beside(self.out, file)
        if self.pick is not None and self.out is None:
            raise InputError("--pick writes a workflow", hint="say where: --out better.yaml")

    def give(self, result: StudyResult, file: Path | None) -> None:
        """Print the study and write what was asked for; `file` is its workflow."""
        chosen = self._chosen(result)
        if self.as_json:
            typer.echo(result.to_json())
        else:
            print_study(stdout(), result)
        if self.page is not None:
            with writing(self.page):
                self.page.write_text(study_page(result), encoding="utf-8")
        if self.out is None:
            return
        if chosen is None:
            said = "nothing was shown to be better"
            if result.finished:
                said += ": --pick N writes one of the front"
            elif result.run:
                said += f" yet: weft resume {result.run}, then weft optimise show"
            stderr().print(f"{clean(str(self.out))} was not written: {said}", soft_wrap=True)
            return
        if file is None:
            hint = "in Python: study.front[0].apply(flow)"
            raise InputError(f"the workflow of {result.run} is in no file", hint=hint)
        with writing(self.out):
            chosen.patch.apply_to_file(file, out=self.out)
        stderr().print(
            f"wrote {clean(str(self.out))}: weft diff {clean(str(file))} {clean(str(self.out))}",
            soft_wrap=True,
        )

    def _chosen(self, result: StudyResult) -> FrontMember | None:
        if self.pick is None:
            return result.best if result.improved else None
        if self.pick > len(result.front):
            what = f"there is no workflow {self.pick} in the front of {len(result.front)}"
            raise InputError(what, hint=f"weft optimise show {result.run or 'RUN'}")
        return result.front[self.pick - 1]


def preview(file: str, given: Mapping[str, Any], *, as_json: bool) -> ExitCode:
    """Print what a study would be over; no model is called."""
    found = preview_study(load(file), **given)
    if as_json:
        typer.echo(json_text(plain(asdict(found))))
    else:
        print_preview(stdout(), found)
    return ExitCode.SUCCEEDED


def study(file: str, reports: StudyReports, **given: Any) -> ExitCode:
    """Run a study of the workflow in `file` to its end, or to Ctrl-C, and report it."""
    reports.check(Path(file))
    flow = load(file)
    with journal_at(reports.journal, make=True) as journal:
        result = asyncio.run(
            until_interrupted(
                lambda watch: watched_study(
                    lambda both: optimise(flow, journal=journal, watch=both, **given), watch
                )
            )
        )
    reports.give(result, Path(file))
    return code_of(result, reports)


def extend_study(run: str, more: str, reports: StudyReports) -> ExitCode:
    """Let a recorded study take more, run it to its end, or to Ctrl-C, and report it."""
    reports.check(None)
    with journal_at(reports.journal) as journal:
        found = find_study(journal, run)
        file = _file_of(read_history(journal, found))
        result = asyncio.run(
            until_interrupted(
                lambda watch: watched_study(
                    lambda both: resume_study(found, journal=journal, more=more, watch=both), watch
                )
            )
        )
    reports.give(result, file)
    return code_of(result, reports)


def code_of(result: StudyResult, reports: StudyReports) -> ExitCode:
    """The exit status; says how a study that was interrupted goes on."""
    if result.finished:
        return ExitCode.SUCCEEDED
    if result.run:
        again = run_reference(result.run, reports.journal)
        stderr().print(f"go on with it: weft resume {again}", soft_wrap=True)
    return ExitCode.INTERRUPTED


def show_study(run: str, reports: StudyReports) -> ExitCode:
    """Report a recorded study that has ended."""
    reports.check(None)
    with journal_at(reports.journal, to_read=True) as journal:
        history = read_history(journal, find_study(journal, run))
        result, file = recorded_result(history), _file_of(history)
    reports.give(result, file)
    return ExitCode.SUCCEEDED


def _file_of(history: RunHistory) -> Path | None:
    """The workflow's file."""
    origin = rebuild_unit(history.header).origin
    return None if origin is None else Path(origin.source.file)


async def watched_study(
    begin: Callable[[Callable[[Study], None]], Any], watch: Callable[[Study], None]
) -> StudyResult:
    """The result of the study, whose steps are told on stderr while it runs."""
    told: list[asyncio.Task[None]] = []

    def both(found: Study) -> None:
        watch(found)
        if short := shortage(found.cases.sizes, found.options.shares):
            stderr().print(clean(short), soft_wrap=True)
        told.append(asyncio.create_task(_tell(found)))

    try:
        result: StudyResult = await begin(both)
        return result
    finally:
        for task in told:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _tell(found: Study) -> None:
    """Say which step the study is at: when it changes, and from time to time."""
    console, before, at = stderr(), "", 0.0
    while True:
        step, calls, most = found.progress
        if step and (step != before or time.monotonic() - at >= _TELL_S):
            console.print(f"{step:<10} {calls:,} of {most:,} model calls", soft_wrap=True)
            before, at = step, time.monotonic()
        await asyncio.sleep(_LOOK_S)
