"""The systems under test, each behind one function. Imports a system only when it is asked for.

Each module offers `build(case, tally) -> Program`: make the system's own form of the graph, once;
running the program executes it from start to end and may be repeated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module

from evals.engine.cases import Case, Tally

Program = Callable[[], Awaitable[None]]
Build = Callable[[Case, Tally], Program]

PEERS = ("langgraph", "pydantic_graph", "hamilton")
SYSTEMS = ("weft", "weft_timeout", "asyncio", *PEERS)


def load(system: str) -> Build:
    """The `build` of `system`. Raises `ImportError` where it is not installed."""
    build: Build = import_module(f"evals.engine.systems.on_{system}").build
    return build
