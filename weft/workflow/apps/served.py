"""Serving of workflows: runs for clients, which may be recorded, asked and continued."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.errors import BuildError, InputError, RunBusy
from weft.core.events import Event, Listener, NodeFinished
from weft.core.ids import RunId
from weft.core.ports import ModelClient
from weft.core.ports.journal import Journal
from weft.workflow.apps.asking import SEND_AGAIN, ContinuedRun
from weft.workflow.document.inputs import CheckedInputs
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import AskNode
from weft.workflow.document.spec.settings import Durability
from weft.workflow.flow import Flow
from weft.workflow.history.resume import RunSucceeded, claim_run, resume_run
from weft.workflow.runtime.models.factory import ModelSource
from weft.workflow.runtime.run import FlowRun


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """`journal`: where runs are recorded; its owner closes it after the runs. None: nowhere.

    `queue`: one of the journal, whose workers continue runs if this process dies. `durability`
    replaces that of each workflow. Raises: `BuildError` for a durability without a journal.
    """

    journal: Journal | None = None
    durability: Durability | None = None
    queue: str | None = None

    def __post_init__(self) -> None:
        if self.journal is None and self.durability not in (None, "none"):
            hint = "journal=weft.open_journal()"
            raise BuildError(f"durability {self.durability!r} needs a journal", hint=hint)

    @property
    def when(self) -> Durability | None:
        """The durability of each run; None: that of its workflow."""
        return "none" if self.journal is None else self.durability


class ServedFlow:
    """Runs of `flow` for clients, any number at once.

    `models` are shared by all runs and closed by their owner; `recording`: where runs are recorded.

    A run is left at a question that nobody answers. `attended`: nodes may ask, since clients can
    answer; calls of tools may need an approval in any case.

    Raises: `BuildError` when the workflow is invalid, or asks a person and is not `attended`.
    """

    def __init__(
        self,
        flow: Flow,
        models: ModelSource | Mapping[str, ModelClient],
        recording: RecordingOptions | None,
        served_as: str,
        *,
        attended: bool = False,
    ) -> None:
        flow.check()
        if not attended:
            _check_unattended(flow, served_as)
        self.flow = flow
        self._models = models
        self._recording = recording or RecordingOptions()

    def start(
        self, inputs: CheckedInputs, listeners: Iterable[Listener], **settings: Any
    ) -> FlowRun:
        """Prepare a run under a unique id: clients often send equal inputs."""
        return self.flow.start(
            inputs,
            listeners=listeners,
            models=self._models,
            journal=self._recording.journal,
            durability=self._recording.when,
            failover_queue=self._recording.queue,
            run=RunId(f"{self.flow.name}-{uuid.uuid4().hex[:16]}"),
            questions="pause",
            **settings,
        )

    def resume(self, past: ContinuedRun, listeners: Iterable[Listener], **settings: Any) -> FlowRun:
        """Prepare the next part of a run.

        Raises: `InputError` where it cannot be continued; `RunBusy` where another request has it,
        or had it since this one came.
        """
        assert self._recording.journal is not None
        try:
            claimed = claim_run(self._recording.journal, past.run, unit=self.flow.unit)
        except RunBusy as error:
            raise RunBusy(f"{past.run} is under way", hint=SEND_AGAIN) from error
        except RunSucceeded as error:
            raise RunBusy(f"{past.run} has ended meanwhile", hint=SEND_AGAIN) from error
        except BuildError as error:
            raise InputError(error.message, hint=error.hint) from error
        try:
            past.check(claimed.history)
        except RunBusy:
            claimed.release()
            raise
        given: dict[str, Any] = {
            "listeners": listeners,
            "models": self._models,
            "answers": past.answers,
        }
        return resume_run(claimed, **given, questions="pause", **settings)

    def ended(self, event: Event) -> str:
        """The top-level node that ended with `event`, and how; empty for other events."""
        if not isinstance(event, NodeFinished) or event.node not in self.flow.nodes:
            return ""
        outcome = event.outcome
        return f"{event.node} {'finished' if outcome.ok else outcome.status}"


def _check_unattended(flow: Flow, served_as: str) -> None:
    for unit in flow.unit.everything():
        for path, step in walk(unit.document.nodes):
            if isinstance(step, AskNode):
                what = f"the workflow {flow.name} asks a person, and {served_as} has nobody to ask"
                hint = "make it an input, or let clients answer (--answers, with a journal)"
                unit.fail(BuildError(what, hint=hint), path, at_key=True)
