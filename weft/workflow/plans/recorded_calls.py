"""The calls of tools in the record of a run, in the order in which they began."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.calls import ToolCalled, ToolReturned
from weft.planner.regroup import ToolCallRecord
from weft.workflow.history.run_history import RunHistory


@dataclass(frozen=True, slots=True)
class RecordedCalls:
    """What a run was asked, and its calls that succeeded. `failed`: how many did not."""

    question: str
    calls: tuple[ToolCallRecord, ...]
    failed: int = 0


def recorded_calls(history: RunHistory) -> RecordedCalls:
    """The calls of tools of a recorded run; a call that was repeated counts once, with its end."""
    began: dict[tuple[Any, ...], ToolCalled] = {}
    ended: dict[tuple[Any, ...], ToolReturned] = {}
    for event in history.calls:
        if isinstance(event, ToolCalled):
            began.setdefault((event.node, event.attempt, event.call), event)
        elif isinstance(event, ToolReturned):
            ended[event.node, event.attempt, event.call] = event
    calls = [
        ToolCallRecord(call.tool, _arguments(call.arguments), ended[key].value, call.effect)
        for key, call in began.items()
        if key in ended and ended[key].failure is None
    ]
    return RecordedCalls(_question(history.header.inputs), tuple(calls), len(began) - len(calls))


def _arguments(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def _question(inputs: Mapping[str, Any]) -> str:
    """The inputs of the run as text: what its calls may know from the start."""
    texts = (
        each if isinstance(each, str) else json.dumps(each, default=repr)
        for each in inputs.values()
    )
    return "\n".join(texts)
