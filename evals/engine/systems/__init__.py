"""The systems under test, each behind one function. Imports a system only when it is asked for.

Each module offers `build(system, case, folder) -> Program`: make the system's own form of the
case, once; the program runs it from start to end and may be repeated. What it stores is in SQLite
files in `folder`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, Literal

from evals.engine.cases import Case

Program = Callable[[], Awaitable[None]] | Callable[[], None]
Build = Callable[[str, Case, Path], Program]
Home = Literal["weft", "peers", "prefect", "graphbit"]


class Unsupported(Exception):
    """The system has no form of the case; the message says why."""


@dataclass(frozen=True, slots=True)
class System:
    """A module of this package, and the environment that it runs in. `stores`: it keeps runs."""

    module: str
    home: Home = "weft"
    stores: bool = False


SYSTEMS: Final = {
    "asyncio": System("on_asyncio"),
    "weft_flow": System("on_weft_flow", stores=True),
    "weft_flow_none": System("on_weft_flow"),
    "weft_yaml": System("on_weft_yaml", stores=True),
    "weft_yaml_none": System("on_weft_yaml"),
    "weft_engine": System("on_weft_engine"),
    "langgraph": System("on_langgraph", "peers"),
    "langgraph_sqlite": System("on_langgraph", "peers", stores=True),
    "langgraph_delta": System("on_langgraph", "peers", stores=True),
    "pydantic_graph": System("on_pydantic_graph", "peers"),
    "hamilton": System("on_hamilton", "peers"),
    "dbos": System("on_dbos", "peers", stores=True),
    "prefect": System("on_prefect", "prefect", stores=True),
}
DURABILITIES: Final = {
    "weft_flow_exit": System("on_weft_flow", stores=True),
    "weft_flow_async": System("on_weft_flow", stores=True),
    "weft_flow_power_safe": System("on_weft_flow", stores=True),
}
"""weft at further durabilities, which only `evals.durability` compares."""


def system_named(name: str) -> System:
    """Raises `KeyError` where there is none."""
    return {**SYSTEMS, **DURABILITIES}[name]


def load(name: str) -> Build:
    """The `build` of a system. Raises `ImportError` where it is not installed."""
    build: Build = import_module(f"evals.engine.systems.{system_named(name).module}").build
    return build
