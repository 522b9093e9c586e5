"""Going on with a run that has not ended, or that ended badly: what is done is not done again."""

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
    """The workflow is not the one that the run was recorded of. `changes` says where."""

    def __init__(self, message: str, changes: WorkflowDiff, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.changes = changes


class RunSucceeded(InputError):
    """Nothing of the run is left to do."""

    def __init__(self, run: RunId) -> None:
        hint = f"see it with `weft runs show {run}`, repeat it with `weft replay {run}`"
        super().__init__(f"{run} has succeeded: nothing is left to do", hint=hint)
        self.run = run


@dataclass(frozen=True, slots=True)
class ResumableRun:
    """A run that this process has taken: what is needed to go on with it.

    `settings` are those the run was begun with, by name; `inputs` its inputs. Whoever takes it
    makes a `FlowRun` of it, or calls `release`.
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
        """The budget of the run, but with so many tokens."""
        known = RunSettings(**self.settings).options(self.unit).limit or BudgetLimit(Budget())
        return replace(known, budget=replace(known.budget, tokens=tokens))

    def release(self) -> None:
        """Give it back. Harmless when repeated."""
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
) -> ResumableRun:
    """Take a run to go on with it, on the workflow that it was begun with.

    `unit`, or the one in `file`, is that workflow as it is now; else it is read from where it was.
    With `accept_changes` it may differ: what is finished is kept where a node and its inputs are
    the same. `confirmed`: what a person says of calls that nobody knows the end of, or that would
    be made a second time with other arguments; by node, or by a pattern such as `first[*]/charge`.
    A word holds for the calls that wait for one now, and for no call that has not begun.
    `as_written`: no tools are substituted, so that words are checked by what those of the workflow
    return; else each call checks its own.

    Raises: `UnknownReference`, `RunBusy`, `WorkflowChanged`, `BuildError`, `RunSucceeded`,
    `InputError` when `confirmed` names a call whose end is known, `StoreError`.
    """
    found = find_run(journal, run)
    losses = journal.losses(found)
    claim = journal.claim(found)  # adds what is known of them
    try:
        story = read_history(journal, found, replace(losses, calls=()))
        if story.ended is not None and story.ended.status == "succeeded":
            raise RunSucceeded(found)
        unit = rebuild_unit(story.header, file) if unit is None else unit
        effects = acted_calls(story.records)
        differences = diff_workflow(
            story.header, unit, finished_counts(story), Counter(call.node for call in effects)
        )
        if differences.matter and not accept_changes:
            raise WorkflowChanged(
                f"the workflow of {found} has changed since it was started",
                differences,
                hint="--accept-changes goes on with what it is now; what is the same is kept",
            )
        letters = journal.letters(found)  # they are handed out once
        words = confirmations_of(letters, story, differences, effects, confirmed or {})
        if as_written:
            check_results(unit, story.records, words)
        return _taken(journal, claim, unit, story, differences, words, letters)
    except BaseException:
        claim.release()
        raise


def resume_run(taken: ResumableRun, *, own: Journal | None = None, **settings: Any) -> FlowRun:
    """The next part of a run, prepared: `settings` are those of `RunSettings` that differ.

    `own` is closed with the run. Raises: `BuildError`, `InputError`, and gives the run back.
    """
    given = {key: value for key, value in settings.items() if value is not None}
    said = RunSettings(**{**taken.settings, **given, "run": taken.run, "journal": taken.journal})
    if said.durability_of(taken.unit) == "none":
        said = replace(said, durability="sync")  # it was recorded, and goes on so
    try:
        return FlowRun(taken.unit, taken.inputs, said, replace(taken.past, own=own))
    except BaseException:
        taken.release()
        raise


def _taken(
    journal: Journal,
    claim: Claim,
    unit: Unit,
    story: RunHistory,
    differences: WorkflowDiff,
    confirmed: dict[str, Confirmation],
    letters: Sequence[Letter],
) -> ResumableRun:
    redactor = redactor_of(unit, story.header.secrets)
    past = PriorRun(
        RecordedResumeState(
            story.records, skip=corrected_nodes(story, confirmed), restore=redactor.restore
        ),
        redactor,
        claim,
        tuple(numbered.record for numbered in story.records),
        confirmed,
        tuple(letter for letter in letters if letter.kind != "confirm"),
        digests=digests_like(story.header),
        unsure=story.losses.unsure,
        gone=frozenset(node.node for node in differences.nodes if node.verdict == "gone"),
    )
    settings = settings_of(story.header.settings)
    inputs: dict[str, Any] = redactor.restore(dict(story.header.inputs))
    return ResumableRun(journal, unit, story, past, differences, inputs, settings)
