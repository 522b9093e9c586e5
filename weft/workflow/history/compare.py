"""Comparison of two recorded runs, node by node: outcomes, outputs, tokens and times."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.codec import encode
from weft.core.events import Outcome, Via, jsonable
from weft.core.ids import NodeId
from weft.engine.analysis.critical_path import critical_path, path_nodes
from weft.engine.analysis.trace import Trace
from weft.workflow.history.recorded_workflow import result_of
from weft.workflow.history.run_history import RunHistory
from weft.workflow.runtime.results.result import FlowResult


@dataclass(frozen=True, slots=True)
class NodeSummary:
    """A node in one of the runs. `status`: "" if it is not there, "unfinished" without an end.

    `via`: what replaced its own result, as in `Outcome`.
    """

    status: str
    via: Via = ""
    seconds: float | None = None
    tokens: int = 0
    attempts: int = 0


@dataclass(frozen=True, slots=True)
class NodePair:
    """A node in both runs. `same`: it ended with the same value, or the same failure."""

    node: NodeId
    left: NodeSummary
    right: NodeSummary
    same: bool


@dataclass(frozen=True, slots=True)
class RunTotals:
    """A run as a whole. `path`: the nodes of its critical path, in order, with seconds."""

    run: str
    flow: str
    status: str
    wall_s: float
    tokens: int
    money: float
    requests: int
    path: tuple[tuple[NodeId, float], ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`outputs` and `inputs`: for each that differs, the lines of the difference."""

    left: RunTotals
    right: RunTotals
    nodes: tuple[NodePair, ...]
    outputs: Mapping[str, tuple[str, ...]]
    inputs: Mapping[str, tuple[str, ...]]

    @property
    def same(self) -> bool:
        """Whether both runs have equal outcomes and outputs."""
        return not self.outputs and all(pair.same for pair in self.nodes)


def compare(left: RunHistory, right: RunHistory) -> Comparison:
    """Compare two runs."""
    one, two = result_of(left), result_of(right)
    return Comparison(
        _whole(left, one),
        _whole(right, two),
        tuple(_pairs(left, right)),
        _differences(_outputs(one), _outputs(two)),
        _differences(left.header.inputs, right.header.inputs),
    )


def same_outcome(one: Outcome | None, two: Outcome | None) -> bool:
    """Whether a node ended exactly alike."""
    if one is None or two is None:
        return one is two
    return encode(one) == encode(two)


def _outputs(result: FlowResult) -> dict[str, Any]:
    missing = {name: f"(missing: {why})" for name, why in result.missing.items()}
    return {**result.outputs, **missing}


def _pairs(left: RunHistory, right: RunHistory) -> Iterator[NodePair]:
    for node in dict.fromkeys((*left.trace.nodes, *right.trace.nodes)):
        same = same_outcome(left.outcomes.get(node), right.outcomes.get(node))
        sides = _side(left.trace, node), _side(right.trace, node)
        yield NodePair(node, *sides, same and bool(sides[0].status) is bool(sides[1].status))


def _side(trace: Trace, node: NodeId) -> NodeSummary:
    traced = trace.nodes.get(node)
    if traced is None:
        return NodeSummary("")
    outcome, seconds = traced.outcome, None
    if traced.started_s is not None and traced.finished_s is not None:
        seconds = traced.finished_s - traced.started_s
    status = "unfinished" if outcome is None else outcome.status
    attempts = traced.attempts if outcome is None else outcome.attempts
    via: Via = "" if outcome is None else outcome.via
    return NodeSummary(status, via, seconds, traced.usage.tokens, attempts)


def _whole(history: RunHistory, result: FlowResult) -> RunTotals:
    return RunTotals(
        history.run,
        history.header.flow,
        "unfinished" if history.ended is None else result.status,
        history.trace.wall_s,
        result.usage.tokens,
        result.usage.money,
        result.usage.requests,
        path_nodes(critical_path(history.trace)),
    )


def _differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    differences = {}
    for name in dict.fromkeys((*left, *right)):
        before, after = _lines(left, name), _lines(right, name)
        if before != after:
            lines = difflib.unified_diff(before, after, lineterm="", n=2)
            differences[name] = tuple(lines)[2:]
    return differences


def _lines(values: Mapping[str, Any], name: str) -> list[str]:
    if name not in values:
        return []
    value = values[name]
    text = value if isinstance(value, str) else json.dumps(value, default=jsonable, indent=2)
    return text.splitlines()
