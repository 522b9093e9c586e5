"""`python -m evals.graphbit [--quick] [--json FILE] [--plot FILE]`: GraphBit's six scenarios.

weft, LangGraph, graphbit and bare asyncio make the same calls of one server of this machine, which
waits 50 ms before each answer. Each system has a process of its own; rounds are interleaved.

median_ms    a run from start to end
overhead_ms  the same without the server's waits that follow one another
cpu_ms       CPU time of the system's process, of all of its threads
peak_mib     the most memory that its process had
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evals.engine import peers
from evals.engine.plot import draw
from evals.engine.rows import Lookup, Row
from evals.graphbit import growth
from evals.graphbit.rounds import interpreters, measure
from evals.graphbit.scenarios import LATENCY_S, SCENARIOS, answer_to
from evals.results import environment, title, write_results
from evals.scripted_server import ScriptedServer

_ROUNDS, _QUICK_ROUNDS = 25, 5
_METRICS = ("median_ms", "overhead_ms", "cpu_ms", "peak_mib")


def _late(messages: list[dict[str, Any]]) -> str:
    """The answer, after the server's latency."""
    time.sleep(LATENCY_S)
    return answer_to(messages)


def measured(rounds: int) -> list[Row]:
    """All scenarios, one after the other, and the pipeline."""
    rows = []
    pythons = interpreters()
    with ScriptedServer(_late) as server:
        for scenario in SCENARIOS.values():
            print(f"measuring {scenario.name}", file=sys.stderr, flush=True)
            rows += measure(scenario, server.base_url, rounds, pythons)
    return rows + growth.rows()


def table(rows: Sequence[Row]) -> str:
    """The figures by scenario and system, and what was left out."""
    figures = Lookup(rows)
    lines = [f"{'scenario':<12} {'system':<16}" + "".join(f"{metric:>14}" for metric in _METRICS)]
    for case, system in dict.fromkeys((row.case, row.system) for row in rows):
        values = [figures(case, system, metric) for metric in _METRICS]
        if any(value is not None for value in values):
            shown = "".join(f"{value:14.1f}" for value in values if value is not None)
            lines.append(f"{case:<12} {system:<16}{shown}")
    lines += [
        f"{row.case:<12} {row.system:<16} {row.metric} {'' if row.value is None else row.value}"
        for row in rows
        if row.value is None or row.metric.endswith(("tokens", "stage"))
    ]
    return "\n".join(lines)


def main() -> None:
    """Measure, print, write."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "python -m evals.graphbit", None, __doc__, formatter_class=form
    )
    parser.add_argument("--quick", action="store_true", help=f"{_QUICK_ROUNDS} rounds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all rows there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the medians there")
    asked = parser.parse_args()
    rows = measured(_QUICK_ROUNDS if asked.quick else _ROUNDS)
    pins = {name: peers.versions("peers")[name] for name in ("langgraph", "httpx")}
    about = environment(**pins, graphbit=peers.versions("graphbit")["graphbit"])
    print(f"\n{title(about)}\n\n{table(rows)}")
    if asked.json:
        write_results(asked.json, rows, about)
    if asked.plot:
        draw(rows, asked.plot)


if __name__ == "__main__":
    main()
