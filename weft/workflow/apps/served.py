"""Whether the runs of a server are recorded: nowhere, unless whoever starts it says where.

Knows no server.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from weft.core.errors import BuildError
from weft.core.ids import RunId
from weft.core.ports.journal import Journal
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import AskNode
from weft.workflow.document.spec.settings import Durability
from weft.workflow.flow import Flow


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


def served_run(flow: str) -> RunId:
    """An id that no other run has: clients of a server often ask the same."""
    return RunId(f"{flow}-{uuid.uuid4().hex[:16]}")


def check_unattended(flow: Flow, served_as: str) -> None:
    """Raise `BuildError`, at its place, for a node that asks a person: `served_as` has nobody."""
    for unit in flow.unit.everything():
        for path, step in walk(unit.document.nodes):
            if isinstance(step, AskNode):
                message = (
                    f"the workflow {flow.name} asks a person, and {served_as} has nobody to ask"
                )
                unit.fail(BuildError(message, hint="make it an input"), path, at_key=True)
