"""`python -m evals.engine.profile [--json FILE]`: where a node of a recorded run goes.

cProfile around `weft.Flow.run`. Calls of Python functions and of built-ins for each node are the
same on every machine; shares of time are those under the profiler, which makes short functions look
dearer than they are. A built-in counts for the module that calls it.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import os
import pstats
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from evals.engine.cases import Case, case_named
from evals.engine.rows import Row
from evals.engine.systems import load
from evals.results import environment, title, write_results

CASES: Final = ("chain_100", "fanout_1000")
SYSTEMS: Final = ("weft_flow_none", "weft_flow")
RUNS: Final = 5
PARTS: Final = (
    ("journal", "weft/durability/journal"),
    ("calls and digests", "weft/durability/calls"),
    ("encoding", "weft/core/codec"),
    ("redaction", "weft/core/redaction"),
    ("recorder", "weft/engine/runner/recorder"),
    ("recorder", "weft/engine/runner/meter"),
    ("scheduler and runner", "weft/engine"),
    ("tool call", "weft/agents"),
    ("workflow", "weft/workflow"),
    ("events, values and ids", "weft/core"),
    ("the case itself", "evals"),
    ("asyncio", "asyncio"),
)
"""The first whose folder is in a file's path has its functions."""

_Function = tuple[str, int, str]


def main() -> None:
    """Profile, print the table, write the rows."""
    parser = argparse.ArgumentParser(prog="python -m evals.engine.profile", description=__doc__)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    asked = parser.parse_args()
    with TemporaryDirectory(prefix="weft-") as folder:
        os.environ["WEFT_JOURNAL"] = str(Path(folder) / "journal.sqlite")
        rows = [row for case in CASES for system in SYSTEMS for row in profiled(case, system)]
    about = environment()
    print(title(about))
    for row in rows:
        print(f"{row.case:12} {row.system:40} {row.metric:16} {row.value:8.2f} {row.unit}")
    if asked.json:
        write_results(asked.json, rows, about)


def profiled(name: str, system: str) -> list[Row]:
    """Calls a node and shares of the time of `system` on the case `name`, part by part."""
    case = case_named(name)
    profile = cProfile.Profile()
    with TemporaryDirectory(prefix="weft-") as folder, asyncio.Runner() as runner:
        program: Any = load(system)(system, case, Path(folder))
        runner.run(program())
        profile.enable()
        for _ in range(RUNS):
            runner.run(program())
        profile.disable()
    return _rows(case, system, pstats.Stats(profile))


def _rows(case: Case, system: str, stats: pstats.Stats) -> list[Row]:
    calls: dict[str, float] = defaultdict(float)
    seconds: dict[str, float] = defaultdict(float)
    for part, number, took in _spent(stats.stats):  # type: ignore[attr-defined]
        for place in (part, "all"):
            calls[place] += number / (RUNS * len(case.tasks))
            seconds[place] += took
    rows: list[Row] = []
    for part in sorted(calls, key=lambda part: -seconds[part]):
        label = system if part == "all" else f"{system}: {part}"
        share = 100 * seconds[part] / seconds["all"]
        rows.append(Row(case.name, label, "calls_per_node", calls[part], "calls"))
        rows.append(Row(case.name, label, "share", share, "%"))
    return rows


def _spent(found: dict[_Function, Any]) -> list[tuple[str, int, float]]:
    """(part, calls, seconds in the function itself), built-ins under their callers."""
    spent: list[tuple[str, int, float]] = []
    for function, (_, calls, own, _, callers) in found.items():
        if function[0] == "~":
            spent += [(_part(by), each[0], each[2]) for by, each in callers.items()]
        else:
            spent.append((_part(function), calls, own))
    return spent


def _part(function: _Function) -> str:
    return next((part for part, folder in PARTS if folder in function[0]), "other libraries")


if __name__ == "__main__":
    main()
