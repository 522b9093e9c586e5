"""The systems under test: `build(system, scenario, base_url) -> Program`, each in its own form."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Literal

Home = Literal["weft", "peers", "graphbit"]


@dataclass(frozen=True, slots=True)
class System:
    """A module of this package, and the environment that it runs in."""

    module: str
    home: Home = "weft"


SYSTEMS: Final = {
    "asyncio": System("on_asyncio"),
    "weft": System("on_weft"),
    "weft_none": System("on_weft"),
    "langgraph": System("on_langgraph", "peers"),
    "graphbit": System("on_graphbit", "graphbit"),
    "graphbit_client": System("on_graphbit", "graphbit"),
}


def load(name: str) -> Any:
    """The `build` of a system. Raises `ImportError` where it is not installed."""
    return import_module(f"evals.graphbit.systems.{SYSTEMS[name].module}").build
