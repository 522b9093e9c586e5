"""The costs that `weft simulate --nodes` rests on, as `python -m evals.simulation` measured them.

One scheduling process on two cores, 2026-11-28 (docs/benchmarks/simulation_cluster.json). Messages
and objects are those of the design notes until a cluster has been measured beside them.
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


JOURNALS: Final[Mapping[JournalKind, tuple[StepCost, float]]] = {
    "none": (StepCost(0.0, 0.0), 0.0),
    "sqlite": (StepCost(44e-6, 26e-6), 90.0),
    "postgres": (StepCost(580e-6, 26e-6), 90.0),
}
"""What recording adds to a step, and the bytes that it keeps of a node, by kind of journal."""


def measured_costs(journal: JournalKind = "sqlite") -> ClusterCosts:
    """The measured costs of a run with this journal."""
    recording, record_bytes = JOURNALS[journal]
    return ClusterCosts(
        scheduler=StepCost(0.0, 27e-6),
        journal=recording,
        message=StepCost(0.6e-3, 2e-6),
        store_s=1e-3,
        store_bytes_s=1.25e9,
        trip_s=1.4e-3,
        node_bytes=3_800.0,
        record_bytes=record_bytes,
    )
