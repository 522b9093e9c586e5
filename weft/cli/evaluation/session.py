"""Evaluations from the command line: run, show, compare; reports and exit status."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.cli import console
from weft.cli.console import stdout_reserved
from weft.cli.evaluation.report import print_comparison, print_evaluation
from weft.cli.exit_code import ExitCode
from weft.cli.files import check_writable, writing
from weft.cli.journal import journal_at, run_reference
from weft.cli.run.session import CommandOptions, Session, run_settings
from weft.cli.text import clean, json_text, plain
from weft.core.budget import Budget
from weft.core.errors import InputError
from weft.core.events import Listener
from weft.evaluation.baseline import find_baseline, recorded_failures
from weft.evaluation.compare import EvaluationComparison, compare_evaluations
from weft.evaluation.evaluate import ErrorCap, EvaluationRun, program_of
from weft.evaluation.export import comparison_data, evaluation_data, junit
from weft.evaluation.garbage import rare_collections
from weft.evaluation.gate import EvaluationGate
from weft.evaluation.metrics import metrics_of
from weft.evaluation.notes import NOTES
from weft.evaluation.record import check_offline, read_evaluation
from weft.evaluation.result import EvaluationResult
from weft.workflow.history.run_history import find_run, read_history

if TYPE_CHECKING:
    from rich.console import Console

    from weft.core.ports.journal import Journal, RunHeader
    from weft.engine.analysis.trace import Trace
    from weft.workflow import Flow, FlowResult, FlowRun

_LEFT = (ExitCode.UNANSWERED, ExitCode.SUSPENDED, ExitCode.INTERRUPTED)


@dataclass(frozen=True, slots=True)
class EvaluationReports:
    """What to print and write of an evaluation, what it is compared with, and what it must reach.

    `journal`: where runs are; None is the user's own.
    """

    as_json: bool = False
    junit: Path | None = None
    page: Path | None = None
    baseline: str | None = None
    gate: EvaluationGate = field(default_factory=EvaluationGate)
    journal: str | None = None

    def check(self) -> None:
        """Raises: `InputError` for a file that cannot be written, or a gate without a baseline."""
        for path in (self.junit, self.page):
            if path is not None:
                check_writable(path)
        if self.gate.fail_if_worse and self.baseline is None:
            hint = "name one: --baseline RUN, or --baseline last"
            raise InputError("there is no baseline to be no worse than", hint=hint)

    def before(
        self, journal: Journal, flow: str, main: str, data: Mapping[str, Any], besides: str = ""
    ) -> EvaluationResult | None:
        """The baseline, if one was named. Raises: as `find_baseline`."""
        if self.baseline is None:
            return None
        return find_baseline(journal, self.baseline, flow, main, data, besides)

    def gates(self, before: EvaluationResult | None) -> dict[str, Any]:
        """What the record says of the gates, so that they hold for a resumed run as well."""
        if not self.gate.is_given:
            return {}
        named = "" if before is None else self.baseline or ""
        file = named.endswith(".json")
        baseline = str(Path(named).resolve()) if file else "" if before is None else before.run
        return {"gate": self.gate.recorded, "baseline": baseline}

    def conclude(self, result: EvaluationResult, before: EvaluationResult | None) -> ExitCode:
        """Compare with the baseline `before`, write, print, and decide. Raises: `InputError`."""
        found = None if before is None else compare_evaluations(before, result)
        failures = self.gate.failures(result, found)
        self.write(result, found, before, failures)
        if self.as_json:
            against = None if found is None else comparison_data(found)
            data = {**evaluation_data(result), "baseline": against, "failures": list(failures)}
            sys.stdout.write(json_text(plain(data)) + "\n")
        else:
            self._print(result, found, failures)
        return ExitCode.FAILED if failures else ExitCode.SUCCEEDED

    def write(
        self,
        result: EvaluationResult,
        found: EvaluationComparison | None,
        before: EvaluationResult | None,
        failures: tuple[str, ...],
    ) -> None:
        """Write the files that were asked for. Raises: `InputError`."""
        if self.page is not None:
            from weft.cli.evaluation.page import evaluation_page

            with writing(self.page):
                self.page.write_text(evaluation_page(result, found, before), encoding="utf-8")
        if self.junit is not None:
            with writing(self.junit):
                self.junit.write_text(junit(result, failures), encoding="utf-8")

    def _print(
        self,
        result: EvaluationResult,
        found: EvaluationComparison | None,
        failures: tuple[str, ...],
    ) -> None:
        screen = console.stdout()
        print_evaluation(screen, result)
        if found is not None:
            screen.print(f"baseline: {clean(found.a)}", style="dim", soft_wrap=True)
            print_comparison(screen, found)
        elif self.baseline is not None:
            screen.print("no earlier evaluation: this one is the next baseline", style="dim")
        print_failures(screen, failures)
        if not result.finished and result.run:
            again = run_reference(result.run, self.journal)
            screen.print(f"go on: weft resume {again}", style="dim", soft_wrap=True)


class _NoReport:
    """Implements `RunReport` without printing: the evaluation is printed when all is read."""

    def text(self, screen: Console, trace: Trace, result: FlowResult) -> None:
        pass

    def keys(self) -> dict[str, object]:
        return {}


class ResumedEvaluation:
    """Implements `RunReport` for an evaluation that `weft resume` continues.

    The limit of failures is that of the first part, for each part anew; its gates hold again.
    """

    def __init__(self, header: RunHeader, journal: Journal) -> None:
        self._run, self._journal, self._settings = header.run, journal, header.settings
        most = header.settings[NOTES].get("max_errors")
        self._cap = ErrorCap(most if isinstance(most, int) else None)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Further listeners of the run."""
        return self._cap.listeners

    def watch(self, run: FlowRun) -> None:
        """The run, once it is prepared."""
        self._cap.run = run

    def text(self, screen: Console, trace: Trace, result: FlowResult) -> None:  # noqa: ARG002
        """Print the whole evaluation, with its earlier parts, and why it does not pass."""
        print_evaluation(screen, self._result())
        print_failures(screen, self._failures())

    def keys(self) -> dict[str, object]:
        data = {**evaluation_data(self._result()), "failures": list(self._failures())}
        return {"evaluation": plain(data)}

    def exit_code(self, code: ExitCode) -> ExitCode:
        """That of the run, or a failure where it ended and does not pass its gates."""
        ended = code not in _LEFT
        return ExitCode.FAILED if ended and self._failures() else code

    def _failures(self) -> tuple[str, ...]:
        return recorded_failures(self._journal, self._settings, self._result())

    def _result(self) -> EvaluationResult:
        return read_evaluation(read_history(self._journal, self._run))


def evaluate(
    flow: Flow,
    command: CommandOptions,
    reports: EvaluationReports,
    data: str | None,
    metric: Any,
    *,
    budget: dict[str, Any] | None = None,
    **chosen: Any,
) -> ExitCode:
    """Evaluate `flow` in one recorded run; `chosen` are arguments of `program_of`.

    Raises: `BuildError`, `InputError`, `StoreError`.
    """
    program = program_of(flow.unit, data, metric, **chosen)
    reports.check()
    with journal_at(command.journal, make=True) as journal:
        flow_name, main = program.unit.document.name, program.names[0]
        before = reports.before(journal, flow_name, main, program.about_data)
        run = EvaluationRun(replace(program, gates=reports.gates(before)))
        with stdout_reserved() if reports.as_json else nullcontext(), rare_collections():
            recorded = None if command.durability == "none" else journal
            code = asyncio.run(_run(run, command, recorded, budget))
        if code in _LEFT:
            return code
        return reports.conclude(run.result(), before)


async def _run(
    run: EvaluationRun,
    command: CommandOptions,
    journal: Journal | None,
    budget: dict[str, Any] | None,
) -> ExitCode:
    from weft.workflow import Models

    async with Models(decode=command.decode) as models:

        def start(listeners: Sequence[Listener]) -> FlowRun:
            notes = {"cache": command.cache, "decode": command.decode}
            more = {"models": models, "notes": notes, "budget": budget}
            settings = run_settings(command, journal, listeners, **more)
            return run.start(settings.given())

        limit = None if budget is None else Budget(budget.get("tokens"), money=budget.get("money"))
        report = _NoReport()
        return await Session(start, command, limit, report=report, journal=journal).run()


def show_run(run: str, reports: EvaluationReports, metric: Any = None) -> ExitCode:
    """Print a recorded evaluation, scored by `metric` instead where it is given.

    Raises: `UnknownReference`, `InputError`, `BuildError` for a metric that asks a model.
    """
    metrics = metrics_of(metric, Path.cwd())
    check_offline(metrics)
    reports.check()
    with journal_at(reports.journal, to_read=True) as journal:
        result = read_evaluation(read_history(journal, find_run(journal, run)), metrics)
        before = reports.before(journal, result.flow, result.main, result.data, result.run)
    return reports.conclude(result, before)


def compare_runs(a: str, b: str, reports: EvaluationReports, metric: Any = None) -> ExitCode:
    """Print the evaluation `b` beside the baseline `a`; the gate decides about `b`.

    Both are scored by `metric` instead where it is given. Raises: as `show_run`.
    """
    metrics = metrics_of(metric, Path.cwd())
    check_offline(metrics)
    with journal_at(reports.journal, to_read=True) as journal:
        before, after = (
            read_evaluation(read_history(journal, find_run(journal, run)), metrics)
            for run in (a, b)
        )
    found = compare_evaluations(before, after)
    failures = reports.gate.failures(after, found)
    reports.write(after, found, before, failures)
    if reports.as_json:
        data = {**comparison_data(found), "failures": list(failures)}
        sys.stdout.write(json_text(plain(data)) + "\n")
    else:
        screen = console.stdout()
        print_comparison(screen, found)
        print_failures(screen, failures)
    return ExitCode.FAILED if failures else ExitCode.SUCCEEDED


def print_failures(screen: Console, failures: Sequence[str]) -> None:
    """Print why an evaluation does not pass."""
    for why in failures:
        screen.print(f"fails: {clean(why)}", style="bold red", soft_wrap=True)
