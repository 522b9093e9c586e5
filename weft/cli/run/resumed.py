"""Resumption or partial repetition of a recorded run, with the settings it began with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft.cli.exit_code import ExitCode
from weft.evaluation.notes import is_evaluation

if TYPE_CHECKING:
    from weft.cli.evaluation.session import ResumedEvaluation
    from weft.cli.run.session import CommandOptions
    from weft.core.events import Listener
    from weft.core.ports.journal import Journal, RunHeader
    from weft.engine import BudgetLimit
    from weft.workflow import FlowRun
    from weft.workflow.document.unit import Unit

Prepare = Callable[[Mapping[str, Any]], "FlowRun"]
"""Makes the run, with these of its `RunSettings`."""


async def run_live(
    prepare: Prepare,
    header: RunHeader,
    unit: Unit,
    command: CommandOptions,
    journal: Journal,
    limit: BudgetLimit | None = None,
) -> ExitCode:
    """Run to the end what `prepare` makes of `unit`, and print it.

    `limit` replaces the run's budget. Decoder, cache and display are those of the run of `header`.
    """
    from weft.cli.run.live import RunView
    from weft.cli.run.session import Session, budget_of
    from weft.cli.threads.report import ThoughtDisplay
    from weft.core.ports.store import MemoryStore
    from weft.workflow import Models
    from weft.workflow.flow import Flow
    from weft.workflow.history.recorded_workflow import strategy_of
    from weft.workflow.runtime.models.factory import check_models
    from weft.workflow.runtime.options import settings_of

    for included in unit.everything():
        check_models(included)  # also imports clients, which would block the event loop later
    strategy = strategy_of(header, unit)
    shown = None if strategy is None else ThoughtDisplay(strategy)
    evaluated = _evaluation(header, journal)
    given_limit = limit or settings_of(header.settings).get("budget")
    budget = budget_of(Flow.of(unit)) if given_limit is None else given_limit.budget
    decode = header.settings.get("decode")
    store = MemoryStore() if header.settings.get("cache") is False else None
    async with Models(decode=decode if isinstance(decode, str) else None) as models:

        def start(listeners: Sequence[Listener]) -> FlowRun:
            if evaluated is not None:
                listeners = [*listeners, *evaluated.listeners]
            settings = {"listeners": listeners, "models": models, "store": store}
            run = prepare({**settings, "budget": limit, "on": command.on})
            if shown is not None:
                shown.run = run
            if evaluated is not None:
                evaluated.watch(run)
            return run

        session = Session(
            start,
            command,
            budget,
            view=RunView if shown is None else shown.view,
            report=evaluated if shown is None else shown.report,
            journal=journal,
        )
        code = await session.run()
    return code if evaluated is None else evaluated.exit_code(code)


def _evaluation(header: RunHeader, journal: Journal) -> ResumedEvaluation | None:
    """The report of an evaluation; None for another run."""
    if not is_evaluation(header.settings):
        return None
    from weft.cli.evaluation.session import ResumedEvaluation

    return ResumedEvaluation(header, journal)
