"""Runs graphs of work. Knows no language model."""

from weft.engine.graph import Graph
from weft.engine.node import (
    ALL,
    ANY,
    MISSING,
    Ask,
    Cache,
    Edge,
    Grow,
    Inputs,
    Join,
    Limit,
    Node,
    NodeContext,
    Partial,
    Policy,
    Retry,
    Skip,
    Streamed,
    Work,
    best_effort,
    first_valid,
    quorum,
)
from weft.engine.options import RunOptions
from weft.engine.result import RunResult
from weft.engine.runner import Run

__all__ = [
    "ALL",
    "ANY",
    "MISSING",
    "Ask",
    "Cache",
    "Edge",
    "Graph",
    "Grow",
    "Inputs",
    "Join",
    "Limit",
    "Node",
    "NodeContext",
    "Partial",
    "Policy",
    "Retry",
    "Run",
    "RunOptions",
    "RunResult",
    "Skip",
    "Streamed",
    "Work",
    "best_effort",
    "first_valid",
    "quorum",
]
