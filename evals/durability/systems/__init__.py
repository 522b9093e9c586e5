"""The systems under test, each behind one class. Imports a system only when it is asked for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Protocol

PEERS = ("langgraph_sqlite", "dbos_sqlite")
SYSTEMS = ("weft_none", "weft_async", "weft_sync", "weft_power_safe", *PEERS)
_MODULES = {
    "weft_none": "on_weft",
    "weft_async": "on_weft",
    "weft_sync": "on_weft",
    "weft_power_safe": "on_weft",
    "langgraph_sqlite": "on_langgraph",
    "dbos_sqlite": "on_dbos",
}


class System(Protocol):
    """One system with one case, on databases of its own in one folder."""

    def run(self) -> float:
        """Run the case once, as a run of its own; its seconds. Raises when work was skipped."""

    def close(self) -> None:
        """Let go of files."""


def load(system: str, case: str, folder: Path) -> System:
    """`system`, ready to run `case`. Raises `ImportError` where it is not installed."""
    module = import_module(f"evals.durability.systems.{_MODULES[system]}")
    made: System = module.System(system, case, folder)
    return made
