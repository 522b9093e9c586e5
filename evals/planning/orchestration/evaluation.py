"""The order of the orchestration section; computes no figure itself."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from evals.engine.rows import Row
from evals.planning.effort import Effort, Skipped
from evals.planning.orchestration.cases import CASES
from evals.planning.orchestration.measuring import in_real_time, in_virtual_time
from evals.planning.orchestration.rows import latency_rows, speedup_rows
from evals.planning.orchestration.stall import real_stall_rows, stall_rows
from evals.planning.orchestration.sweeps import pause_rows, sweep_rows
from evals.planning.orchestration.systems import SYSTEMS
from weft.agents.loops.divide import DIVIDE_PROMPT_VERSION
from weft.agents.loops.joiner import JOINER_PROMPT_VERSION
from weft.agents.loops.parallel_react import PARALLEL_REACT_PROMPT_VERSION
from weft.agents.loops.react import REACT_PROMPT_VERSION
from weft.planner.prompt import PLAN_PROMPT_VERSION

PROMPTS: Final = (
    PLAN_PROMPT_VERSION,
    JOINER_PROMPT_VERSION,
    DIVIDE_PROMPT_VERSION,
    REACT_PROMPT_VERSION,
    PARALLEL_REACT_PROMPT_VERSION,
)
_REAL_SYSTEMS: Final = ("compiler", "react_text", "llmcompiler_loop")
_REAL_CASES: Final = ("movie", "parallelqa", "hotpotqa")


async def run(effort: Effort) -> list[Row]:
    """All cases in virtual time, the sweeps, and a check on the machine's own clock."""
    rows: list[Row] = []
    for case in CASES:
        rows += await _in_thread(case, partial(_case, case, effort.of(40, 200)))
    rows += worst_rows(rows)
    for case in CASES:
        rows += await _in_thread(f"{case}, swept", partial(sweep_rows, case, effort.of(12, 40)))
    rows += await _in_thread("streaming, pauses", partial(pause_rows, effort.of(12, 40)))
    rows += await _in_thread("a silent planner", stall_rows)
    rows += await real_stall_rows(effort.of(2, 10))
    for case in _REAL_CASES:
        rows += await _real(case, effort.of(1, 5))
    return rows


def _case(case: str, count: int) -> list[Row]:
    tasks = CASES[case].some(count)
    usual = CASES[case].usual
    words = f"{usual.words}; prompts {', '.join(PROMPTS)}"
    said = Row(case, "all", "model", None, words)
    return [said, *latency_rows(case, in_virtual_time(SYSTEMS, tasks, usual))]


def worst_rows(rows: Sequence[Row]) -> list[Row]:
    """The compiler beside LLMCompiler's loop on the worst task of all cases in virtual time."""
    least = "speedup_to_llmcompiler_loop_least"
    found = [
        row.value
        for row in rows
        if (row.system, row.metric) == ("compiler", least) and row.value is not None
    ]
    return [Row("all cases", "compiler", least, min(found), "x llmcompiler_loop")] if found else []


async def _real(case: str, count: int) -> list[Row]:
    """How much longer a few tasks take on the machine's clock than in virtual time."""
    tasks = CASES[case].some(count)
    virtual = await asyncio.to_thread(in_virtual_time, _REAL_SYSTEMS, tasks, CASES[case].usual)
    real = await in_real_time(_REAL_SYSTEMS, tasks, CASES[case].usual)
    rows = [
        Row(
            case,
            system,
            "real_over_virtual",
            sum(run.latency_s for run in real[system])
            / sum(run.latency_s for run in virtual[system]),
            f"x virtual, {len(tasks)} tasks",
        )
        for system in _REAL_SYSTEMS
    ]
    return [*rows, *speedup_rows(f"{case}, real clock", real)]


async def _in_thread(what: str, measure: Callable[[], list[Row]]) -> list[Row]:
    """What `measure` found, in a thread because it runs a loop of its own; or why it could not."""
    print(f"measuring {what}", file=sys.stderr, flush=True)
    try:
        return await asyncio.to_thread(measure)
    except Skipped as reason:
        return [Row(what, "", f"skipped: {reason}", None, "")]
