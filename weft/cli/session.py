"""One run from the command line: who listens, who answers, what is printed, which exit status."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from weft.cli import console
from weft.cli.document import document
from weft.cli.events_file import events_file
from weft.cli.exit_codes import ExitCode
from weft.cli.interrupts import interrupts, leave_at_once
from weft.cli.keyboard import keyboard
from weft.cli.progress import Progress
from weft.cli.progress.lines import LineProgress
from weft.cli.progress.live import LiveProgress
from weft.cli.progress.quiet import QuietProgress
from weft.cli.questions import Questions
from weft.cli.report import print_outputs, print_report
from weft.cli.reserved import stdout_reserved
from weft.cli.speech import Speech
from weft.cli.text import clean
from weft.cli.timeline.page import page
from weft.core.budget import Budget
from weft.core.errors import InputError
from weft.core.events import Listener
from weft.core.fakes import MemoryStore
from weft.engine.trace import Trace

if TYPE_CHECKING:
    from weft.workflow import Flow, FlowResult, FlowRun, Models

_BY_STATUS = {
    "succeeded": ExitCode.SUCCEEDED,
    "partial": ExitCode.PARTIAL,
    "failed": ExitCode.FAILED,
    "cancelled": ExitCode.FAILED,
}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the command line asks of a run, beside its inputs. `answers` are texts by node.

    `silent`: progress is shown, and nothing printed afterwards unless something went wrong.
    """

    as_json: bool = False
    quiet: bool = False
    events: Path | None = None
    timeline: Path | None = None
    concurrency: int | None = None
    deadline_s: float | None = None
    answers: Mapping[str, str] = field(default_factory=dict)
    cache: bool = True
    silent: bool = False


async def session(flow: Flow, inputs: Mapping[str, object], wishes: Wishes) -> ExitCode:
    """One run on models of its own."""
    from weft.workflow import Models

    async with Models() as models:
        return await Session(flow, inputs, wishes, models).run()


class Session:
    """Runs `flow` once with `inputs`, on `models`, which whoever gives them closes.

    `serial_wall_s`: what the same workflow took one node at a time, if that was measured.
    """

    def __init__(
        self,
        flow: Flow,
        inputs: Mapping[str, object],
        wishes: Wishes,
        models: Models,
    ) -> None:
        self.serial_wall_s: float | None = None
        self._models = models
        self._flow = flow
        self._inputs = inputs
        self._wishes = wishes
        self._trace = Trace()
        self._speech = Speech()
        self._interrupted = False
        self._progress = self._chosen_progress()
        self._questions = Questions(self._trace, wishes.answers, keyboard())

    async def run(self) -> ExitCode:
        """Run to the end and print what is asked for.

        Raises: `BuildError` for what is wrong with the workflow, its inputs or the given answers.
        """
        with ExitStack() as stack:
            if self._wishes.timeline is not None:
                _check_writable(self._wishes.timeline)
            if self._wishes.as_json:
                stack.enter_context(stdout_reserved())
            listeners: list[Listener] = [self._trace, self._speech]
            if self._wishes.events is not None:
                listeners.append(stack.enter_context(events_file(self._wishes.events)))
            result = await self._result([*listeners, self._questions, self._progress])
        if self._questions.mistake is not None:
            raise self._questions.mistake
        # Computing the outputs may fail after the last node has ended: the flow has the last word.
        self._trace.status, self._trace.reasons = result.status, result.reasons
        code = self._exit_code()
        self._write_timeline()
        self._print(result, code)
        if result.leaked or self._interrupted:
            leave_at_once(code)  # not even a model that is still loading holds up the end
        return code

    async def _result(self, listeners: list[Listener]) -> FlowResult:
        run = self._flow.start(
            self._inputs,
            listeners=listeners,
            store=None if self._wishes.cache else MemoryStore(),
            models=self._models,
            concurrency=self._wishes.concurrency,
            deadline_s=self._wishes.deadline_s,
        )
        with interrupts(lambda: self._stop(run)):
            async with self._progress.shown(), asyncio.TaskGroup() as tasks:
                answering = tasks.create_task(self._questions.serve(run, self._progress))
                result = await run.wait()
                answering.cancel()
            return result

    @property
    def wall_s(self) -> float:
        """How long the run took, in seconds."""
        return self._trace.wall_s

    def _stop(self, run: FlowRun) -> None:
        self._interrupted = True
        run.cancel("interrupted")

    def _chosen_progress(self) -> Progress:
        screen = console.stderr()
        if self._wishes.quiet:
            return QuietProgress(screen)
        if screen.is_terminal and not screen.is_dumb_terminal:
            return LiveProgress(screen, self._trace, self._speech, self._budget())
        return LineProgress(screen, self._trace)

    def _budget(self) -> Budget | None:
        spec = self._flow.document.run.budget
        return None if spec is None else Budget(spec.tokens, spec.time, spec.money)

    def _exit_code(self) -> ExitCode:
        if self._interrupted:
            return ExitCode.INTERRUPTED
        if self._questions.unanswered:
            return ExitCode.UNANSWERED
        return _BY_STATUS[self._trace.status or "failed"]

    def _write_timeline(self) -> None:
        path = self._wishes.timeline
        if path is not None:
            try:
                path.write_text(page(self._trace, self._speech), encoding="utf-8")
            except OSError as error:  # the disk filled up meanwhile: the result is worth more
                self._warn(f"cannot write {path}: {error.strerror}")

    def _print(self, result: FlowResult, code: ExitCode) -> None:
        screen = console.stdout()
        if self._wishes.silent and code is ExitCode.SUCCEEDED:
            return
        if self._wishes.as_json:
            text = document(
                self._trace, result.outputs, result.missing, code, serial_wall_s=self.serial_wall_s
            )
            sys.stdout.write(text + "\n")
        elif self._wishes.quiet:
            print_outputs(screen, result.outputs, result.missing)
        else:
            print_report(screen, self._trace, result.outputs, result.missing, self.serial_wall_s)
        for node in self._questions.unused():
            self._warn(f"no node asked for the answer to {node}")

    def _warn(self, text: str) -> None:
        console.stderr().print(f"warning: {clean(text)}", style="yellow", soft_wrap=True)


def _check_writable(path: Path) -> None:
    try:
        path.open("a", encoding="utf-8").close()
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
