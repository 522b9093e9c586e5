"""The wall time of a candidate under given slots, from the durations of its nodes in a table.

The candidate's graph is scheduled again by the run's own scheduler in virtual time; each node takes
as long as when its result was computed. No model or tool is called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.events import Event
from weft.core.ids import NodeId
from weft.durability.simulate import Change, RecordedRun, recording, simulate
from weft.durability.simulate.script import Attempt, NodeScript, TimeSpan, WorkStep
from weft.optimisation.edits.patch import AnyFlow
from weft.optimisation.table import OutcomeTable, TableRun


@dataclass(frozen=True, slots=True)
class WallPrediction:
    """Seconds of wall time, and the run whose nodes were scheduled.

    `computed`: how many nodes the table did not have, which were run for it.
    """

    wall_s: float
    run: TableRun

    @property
    def computed(self) -> int:
        """How many nodes were run, because the table did not have their results."""
        return len(self.run.fresh)


async def predict(
    flow: AnyFlow,
    inputs: Mapping[str, Any],
    table: OutcomeTable,
    *,
    workers: int | None = None,
    limits: Mapping[str, int] | None = None,
    **settings: Any,
) -> WallPrediction:
    """How long a run of `flow` takes with `workers` nodes at once (None: as the workflow says,
    0: no limit), and `limits` of slots for models and tools.

    Nodes that the table does not have are run first. A node that makes several calls, such as one
    with `samples`, counts as one piece of work with its duration. `settings` as for
    `OutcomeTable.run`. Raises: as that.
    """
    events: list[Event] = []
    listeners = (*settings.pop("listeners", ()), events.append)
    run = await table.run(flow, inputs, listeners=listeners, **settings)
    found = recording(events)
    timed(found, run.seconds)
    change = Change(workers, limits=dict(limits or {}))
    return WallPrediction(simulate(found, change).wall_s, run)


def timed(found: RecordedRun, seconds: Mapping[NodeId, float]) -> None:
    """Give nodes of a recorded run other durations; those without one take no time."""
    for node, script in found.every.items():
        if node in seconds:
            _set_duration(script, seconds[node])
        else:
            _clear(script)


def _set_duration(script: NodeScript, seconds: float) -> None:
    """Replace all that a node did by one piece of work, and what it appended by nothing."""
    failure = script.attempts[-1].failure if script.attempts else None
    work = WorkStep((TimeSpan("own", "", seconds),))
    script.attempts = [Attempt([work], failure)]


def _clear(script: NodeScript) -> None:
    """Remove a node's own time: it only puts results together, and the times are the engine's."""
    for attempt in script.attempts:
        attempt.steps = [step for step in attempt.steps if not isinstance(step, WorkStep)]
