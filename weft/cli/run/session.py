"""One run from the command line: listeners, answers, output, exit status."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from weft.cli import console
from weft.cli.console import interrupts, leave_at_once, stdout_reserved
from weft.cli.errors import print_traceback
from weft.cli.exit_code import ExitCode
from weft.cli.files import check_writable, events_file, writing
from weft.cli.journal import journal_at, run_reference
from weft.cli.run import ProgressDisplay
from weft.cli.run.document import document
from weft.cli.run.listeners import NodeOutputLog, QuietProgress
from weft.cli.run.questions import AnswerableRun, Questions, keyboard
from weft.cli.text import amount, clean
from weft.core.budget import Budget
from weft.core.errors import InputError, StoreError
from weft.core.events import Listener
from weft.core.ids import NodeId, RunId
from weft.core.ports.store import MemoryStore
from weft.core.redaction import hidden
from weft.engine.analysis.trace import Trace

if TYPE_CHECKING:
    from rich.console import Console

    from weft.cli.run.live import RunView
    from weft.cluster.settings import Placement
    from weft.core.ports.journal import Journal
    from weft.workflow import Flow, FlowResult, Models
    from weft.workflow.document.spec.settings import Durability
    from weft.workflow.runtime.options import AskSettings


_BY_STATUS = {
    "succeeded": ExitCode.SUCCEEDED,
    "partial": ExitCode.PARTIAL,
    "failed": ExitCode.FAILED,
    "cancelled": ExitCode.FAILED,
    "asking": ExitCode.UNANSWERED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOptions:
    """Options of a run, besides its inputs. `answers` are texts by node.

    `approve`: calls of tools that need an approval are approved.

    `silent`: progress is shown, but nothing is printed afterwards unless the run failed.
    `print_streams`: text of models is printed as they write it. `decode`: the default decoder of
    models in this process. `journal`: where the run is recorded, `run`: its id. `metrics_port`:
    where metrics are served; 0 takes a free port. `debug`: failures are printed with tracebacks.
    `on`: where tools run, as in `RunSettings`.
    """

    as_json: bool = False
    quiet: bool = False
    events: Path | None = None
    timeline: Path | None = None
    concurrency: int | None = None
    max_nodes: int | None = None
    deadline_s: float | None = None
    answers: Mapping[str, str] = field(default_factory=dict)
    approve: bool = False
    cache: bool = True
    silent: bool = False
    print_streams: bool = False
    decode: str | None = None
    journal: str | None = None
    durability: Durability | None = None
    run: str | None = None
    metrics_port: int | None = None
    debug: bool = False
    on: Placement | None = None


class PreparedRun(AnswerableRun, Protocol):
    """A prepared run. `recorded`: a journal has it under its `id`.

    `recalled_calls`: calls that were answered from the record. `suspended`: the run was left
    because the journal was not writable.
    """

    @property
    def id(self) -> RunId:
        """The run's id."""

    @property
    def recorded(self) -> bool:
        """Whether a journal has it."""

    @property
    def recalled_calls(self) -> int:
        """How many calls were answered from the record."""

    @property
    def suspended(self) -> bool:
        """Whether it was left because its journal was not writable."""

    async def wait(self) -> FlowResult:
        """Run to the end."""


StartRun = Callable[[Sequence[Listener]], PreparedRun]
"""Prepares the run of a program with these listeners."""


class RunReport(Protocol):
    """The printed report of a run, if it is not the usual one."""

    def text(self, screen: Console, trace: Trace, result: FlowResult) -> None:
        """Print the report."""

    def keys(self) -> Mapping[str, object]:
        """Further keys of the JSON document."""


async def session(flow: Flow, inputs: Mapping[str, object], command: CommandOptions) -> ExitCode:
    """Run a workflow once, with its own models."""
    from weft.workflow import Models

    with journal_for(flow, command) as journal:
        async with Models(decode=command.decode) as models:
            return await flow_session(flow, inputs, command, models, journal).run()


def flow_session(
    flow: Flow,
    inputs: Mapping[str, object],
    command: CommandOptions,
    models: Models,
    journal: Journal | None = None,
) -> Session:
    """The session of a workflow. The caller closes `models` and `journal`."""
    from weft.workflow.runtime.run import FlowRun

    def start(listeners: Sequence[Listener]) -> PreparedRun:
        notes = {"cache": command.cache, "decode": command.decode}
        settings = run_settings(command, journal, listeners, models=models, notes=notes)
        return FlowRun(flow.unit, inputs, settings)

    return Session(start, command, budget_of(flow), journal=journal)


def run_settings(
    command: CommandOptions, journal: Journal | None, listeners: Sequence[Listener], **more: Any
) -> AskSettings:
    """The settings of a run, with `more` of them. Without `journal` it is not recorded."""
    from weft.workflow.runtime.options import AskSettings

    return AskSettings(
        listeners=listeners,
        store=None if command.cache else MemoryStore(),
        concurrency=command.concurrency,
        max_nodes=command.max_nodes,
        deadline=command.deadline_s,
        run=command.run,
        on=command.on,
        journal=journal,
        durability="none" if journal is None else command.durability,
        **more,
    )


def budget_of(flow: Flow) -> Budget | None:
    """The budget of a workflow's runs."""
    spec = flow.document.run.budget
    return None if spec is None else Budget(spec.tokens, spec.time, spec.money)


@contextmanager
def journal_for(flow: Flow, command: CommandOptions) -> Iterator[Journal | None]:
    """The open journal that a run is recorded in; None if it is not recorded."""
    if (command.durability or flow.document.run.durability) == "none":
        yield None
        return
    with journal_at(command.journal, make=True) as journal:
        yield journal


class Session:
    """Runs what `start` prepares, within `budget`, and shows it live in a `view`.

    `ending` is called before anything is printed; its `InputError` becomes a warning. `journal`:
    where the run is recorded; its `once` calls and resumption are reported from there.
    `serial_wall_s`: the measured time of the same workflow with one node at a time, if any.
    """

    def __init__(
        self,
        start: StartRun,
        command: CommandOptions,
        budget: Budget | None = None,
        *,
        view: type[RunView] | None = None,
        report: RunReport | None = None,
        ending: Callable[[], None] | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.serial_wall_s: float | None = None
        self._journal = journal
        self._record: RunId | None = None
        self._recalled_calls = 0
        self._view = view
        self._report = report
        self._ending = ending
        self._start = start
        self._budget = budget
        self._command = command
        self._trace = Trace()
        self._node_outputs = NodeOutputLog()
        self._interrupted = False
        self._suspended = False
        self._progress = self._chosen_progress()
        self._questions = Questions(command.answers, keyboard(), approve=command.approve)
        self._unanswered: tuple[NodeId, ...] = ()

    async def run(self) -> ExitCode:
        """Run to the end and print the result.

        Raises: `BuildError` for defects of the workflow, its inputs or the given answers.
        """
        with ExitStack() as stack:
            if self._command.timeline is not None:
                check_writable(self._command.timeline)
            if self._command.as_json:
                stack.enter_context(stdout_reserved())
            listeners: list[Listener] = [self._trace, self._node_outputs]
            if self._command.events is not None:
                listeners.append(stack.enter_context(events_file(self._command.events)))
            if self._command.metrics_port is not None:
                listeners.append(stack.enter_context(self._metrics(self._command.metrics_port)))
            if self._command.print_streams:
                from weft.cli.run.lines import StreamPrinter

                listeners.append(StreamPrinter(self._progress))
            result = await self._result([*listeners, self._questions, self._progress])
        if self._questions.mistake is not None:
            raise self._correctable(self._questions.mistake)
        # Computing the outputs may fail after the last node has ended.
        self._trace.status, self._trace.reasons = result.status, result.reasons
        code = self._exit_code()
        self._end(self._write_timeline)
        if self._ending is not None:
            self._end(self._ending)
        self._print(result, code)
        if self._record is not None and self._journal is not None:
            self._print_resumption(self._record, self._journal)
        if result.leaked or self._interrupted:
            leave_at_once(code)  # without waiting for a model that is still loading
        return code

    @contextmanager
    def _metrics(self, port: int) -> Iterator[Listener]:
        from weft.workflow.runtime.telemetry import serve_metrics

        with serve_metrics(port) as metrics:
            console.stderr().print(f"metrics at {metrics.address}", soft_wrap=True)
            yield metrics.listener

    async def _result(self, listeners: list[Listener]) -> FlowResult:
        run = self._start(listeners)
        self._record = run.id if run.recorded else None
        with interrupts(lambda: self._stop(run)):
            async with self._progress.shown(), asyncio.TaskGroup() as tasks:
                answering = tasks.create_task(self._questions.serve(run, self._progress))
                result = await run.wait()
                answering.cancel()
            self._unanswered = tuple(question.node for question in result.questions)
            self._recalled_calls, self._suspended = run.recalled_calls, run.suspended
            return replace(
                result,
                outputs=hidden(result.outputs),
                missing=hidden(result.missing),
                reasons=hidden(result.reasons),
            )

    @property
    def wall_s(self) -> float:
        """How long the run took, in seconds."""
        return self._trace.wall_s

    def _stop(self, run: PreparedRun) -> None:
        self._interrupted = True
        run.pause("interrupted")

    def _chosen_progress(self) -> ProgressDisplay:
        if self._command.quiet:
            return QuietProgress(console.stderr)
        screen = console.stderr()
        if screen.is_terminal and not screen.is_dumb_terminal:
            from weft.cli.run.live import LiveProgress, RunView

            view = self._view or RunView
            return LiveProgress(screen, self._trace, self._node_outputs, self._budget, view)
        from weft.cli.run.lines import LineProgress

        return LineProgress(screen, self._trace)

    def _exit_code(self) -> ExitCode:
        if self._interrupted:
            return ExitCode.INTERRUPTED
        if self._unanswered:
            return ExitCode.UNANSWERED
        if self._suspended:
            return ExitCode.SUSPENDED
        return _BY_STATUS[self._trace.status or "failed"]

    def _write_timeline(self) -> None:
        path = self._command.timeline
        if path is not None:
            from weft.cli.timeline.page import page

            with writing(path):
                path.write_text(page(self._trace, self._node_outputs), encoding="utf-8")

    def _end(self, ending: Callable[[], None]) -> None:
        try:
            ending()
        except InputError as error:  # such as a full disk: the result is still printed
            self._warn(error.message)

    def _print(self, result: FlowResult, code: ExitCode) -> None:
        if self._command.silent and code is ExitCode.SUCCEEDED:
            return
        if self._command.as_json:
            from weft.cli.reports.effects import unsettled_calls_data

            text = document(
                self._trace,
                result.outputs,
                result.missing,
                code,
                serial_wall_s=self.serial_wall_s,
                more={
                    **self._earlier(),
                    "unsettled": unsettled_calls_data(
                        self._journal, self._record, result.unsettled
                    ),
                    **({"state": result.state} if result.state else {}),
                    **(self._report.keys() if self._report else {}),
                },
            )
            sys.stdout.write(text + "\n")
        elif self._command.quiet:
            from weft.cli.reports.outcome import print_outputs, print_reasons

            print_outputs(console.stdout(), result.outputs, result.missing)
            if code is not ExitCode.SUCCEEDED:
                print_reasons(console.stderr(), self._trace)
        else:
            self._print_report(console.stdout(), result)
        if self._command.debug:
            for error in result.errors.values():
                print_traceback(error)
        for node in self._questions.unused():
            self._warn(f"no node asked for the answer to {node}")

    def _print_report(self, screen: Console, result: FlowResult) -> None:
        nodes, calls = self._trace.recalled, self._recalled_calls
        recalled = [amount(n, what) for n, what in ((nodes, "node"), (calls, "call")) if n]
        if recalled:
            screen.print(f"from the record, and not done again: {', '.join(recalled)}", style="dim")
        if self._report is not None:
            self._report.text(screen, self._trace, result)
        else:
            from weft.cli.reports.outcome import print_report

            given = (result.outputs, result.missing, self.serial_wall_s)
            print_report(screen, self._trace, *given, left=self._left())

    def _earlier(self) -> dict[str, object]:
        """The keys of the JSON document about earlier parts of the run."""
        recalled = {"nodes": self._trace.recalled, "calls": self._recalled_calls}
        return {"parts": self._trace.parts, "recalled": recalled}

    def _correctable(self, mistake: InputError) -> InputError:
        """The error of an answer that does not fit; for a recorded run with how to correct it."""
        if self._record is not None and mistake.hint is None:
            name = run_reference(self._record, self._command.journal)
            answer = f"weft resume {name} --answer {mistake.node}=VALUE"
            mistake.hint = f"what is done is kept: {answer}"
        return mistake

    def _left(self) -> str | None:
        """Why a resumable run was left; None for one that ended by itself."""
        if self._record is None or self._trace.status not in ("cancelled", "asking"):
            return None
        if self._interrupted:
            return "was interrupted"
        if self._suspended:
            return "was suspended"
        return "waits for an answer" if self._unanswered else None

    def _print_resumption(self, run: RunId, journal: Journal) -> None:
        """Print the run's calls of `once` tools, and how to resume it."""
        left = self._interrupted or self._suspended or bool(self._unanswered)
        if not left and self._trace.parts == 1 and self._trace.status == "succeeded":
            return
        from weft.cli.reports.effects import print_once_calls, print_resume_hint

        screen = console.stderr()
        try:
            if self._trace.parts > 1 or self._trace.status != "succeeded":
                print_once_calls(screen, journal, run, self._command.journal)
        except StoreError as error:
            self._warn(error.message)
        if left:
            asking, place = self._unanswered, self._command.journal
            why = "suspended" if self._suspended else "it waits"
            why = "interrupted" if self._interrupted else why
            print_resume_hint(screen, run, asking, place, why)

    def _warn(self, text: str) -> None:
        console.stderr().print(f"warning: {clean(text)}", style="yellow", soft_wrap=True)
