"""Resumption of a run that has not ended, or has failed; finished nodes do not run again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from weft.core.budget import Budget
from weft.core.errors import BuildError, InputError
from weft.core.ids import RunId
from weft.core.ports.journal import Claim, Journal, Letter
from weft.core.ports.queue import TakenRun
from weft.durability.calls import Confirmation
from weft.durability.journal.resume_state import RecordedResumeState
from weft.engine import BudgetLimit
from weft.workflow.compile.sources import digests_like
from weft.workflow.document.secrets import redactor_of
from weft.workflow.document.unit import Unit
from weft.workflow.history.confirmations import (
    check_results,
    confirmations_of,
    corrected_nodes,
    finished_counts,
)
from weft.workflow.history.recorded_workflow import rebuild_unit
from weft.workflow.history.run_history import RunHistory, find_run, read_history
from weft.workflow.history.unsettled_calls import acted_calls
from weft.workflow.history.workflow_diff import WorkflowDiff, diff_workflow
from weft.workflow.runtime.options import RunSettings, settings_of
from weft.workflow.runtime.recording import PriorRun
from weft.workflow.runtime.run import FlowRun


class WorkflowChanged(BuildError):
    """The workflow differs from the run's recorded one; `changes` lists the differences."""

    def __init__(self, message: str, changes: WorkflowDiff, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.changes = changes


class RunSucceeded(InputError):
    """The run has succeeded, so nothing is left to do."""

    def __init__(self, run: RunId) -> None:
        hint = f"see it with `weft runs show {run}`, repeat it with `weft replay {run}`"
        super().__init__(f"{run} has succeeded: nothing is left to do", hint=hint)
        self.run = run


@dataclass(frozen=True, slots=True)
class ResumableRun:
    """A run that this process has claimed, with all that is needed to continue it.

    `settings` are those that the run began with, by name; `inputs` its inputs. The caller makes a
    `FlowRun` of it, or calls `release`.
    """

    journal: Journal
    unit: Unit
    history: RunHistory
    past: PriorRun
    changes: WorkflowDiff
    inputs: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def run(self) -> RunId:
        """The run's id."""
        return self.history.run

    def limit_of(self, tokens: int) -> BudgetLimit:
        """The budget of the run, with another limit of tokens."""
        limit = RunSettings(**self.settings).options(self.unit).limit or BudgetLimit(Budget())
        return replace(limit, budget=replace(limit.budget, tokens=tokens))

    def release(self) -> None:
        """Release the claim. Harmless when repeated."""
        if self.past.claim is not None:
            self.past.claim.release()


def claim_run(
    journal: Journal,
    run: str,
    *,
    unit: Unit | None = None,
    file: Path | None = None,
    accept_changes: bool = False,
    confirmed: Mapping[str, Confirmation] | None = None,
    as_written: bool = False,
    taken: TakenRun | None = None,
) -> ResumableRun:
    """Claim a run to continue it, on the workflow that it began with.

    `unit`, or the one in `file`, is the current workflow; by default it is read from where it was.
    With `accept_changes` it may differ: outcomes are kept where a node and its inputs are the same.
    `confirmed`: a person's decisions about calls whose end is unknown, or that would be repeated
    with other arguments; by node, or by a pattern such as `first[*]/charge`. A confirmation applies
    to calls that need one now, never to a call that has not begun. `as_written`: no tools are
    substituted, so that confirmed values are checked by the result types of the workflow's tools;
    else each call checks its own. `taken`: the run, where it was taken from the queue.

    Raises: `UnknownReference`, `RunBusy`, `WorkflowChanged`, `BuildError`, `RunSucceeded`,
    `InputError` when `confirmed` names a call whose end is known, `StoreError`.
    """
    if taken is None:
        run_id = find_run(journal, run)
        losses = journal.losses(run_id)
        claim = journal.claim(run_id)  # adds what is known of them
    else:
        run_id, losses, claim = taken.run, taken.losses, taken.claim
    try:
        history = read_history(journal, run_id, replace(losses, calls=()))
        if history.ended is not None and history.ended.status == "succeeded":
            raise RunSucceeded(run_id)
        unit = rebuild_unit(history.header, file) if unit is None else unit
        effects = acted_calls(history.records)
        differences = diff_workflow(
            history.header, unit, finished_counts(history), Counter(call.node for call in effects)
        )
        if differences.matter and not accept_changes:
            raise WorkflowChanged(
                f"the workflow of {run_id} has changed since it was started",
                differences,
                hint="--accept-changes goes on with what it is now; what is the same is kept",
            )
        signals = journal.letters(run_id)  # each is delivered once
        confirmations = confirmations_of(signals, history, differences, effects, confirmed or {})
        if as_written:
            check_results(unit, history.records, confirmations)
        return _resumable(journal, claim, unit, history, differences, confirmations, signals)
    except BaseException:
        claim.release()
        raise


def resume_run(claimed: ResumableRun, *, own: Journal | None = None, **settings: Any) -> FlowRun:
    """Prepare the next part of a run; `settings` are those of `RunSettings` that differ.

    `own` is closed with the run. Raises: `BuildError`, `InputError`, and then releases the run.
    """
    given = {key: value for key, value in settings.items() if value is not None}
    own_settings = {**claimed.settings, **given, "run": claimed.run, "journal": claimed.journal}
    merged = RunSettings(**own_settings)
    if merged.durability_of(claimed.unit) == "none":
        merged = replace(merged, durability="sync")  # a recorded run stays recorded
    try:
        return FlowRun(claimed.unit, claimed.inputs, merged, replace(claimed.past, own=own))
    except BaseException:
        claimed.release()
        raise


def _resumable(
    journal: Journal,
    claim: Claim,
    unit: Unit,
    history: RunHistory,
    differences: WorkflowDiff,
    confirmed: dict[str, Confirmation],
    signals: Sequence[Letter],
) -> ResumableRun:
    redactor = redactor_of(unit, history.header.secrets)
    past = PriorRun(
        RecordedResumeState(
            history.records, skip=corrected_nodes(history, confirmed), restore=redactor.restore
        ),
        redactor,
        claim,
        tuple(numbered.record for numbered in history.records),
        confirmed,
        tuple(signal for signal in signals if signal.kind != "confirm"),
        digests=digests_like(history.header),
        unsure=history.losses.unsure,
        gone=frozenset(node.node for node in differences.nodes if node.verdict == "gone"),
    )
    settings = settings_of(history.header.settings)
    inputs: dict[str, Any] = redactor.restore(dict(history.header.inputs))
    return ResumableRun(journal, unit, history, past, differences, inputs, settings)
