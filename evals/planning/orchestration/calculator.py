"""A calculator as a tool: one operation over a list of numbers. Knows no expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from evals.planning.orchestration.task import Canned
from weft.core.values import ToolSpec

OPERATIONS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "product": math.prod,
    "ratio": lambda numbers: numbers[0] / numbers[1],
    "difference": lambda numbers: abs(numbers[0] - numbers[1]),
    "sum": math.fsum,
    "mean": fmean,
    "max": max,
    "min": min,
    "max minus min": lambda numbers: max(numbers) - min(numbers),
    "max over min": lambda numbers: max(numbers) / min(numbers),
    "max plus min": lambda numbers: max(numbers) + min(numbers),
}

_NUMBERS = {"type": "array", "items": {"type": "number"}}


def calculator(median_s: float = 0.002) -> Canned:
    """`calculate(operation, numbers)`, a local function that takes about `median_s` seconds."""
    spec = ToolSpec(
        "calculate",
        "Does one operation over a list of numbers.",
        {
            "type": "object",
            "properties": {
                "operation": {"type": "string", "enum": list(OPERATIONS)},
                "numbers": _NUMBERS,
            },
            "required": ["operation", "numbers"],
            "additionalProperties": False,
        },
        {"type": "number"},
        pure=True,
    )
    return Canned(spec, _calculate, median_s)


def _calculate(arguments: Mapping[str, Any]) -> float:
    return float(OPERATIONS[arguments["operation"]](arguments["numbers"]))
