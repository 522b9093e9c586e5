"""Every scenario on every system in virtual time, judged and counted. Measures no wall time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Sequence
from statistics import fmean

from evals.engine.rows import Row
from evals.planning.effort import Effort, Skipped
from evals.planning.healing import own, taskbench
from evals.planning.healing.scenario import Judged, Scenario, judge
from evals.planning.healing.systems import SYSTEMS
from evals.planning.healing.workshop import Workshop
from weft.core.fakes import FakeClock

ALL = "healing"
_MODELS = {
    "weft": "a script: the best lesser goal",
    "weft_probed": "a script: the best lesser goal",
    "react": "a script: the best next call, JSON turns of weft's agent",
}
"""What answers where a system asks a model. No language model takes part."""


async def run(effort: Effort) -> list[Row]:
    """The rows of all systems, for each topology and for all scenarios together (`healing`)."""
    return await asyncio.to_thread(_run, effort)


def _run(effort: Effort) -> list[Row]:
    cases = list(own.scenarios())
    rows: list[Row] = []
    try:
        cases += taskbench.scenarios(effort.of(8, 50))
    except Skipped as reason:
        rows.append(Row("taskbench", "", f"skipped: {reason}", None, ""))
    print(f"measuring {len(cases)} scenarios of healing", file=sys.stderr, flush=True)
    rows += [Row(ALL, system, "model", None, what) for system, what in _MODELS.items()]
    judged = {name: [_play(case, name) for case in cases] for name in SYSTEMS}
    topologies = dict.fromkeys(case.topology for case in cases)
    for group in (*topologies, ALL):
        for name, results in judged.items():
            chosen = [one for one in results if group in (one.scenario.topology, ALL)]
            rows += _figures(group, name, chosen)
        rows += _ratio(group, rows)
    return rows


def _play(scenario: Scenario, system: str) -> Judged:
    clock = FakeClock()
    workshop = Workshop(scenario.graph, scenario.faults)
    ended = clock.run(SYSTEMS[system](scenario, workshop, clock))
    return judge(scenario, ended, workshop)


def _figures(case: str, system: str, judged: Sequence[Judged]) -> Iterable[Row]:
    feasible = [one for one in judged if one.scenario.feasible]
    found = {
        "scenarios": (len(judged), "scenarios"),
        "feasible": (len(feasible), "scenarios"),
        "correctness": (fmean(one.correct for one in judged), "share"),
        "silent_failures": (sum(one.silent for one in judged), "failures"),
        "control_plane_calls": (sum(one.ended.control_calls for one in judged), "model calls"),
        "tool_calls": (sum(one.tool_calls for one in judged), "calls"),
        "mean_latency_s": (fmean(one.ended.latency_s for one in judged), "s"),
    }
    if feasible:
        found["solved_feasible"] = (fmean(one.solved for one in feasible), "share")
    return [Row(case, system, name, float(value), unit) for name, (value, unit) in found.items()]


def _ratio(case: str, rows: Sequence[Row]) -> list[Row]:
    calls = {
        row.system: row.value
        for row in rows
        if row.case == case and row.metric == "control_plane_calls"
    }
    weft, react = calls["weft"], calls["react"]
    if weft is None or not react:
        return []
    return [Row(case, "weft", "control_plane_calls_ratio", weft / react, "x react")]
