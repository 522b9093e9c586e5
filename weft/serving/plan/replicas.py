"""Traffic over the replicas of a deployment: each request goes to the least loaded one."""

from __future__ import annotations

from collections.abc import Sequence

from weft.serving.plan.batching import Replica
from weft.serving.plan.traffic import Traffic


def serve(traffic: Traffic, replicas: Sequence[Replica]) -> None:
    """Run all requests to their end; what came of them is in each replica's `done`.

    A request joins the replica with the fewest unfinished requests when it arrives, the first of
    several.
    """
    for request in traffic.requests:
        for replica in replicas:
            replica.advance(request.arrival_s)
        min(replicas, key=lambda replica: replica.outstanding).submit(request)
    for replica in replicas:
        replica.advance()
