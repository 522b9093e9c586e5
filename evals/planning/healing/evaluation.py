"""Every scenario on every system in virtual time, judged and counted. Measures no wall time."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean

from evals.engine.rows import Lookup, Row
from evals.planning.effort import Effort, Skipped
from evals.planning.healing import own, taskbench
from evals.planning.healing.faults import SHARES, scenarios
from evals.planning.healing.scenario import Judged, Scenario, judge
from evals.planning.healing.systems import SYSTEMS
from evals.planning.healing.workshop import Workshop
from weft.testing import FakeClock

ALL = "healing"
_MODELS = {
    "weft": "a script: the best lesser goal",
    "weft_probed": "a script: the best lesser goal",
    "react": "a script: the best next call, JSON turns of weft's agent",
    "react_probed": "a script: the best next call, JSON turns of weft's agent",
}
"""What answers where a system asks a model. No language model takes part."""


async def run(effort: Effort) -> list[Row]:
    """Rows of all systems: for each graph, each share of tools that fail, and all (`healing`)."""
    return await asyncio.to_thread(_run, effort)


def _run(effort: Effort) -> list[Row]:
    rows: list[Row] = []
    found = list(_own(effort))
    try:
        found += _taskbench(effort)
    except Skipped as reason:
        rows.append(Row("taskbench", "", f"skipped: {reason}", None, ""))
    print(f"measuring {len(found)} scenarios of healing", file=sys.stderr, flush=True)
    rows += [Row(ALL, system, "model", None, what) for system, what in _MODELS.items()]
    judged = {name: [_play(one, name) for one in found] for name in SYSTEMS}
    for graph in dict.fromkeys(one.graph_name for one in found):
        rows += _group(graph, judged, lambda one, of=graph: one.graph_name == of)
    for share in SHARES:
        name = f"{share:.0%} of the tools fail"
        rows += _group(name, judged, lambda one, of=share: one.share == of)
    return [*rows, *_group(ALL, judged, lambda _: True)]


def _own(effort: Effort) -> Iterator[Scenario]:
    for name, case in own.CASES.items():
        yield from scenarios(name, lambda _, case=case: case, effort.of(2, 25))


def _taskbench(effort: Effort) -> list[Scenario]:
    draws = taskbench.draws()
    return [one for name, draw in draws.items() for one in scenarios(name, draw, effort.of(4, 50))]


def _play(scenario: Scenario, system: str) -> Judged:
    clock = FakeClock()
    workshop = Workshop(scenario.case.graph, scenario.faults)
    ended = clock.run(SYSTEMS[system](scenario.case, workshop, clock))
    return judge(scenario, ended, workshop)


def _group(
    name: str, judged: Mapping[str, Sequence[Judged]], counted: Callable[[Scenario], bool]
) -> list[Row]:
    rows: list[Row] = []
    for system, results in judged.items():
        rows += _figures(name, system, [one for one in results if counted(one.scenario)])
    return [*rows, *_ratios(name, rows)]


def _figures(case: str, system: str, judged: Sequence[Judged]) -> Iterable[Row]:
    feasible = [one for one in judged if one.scenario.feasible]
    asked = [one.ended.asked for one in judged]
    found = {
        "scenarios": (len(judged), "scenarios"),
        "feasible": (len(feasible), "scenarios"),
        "met_failure": (sum(one.failed_calls > 0 for one in judged), "scenarios"),
        "goal_tool_fails": (sum(one.scenario.goal_fails for one in judged), "scenarios"),
        "correctness": (fmean(one.correct for one in judged), "share"),
        "silent_failures": (sum(one.silent for one in judged), "failures"),
        "model_calls": (sum(one.calls for one in asked), "model calls"),
        "model_calls_after_failure": (sum(one.after_failure for one in asked), "model calls"),
        "tool_calls": (sum(one.tool_calls for one in judged), "calls"),
        "failed_calls": (sum(one.failed_calls for one in judged), "calls"),
        "mean_latency_s": (fmean(one.ended.latency_s for one in judged), "s"),
    }
    if feasible:
        found["solved_feasible"] = (fmean(one.solved for one in feasible), "share")
    return [Row(case, system, name, float(value), unit) for name, (value, unit) in found.items()]


def _ratios(case: str, rows: Sequence[Row]) -> Iterator[Row]:
    """What each of two systems that know the same asks of a model, beside the other."""
    figures = Lookup(rows)
    for system, other in (("weft", "react"), ("weft_probed", "react_probed")):
        for metric in ("model_calls", "model_calls_after_failure"):
            own_calls, others = figures(case, system, metric), figures(case, other, metric)
            if own_calls is not None and others:
                yield Row(case, system, f"{metric}_ratio", own_calls / others, f"x {other}")
