"""What weft is to cost at most on the way that a user takes, and how the figures stand to that."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from evals.engine.rows import Lookup


@dataclass(frozen=True, slots=True)
class Limit:
    """A figure of a system, and the most that it may be."""

    case: str
    system: str
    metric: str
    at_most: float

    def line(self, value: float | None) -> str:
        """The limit, what was measured, and whether it is met."""
        what = f"{self.case:15}{self.system:16}{self.metric:27}limit {self.at_most:>6.4g}"
        if value is None:
            return f"{what}   not measured"
        verdict = "met" if value <= self.at_most else "not met"
        return f"{what}   measured {value:>8.4g}   {verdict}"


LIMITS: Final = (
    Limit("chain_100", "weft_flow_none", "ratio_to_asyncio", 4.0),
    Limit("fanout_1000", "weft_flow_none", "ratio_to_asyncio", 6.0),
    Limit("chain_100", "weft_flow", "ratio_to_asyncio", 12.0),
    Limit("fanout_1000", "weft_flow", "ratio_to_asyncio", 15.0),
    Limit("map_1000", "weft_flow", "ratio_to_asyncio", 20.0),
    Limit("chain_100", "weft_engine", "ratio_to_asyncio", 2.2),
    Limit("fanout_1000", "weft_engine", "ratio_to_asyncio", 3.2),
    Limit("chain_100", "weft_flow", "ratio_to_langgraph", 1 / 2),
    Limit("fanout_1000", "weft_flow", "ratio_to_langgraph", 1 / 2),
    Limit("chain_100", "weft_flow", "ratio_to_langgraph_sqlite", 1 / 8),
    Limit("fanout_1000", "weft_flow", "ratio_to_langgraph_sqlite", 1 / 8),
    Limit("first_run_100", "weft_flow", "ratio_to_langgraph", 1.0),
    Limit("first_run_100", "weft_yaml", "ratio_to_langgraph", 1.0),
    Limit("version", "weft_cli", "ratio_to_import_typer", 1.5),
    Limit("skewed", "weft_flow", "median_ms", 510.0),
    Limit("layered_10000", "weft_engine", "bytes_per_node_residual", 0.02),
)


def verdicts(figures: Lookup, cases: Iterable[str]) -> list[str]:
    """A line for each limit of the `cases`."""
    asked = set(cases)
    return [
        limit.line(figures(limit.case, limit.system, limit.metric))
        for limit in LIMITS
        if limit.case in asked
    ]
