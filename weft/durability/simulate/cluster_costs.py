"""The costs that `weft simulate --nodes` rests on, measured on two cores, 2026-11-28.

Steps, nodes, journals and content: `python -m evals.simulation --only cluster`, as committed in
docs/benchmarks/simulation_cluster.json. Messages: an early run of `python -m evals.cluster`, busier
than that in docs/benchmarks/cluster.json; each constant names its row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

JournalKind: TypeAlias = Literal["none", "sqlite", "postgres"]


class StepCost(NamedTuple):
    """What one step takes: `step_s`, and `node_s` for each node that ends in it."""

    step_s: float
    node_s: float


@dataclass(frozen=True, slots=True)
class ClusterCosts:
    """What the scheduling process, its journal, its messages and the content store take.

    `scheduler`: a step of a run that records nothing; `journal`: what recording adds; `message`: a
    batch to a machine, and each item in it. `store_s`: one object, written and read again;
    `store_bytes_s`: the store's bandwidth, in bytes a second. `trip_s`: the way to a machine and
    back. `node_bytes`: memory that an ended node keeps until its run ends; `record_bytes`: what the
    journal keeps of it.
    """

    scheduler: StepCost
    journal: StepCost
    message: StepCost
    store_s: float
    store_bytes_s: float
    trip_s: float
    node_bytes: float
    record_bytes: float
    inline_bytes: int = 64 * 1024


class _Journal(NamedTuple):
    """What recording adds to a step, the bytes kept of a node, and the content store beside it."""

    step: StepCost
    record_bytes: float
    store_s: float
    store_bytes_s: float


JOURNALS: Final[Mapping[JournalKind, _Journal]] = {
    "none": _Journal(StepCost(0.0, 0.0), 0.0, 0.8e-3, 280e6),
    "sqlite": _Journal(StepCost(60e-6, 24e-6), 150.0, 0.8e-3, 280e6),
    "postgres": _Journal(StepCost(4.0e-3, 34e-6), 150.0, 3.0e-3, 87e6),
}
"""By kind of journal. Content is in a folder that all machines share, or on the same server."""
_SCHEDULER: Final = StepCost(0.0, 17e-6)
_MESSAGE: Final = StepCost(40e-6, 83e-6)
"""An item is `map_100000/weft_ray/dispatch_ms_per_item`; a message with one, both costs together,
is `chained_call/weft_ray/step_us`. The first value of the latter was timed by hand."""
_TRIP_S: Final = 1.3e-3
"""`single_call/weft_ray/p50_ms`."""
_NODE_BYTES: Final = 1_500.0


def measured_costs(journal: JournalKind = "sqlite") -> ClusterCosts:
    """The measured costs of a run with this journal."""
    kept = JOURNALS[journal]
    return ClusterCosts(
        scheduler=_SCHEDULER,
        journal=kept.step,
        message=_MESSAGE,
        store_s=kept.store_s,
        store_bytes_s=kept.store_bytes_s,
        trip_s=_TRIP_S,
        node_bytes=_NODE_BYTES,
        record_bytes=kept.record_bytes,
    )
