"""What serving a workflow asks of it: no node that asks a person, and a place for its record."""

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
    """`journal` is where; whoever gives it closes it, after the runs. None: nowhere.

    `durability` is when what happens is there, in the place of what each workflow says.
    Raises: `BuildError` when there is nowhere to keep what is to be kept.
    """

    journal: Journal | None = None
    durability: Durability | None = None

    def __post_init__(self) -> None:
        if self.journal is None and self.durability not in (None, "none"):
            hint = "journal=weft.workflow.runtime.journals.open_journal()"
            raise BuildError(f"durability {self.durability!r} needs a journal", hint=hint)

    @property
    def when(self) -> Durability | None:
        """The durability of each run; None: what its workflow says."""
        return "none" if self.journal is None else self.durability


class ServedFlow:
    """Runs of `flow` for clients, as many at once as they ask for.

    `models` are shared by all runs and closed by whoever gives them; `kept`: which are recorded.

    Raises: `BuildError` when the workflow is not right, or asks a person.
    """

    def __init__(
        self,
        flow: Flow,
        models: ModelSource | Mapping[str, ModelClient],
        kept: RecordingOptions | None,
        served_as: str,
    ) -> None:
        flow.check()
        _check_unattended(flow, served_as)
        self.flow = flow
        self._models = models
        self._kept = kept or RecordingOptions()

    def start(
        self, inputs: CheckedInputs, listeners: Iterable[Listener], **settings: Any
    ) -> FlowRun:
        """Prepare a run under an id that no other has: clients often ask the same."""
        return self.flow.start(
            inputs,
            listeners=listeners,
            models=self._models,
            journal=self._kept.journal,
            durability=self._kept.when,
            run=RunId(f"{self.flow.name}-{uuid.uuid4().hex[:16]}"),
            **settings,
        )

    def ended(self, event: Event) -> str:
        """Which node at the top has ended with `event`, and how; empty where none has."""
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
