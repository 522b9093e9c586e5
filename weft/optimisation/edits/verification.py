"""Test of the claim that a patch changes no value: a recorded run, replayed with the patch.

Costs nothing: calls are answered from the record, whichever node makes them now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.core.errors import CassetteMiss
from weft.optimisation.edits.patch import Patch
from weft.workflow import Flow
from weft.workflow.history.replay import ReplayDifference, replay
from weft.workflow.history.run_history import RunHistory


@dataclass(frozen=True, slots=True)
class PatchVerification:
    """How a recorded run ends with a patch.

    `differences`: outputs, and nodes of both workflows, with other results. `unknown`: nodes that
    made a call without an equal one in the record, so that nothing is known of their values.
    """

    differences: tuple[ReplayDifference, ...]
    unknown: tuple[str, ...]

    @property
    def unchanged(self) -> bool:
        """Whether every output, and every node of both workflows, came to the same."""
        return not self.differences and not self.unknown


def verify_unchanged(
    history: RunHistory, flow: Flow[Any, Any, ...], patch: Patch
) -> PatchVerification:
    """Replay a run of `flow` with `patch`; no model or tool is called.

    It shows what holds for this run's inputs, and nothing about the world: that two calls have no
    effect on one another is not in a record. Blocks; not inside an event loop.

    Raises: `EditError`, `BuildError`.
    """
    patched = patch.apply(flow)
    found = replay(history, patched.unit, strict=True, by_content=True)
    failed = found.result.errors
    unknown = tuple(node for node, error in failed.items() if isinstance(error, CassetteMiss))
    own = {node for node, outcome in history.outcomes.items() if "/" not in node}
    own &= patched.document.nodes.keys()
    differences = tuple(
        each for each in found.differences if each.what == "output" or each.name in own
    )
    return PatchVerification(differences, unknown)
