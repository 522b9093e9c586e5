"""A conversation that grows by two messages a turn: what a store keeps of it, beside what was said.

`times_said` is 1 where every message is stored once and nothing else is. `growth` is what twice
the turns cost: 2 where a store grows with new content only, 4 where each turn stores all again.
"""

from __future__ import annotations

from typing import Any

from evals.durability.cases import spoken_bytes, turns_of
from evals.durability.rounds import measure
from evals.reasoning.report import Target

_SYSTEMS = ("weft_sync", "langgraph_sqlite", "dbos_sqlite")
TARGETS = (Target("conversation_50", "weft_sync", "growth", 2.3, at_most=True),)


def rows(quick: bool) -> list[dict[str, Any]]:
    """Measure the bytes of conversations of 50 and 100 turns."""
    timings = {case: measure(case, _SYSTEMS, 2 if quick else 5) for case in _CASES}
    found: list[dict[str, Any]] = []
    for system in _SYSTEMS:
        for case, timing in timings.items():
            if system in timing.skipped:
                found.append(_row(case, system, f"skipped: {timing.skipped[system]}", None, ""))
                continue
            stored = timing.run_bytes[system]
            said = spoken_bytes(turns_of(case))
            found.append(_row(case, system, "bytes", stored, "bytes"))
            found.append(_row(case, system, "times_said", stored / said, "x"))
        once, twice = (timing.run_bytes.get(system) for timing in timings.values())
        if once and twice:
            found.append(_row(_CASES[0], system, "growth", twice / once, "x"))
    return found


_CASES = ("conversation_50", "conversation_100")


def _row(case: str, system: str, metric: str, value: float | None, unit: str) -> dict[str, Any]:
    return {"case": case, "system": system, "metric": metric, "value": value, "unit": unit}
