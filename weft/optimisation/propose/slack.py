"""Slack of the nodes of observed runs: how much longer each could take at the same wall time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean

from weft.optimisation.propose.context import ObservedNode, ObservedRun


def slack_of(runs: Iterable[ObservedRun]) -> dict[str, tuple[float, float]]:
    """Seconds of each node and its slack in seconds, by address: means over the runs.

    The critical-path method, without limits of slots: an addition that takes no longer than the
    slack of its node does not move the wall time.
    """
    found: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for run in runs:
        for node, times in _of_run(run.nodes).items():
            found[node].append(times)
    return {
        node: (fmean(t[0] for t in times), fmean(t[1] for t in times))
        for node, times in found.items()
    }


def _of_run(nodes: Iterable[ObservedNode]) -> Mapping[str, tuple[float, float]]:
    # Of the items of a map only the longest counts: they run side by side.
    longest: dict[str, ObservedNode] = {}
    for node in nodes:
        if node.node not in longest or node.seconds > longest[node.node].seconds:
            longest[node.node] = node
    order = list(longest)  # nodes end after what they need
    end: dict[str, float] = {}
    for name in order:
        node = longest[name]
        begin = max((end[need] for need in node.needs if need in end), default=0.0)
        end[name] = begin + node.seconds
    wall = max(end.values(), default=0.0)
    latest = dict.fromkeys(order, wall)
    for name in reversed(order):
        for need in longest[name].needs:
            if need in latest:
                latest[need] = min(latest[need], latest[name] - longest[name].seconds)
    return {name: (longest[name].seconds, latest[name] - end[name]) for name in order}
