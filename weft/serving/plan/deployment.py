"""All plans of a deployment, and the command that starts one: the output of `weft plan-serve`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weft.serving.plan import (
    DeploymentPlan,
    Goal,
    Ranking,
    command,
    default_limits,
    default_traffic,
    find_architecture,
    find_devices,
    note,
    rank,
    read_traffic,
)


@dataclass(frozen=True, slots=True)
class Deployment:
    """All plans, and the command that starts one. `weights` is the name a server loads."""

    weights: str
    ranking: Ranking

    def command(self, plan: DeploymentPlan) -> str:
        """The shell command that starts `plan`."""
        found = self.ranking
        return command(self.weights, found.model, plan, found.limits, found.device.per_node)

    def note(self, plan: DeploymentPlan) -> str | None:
        """What to know before starting `plan`."""
        return note(self.ranking.model, plan)


def plan_serve(
    model: str,
    gpus: str,
    traffic: Path | None = None,
    *,
    goal: Goal = "throughput",
    quantizations: Sequence[str] = (),
    max_seqs: int | None = None,
    max_batched_tokens: int | None = None,
) -> Deployment:
    """Rank every deployment of `model` on devices such as `h200:8`.

    `traffic` is a file of requests or statistics; None: a default, described by its title.
    Raises: `ModelNotFound`, `SpecError`, and `SourceError` for the file.
    """
    shape, weights = find_architecture(model)
    device, count = find_devices(gpus)
    limits = default_limits(device)
    limits = replace(
        limits,
        max_seqs=max_seqs or limits.max_seqs,
        max_batched_tokens=max_batched_tokens or limits.max_batched_tokens,
    )
    offered = default_traffic() if traffic is None else read_traffic(traffic)
    found = rank(
        shape, device, count, offered, goal=goal, limits=limits, quantizations=quantizations
    )
    return Deployment(weights, found)
