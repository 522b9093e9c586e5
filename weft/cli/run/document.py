"""The JSON document of `weft run --json`. Its keys are part of the interface."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from weft.cli.exit_code import ExitCode
from weft.cli.text import json_text, plain
from weft.core.values import Denoised, Speculated, Usage
from weft.engine.analysis.critical_path import critical_path, shares, speed_advice
from weft.engine.analysis.trace import NodeTrace, Trace


def document(
    trace: Trace,
    outputs: Mapping[str, object],
    missing: Mapping[str, str],
    code: ExitCode,
    serial_wall_s: float | None = None,
    more: Mapping[str, object] | None = None,
) -> str:
    """The run as JSON text on one line; `serial_wall_s` as in the report, `more`: further keys."""
    data = {
        "run": trace.run,
        "flow": trace.flow,
        "status": trace.status,
        "exit_code": int(code),
        "outputs": outputs,
        "missing": missing,
        "reasons": trace.reasons,
        "leaked": trace.leaked,
        "outcomes": {
            node.info.id: {
                **node_data(node),
                "busy_s": trace.busy_s(node),
                "usage": _usage(node.usage),
                "decoded": [_decoded(each) for each in node.decoded],
            }
            for node in trace.nodes.values()
        },
        "usage": _usage(trace.usage),
        "timings": {**_timings(trace), "serial_wall_s": serial_wall_s},
        **(more or {}),
    }
    return json_text(plain(data))


def node_data(node: NodeTrace) -> dict[str, object]:
    """How a node ended, and when."""
    outcome = node.outcome
    return {
        "kind": node.info.kind,
        "status": None if outcome is None else outcome.status,
        "via": "" if outcome is None else outcome.via,
        "attempts": node.attempts if outcome is None else outcome.attempts,
        "failure": None if outcome is None else plain(outcome.failure),
        "started_s": node.started_s,
        "finished_s": node.finished_s,
    }


def _decoded(how: Speculated | Denoised) -> dict[str, object]:
    data = dataclasses.asdict(how)
    if isinstance(how, Denoised):
        data["tokens_per_forward"] = how.tokens_per_forward
    return data


def _timings(trace: Trace) -> dict[str, object]:
    path = critical_path(trace)
    path_shares = shares(trace, path)
    best = speed_advice(trace, path_shares)
    advice = None
    if best is not None:
        advice = {
            "speed_up": best.target,
            "saves_s": best.saves_s,
            "run_needs_at_least_s": best.at_least_s,
        }
    return {
        "wall_s": trace.wall_s,
        "nodes_s": trace.all_busy_s(),
        "speed_up": trace.speed_up(),
        "max_running": trace.max_running,
        "critical_path": path,
        "shares": path_shares,
        "advice": advice,
    }


def _usage(usage: Usage) -> dict[str, object]:
    return {**dataclasses.asdict(usage), "tokens": usage.tokens}
