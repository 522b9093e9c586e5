"""A conversation that grows by two messages a turn: what a store keeps of it, beside what was said.

`times_said` is 1 where every message is stored once and nothing else is. `growth` is what twice
the turns cost: 2 where a store grows with new content only, 4 where each turn stores all again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from evals.durability.rows import FULL, QUICK
from evals.engine.cases import MESSAGE_CHARACTERS, ROLES, case_named
from evals.engine.rounds import Timing, measure
from evals.engine.rows import Row
from evals.reasoning.report import Target

_SYSTEMS: Final = ("weft_flow", "weft_yaml", "langgraph_sqlite", "langgraph_delta", "dbos")
_CASES: Final = ("conversation_50", "conversation_100")
TARGETS = (Target("conversation_50", "weft_flow", "growth", 2.3, at_most=True),)


def rows(quick: bool) -> list[dict[str, Any]]:
    """Measure the bytes of conversations of 50 and 100 turns."""
    pace = replace(QUICK, least=2, most=2) if quick else replace(FULL, least=5, most=5)
    timings = {case: measure(case, _SYSTEMS, pace) for case in _CASES}
    return [asdict(row) for system in _SYSTEMS for row in rows_of(system, timings)]


def rows_of(system: str, timings: Mapping[str, Timing]) -> Iterator[Row]:
    """What a system has stored of each conversation."""
    for case, timing in timings.items():
        if system in timing.skipped:
            yield Row(case, system, f"skipped: {timing.skipped[system]}", None, "")
            continue
        stored = timing.stored[system]
        yield Row(case, system, "bytes", stored, "bytes")
        yield Row(case, system, "times_said", stored / spoken_bytes(case), "x")
    once, twice = (timing.stored.get(system) for timing in timings.values())
    if once and twice:
        yield Row(_CASES[0], system, "growth", twice / once, "x")


def spoken_bytes(case: str) -> int:
    """The characters of all messages together: what any store has to keep at least."""
    return len(case_named(case).tasks) * len(ROLES) * MESSAGE_CHARACTERS
