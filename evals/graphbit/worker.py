"""One system with one scenario in a process of its own: runs it as often as it is asked.

`python -m evals.graphbit.worker SYSTEM SCENARIO BASE_URL` writes a line of JSON when it is ready,
and one for each line it reads: the time of one run, and the most memory the process has had.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
from time import perf_counter, process_time
from typing import Any

from evals.engine.worker import peak_bytes
from evals.graphbit.scenarios import SCENARIOS, Program, Scenario
from evals.graphbit.systems import load

_WARM_UP = 2
"""Runs before the first that counts: they import and connect."""


async def sample(program: Program, scenario: Scenario) -> dict[str, float]:
    """One run. Raises `RuntimeError` where an answer is missing."""
    gc.collect()
    began = perf_counter(), process_time()
    answers = await program.run()
    took = perf_counter() - began[0], process_time() - began[1]
    if len(answers) != scenario.answers or not all(
        str(each).startswith("answer") for each in answers
    ):
        raise RuntimeError(
            f"{len(answers)} answers where {scenario.answers} are due: {answers!r:.80}"
        )
    return {"wall_s": took[0], "cpu_s": took[1], "peak_bytes": peak_bytes()}


async def serve(system: str, scenario: Scenario, base_url: str) -> None:
    """Answer line by line until stdin ends."""
    try:
        program = load(system)(system, scenario, base_url)
        for _ in range(_WARM_UP):
            ready = await sample(program, scenario)
    except Exception as error:  # noqa: BLE001 - a peer may refuse in any way it likes
        _say({"error": f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"})
        return
    _say(ready)
    while await asyncio.to_thread(sys.stdin.readline):
        _say(await sample(program, scenario))


def _say(found: dict[str, Any]) -> None:
    print(json.dumps(found), flush=True)


def main() -> None:
    """Serve one system with one scenario."""
    system, scenario, base_url = sys.argv[1:]
    asyncio.run(serve(system, SCENARIOS[scenario], base_url))


if __name__ == "__main__":
    main()
