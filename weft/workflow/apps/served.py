"""Serving of workflows: no node may ask a person, and runs may be recorded."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.errors import BuildError
from weft.core.events import Event, Listener, NodeFinished
from weft.core.ids import RunId
from weft.core.ports import ModelClient
from weft.core.ports.journal import Journal
from weft.workflow.document.inputs import CheckedInputs
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import AskNode
from weft.workflow.document.spec.settings import Durability
from weft.workflow.flow import Flow
from weft.workflow.runtime.models.factory import ModelSource
from weft.workflow.runtime.run import FlowRun


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """`journal`: where runs are recorded; its owner closes it after the runs. None: nowhere.

    `durability` replaces that of each workflow. Raises: `BuildError` for a durability without a
    journal.
    """

    journal: Journal | None = None
    durability: Durability | None = None

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

    Raises: `BuildError` when the workflow is invalid, or asks a person.
    """

    def __init__(
        self,
        flow: Flow,
        models: ModelSource | Mapping[str, ModelClient],
        recording: RecordingOptions | None,
        served_as: str,
    ) -> None:
        flow.check()
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
            run=RunId(f"{self.flow.name}-{uuid.uuid4().hex[:16]}"),
            **settings,
        )

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
                unit.fail(BuildError(what, hint="make it an input"), path, at_key=True)
