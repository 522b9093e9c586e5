"""A question as a workflow of one node, which is run, recorded and resumed like any other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.core.errors import BuildError, InputError, WeftError
from weft.core.events import Outcome
from weft.core.ports import ModelClient, ToolRunner
from weft.core.ports.journal import Journal
from weft.core.values import ToolSpec
from weft.engine.scheduler.resume_state import NO_HISTORY
from weft.workflow.document.secrets import redactor_of
from weft.workflow.flow import Flow
from weft.workflow.history.recorded_workflow import question_notes
from weft.workflow.history.resume import claim_run, resume_run
from weft.workflow.runtime.journals import JournalPlace, journal_or_own
from weft.workflow.runtime.models.factory import ModelSource
from weft.workflow.runtime.options import AskSettings, RunSettings, has_fakes
from weft.workflow.runtime.recording import PriorRun
from weft.workflow.runtime.results.result import ANSWER, no_answer_reason
from weft.workflow.runtime.run import FlowRun

CHAT = "chat"
"""The name of a question's model in its workflow."""
Declared = ModelClient | str | Mapping[str, Any]
"""A client, `local:NAME`, `vllm:NAME`, or a mapping as under `models` of a workflow."""


@dataclass(frozen=True, slots=True)
class QuestionFlow:
    """The workflow `flow`, whose node `ANSWER` answers, with its `inputs`.

    `specs`: the tools in its record. `tools` replace declared ones that no file could name.
    """

    flow: Flow
    inputs: Mapping[str, Any]
    specs: Sequence[ToolSpec] = ()
    tools: ToolRunner | None = None

    def start(self, models: ModelSource, settings: AskSettings | None = None) -> FlowRun:
        """Prepare a run, or the next part of the one that the settings name.

        Raises: `BuildError`, `StoreError`, `RunExists`; of the next part also `UnknownReference`,
        `RunBusy`, and `InputError` when the run has another question.
        """
        options = settings or AskSettings()
        if options.models is not None or options.tools is not None:
            hint = "give them to `ask` or `think` itself"
            raise BuildError("settings of a question have no models and no tools", hint=hint)
        given = {**options.given(), "models": models, "tools": self.tools}
        unnamed_fake = options.journal is None and has_fakes(self.flow.unit)
        if (options.durability == "none" or unnamed_fake) and options.resume is None:
            return self._begun(given, options.journal, None)
        with journal_or_own(options.journal) as (journal, own):
            if options.resume is not None:
                return self._resumed(given, journal, own, options)
            return self._begun(given, journal, own)

    def _begun(
        self, given: Mapping[str, Any], journal: JournalPlace | None, own: Journal | None
    ) -> FlowRun:
        unit = self.flow.unit
        notes = question_notes(unit.folder, self.specs)
        past = None if own is None else PriorRun(NO_HISTORY, redactor_of(unit), own=own)
        settings = RunSettings(**{**given, "journal": journal, "notes": notes})
        return FlowRun(unit, self.inputs, settings, past)

    def _resumed(
        self, given: Mapping[str, Any], journal: Journal, own: Journal | None, options: AskSettings
    ) -> FlowRun:
        claimed = claim_run(
            journal, options.resume or "", unit=self.flow.unit, confirmed=options.confirmed
        )
        if dict(claimed.inputs) != dict(self.inputs):
            claimed.release()
            hint = "ask what it asked, or go on with it by `weft resume`"
            raise InputError(f"{claimed.run} asks something else", hint=hint)
        return resume_run(claimed, own=own, **given)


def outcome_of(run: FlowRun) -> Outcome:
    """How the answering node of a finished run ended."""
    result = run.result
    return Outcome("cancelled") if result is None else result.outcomes[ANSWER]


def why_unanswered(run: FlowRun) -> str:
    """Why there is no answer."""
    return no_answer_reason(outcome_of(run))


def error_of_answer(run: FlowRun) -> WeftError | None:
    """The exception of the answering node of a finished run."""
    return None if run.result is None else run.result.errors.get(ANSWER)
