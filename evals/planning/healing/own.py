"""Tool graphs of our own: a chain, joins and a fan-out, each with one errand. Knows no faults.

After the three topologies of Self-Healing Router (arXiv 2603.01548), whose nineteen scenarios are
not published; these are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evals.planning.healing.scenario import Case
from weft.planner.routing import CallCost, Goal, RoutedTool, RouteGoal, ToolGraph


def _tool(name: str, /, *, gives: str = "", latency_s: float = 0.5, **needs: str) -> RoutedTool:
    return RoutedTool(name, needs, (gives,) if gives else (), cost=CallCost(latency_s))


TRAVEL: Final = ToolGraph(
    [
        _tool("geocode", place="city", gives="position"),
        _tool("gazetteer", place="city", gives="position", latency_s=1.0),
        _tool("forecast", at="position", gives="weather"),
        _tool("almanac", at="position", gives="weather", latency_s=1.5),
        _tool("weather_by_name", place="city", gives="weather", latency_s=3.0),
        _tool("advise", weather="weather", gives="advice"),
        _tool("rule_of_thumb", weather="weather", gives="advice", latency_s=1.0),
        _tool("climate_table", place="city", latency_s=0.2),
    ]
)
"""A chain of three, each with a spare; one tool that leaves a step out; something lesser."""

REPORT: Final = ToolGraph(
    [
        _tool("find_company", name="company", gives="id"),
        _tool("registry", name="company", gives="id", latency_s=1.5),
        _tool("filings", id="id", gives="accounts", latency_s=2.0),
        _tool("accounts_mirror", id="id", gives="accounts", latency_s=4.0),
        _tool("quotes", id="id", gives="prices", latency_s=0.3),
        _tool("quotes_delayed", id="id", gives="prices", latency_s=1.0),
        _tool("press", name="company", gives="news", latency_s=1.0),
        _tool("press_archive", name="company", gives="news", latency_s=2.5),
        _tool("analyse", accounts="accounts", prices="prices", gives="analysis"),
        _tool(
            "analyse_slowly", accounts="accounts", prices="prices", gives="analysis", latency_s=5
        ),
        _tool("write", analysis="analysis", news="news", gives="report"),
        _tool("write_short", prices="prices", gives="note"),
    ]
)
"""A diamond into a join into a join."""

_CITIES: Final = ("paris", "rome", "oslo", "bern", "wien")
MORNING: Final = ToolGraph(
    [
        *(
            _tool(f"news_{city}", key="login", latency_s=1.0 + i / 10)
            for i, city in enumerate(_CITIES)
        ),
        _tool("sign_in", user="user", gives="login"),
        _tool("sign_in_by_mail", user="user", gives="login", latency_s=4.0),
        *(
            _tool(f"read_{city}", page=f"page_{city}", gives=f"digest_{city}", latency_s=0.4)
            for city in _CITIES
        ),
        *(_tool(f"fetch_{city}", key="login", gives=f"page_{city}") for city in _CITIES),
        *(
            _tool(f"cache_{city}", user="user", gives=f"page_{city}", latency_s=2.0)
            for city in _CITIES
        ),
    ]
)
"""One sign-in, then five branches that do not meet."""

_ADVICE: Final = RouteGoal(Goal("advice"), (Goal("climate_table"),))
_REPORT: Final = RouteGoal(Goal("report"), (Goal("analysis"), Goal("note")))
_DIGESTS: Final = RouteGoal(Goal("morning", tuple(f"digest_{city}" for city in _CITIES)))
CASES: Final[Mapping[str, Case]] = {
    "linear": Case(TRAVEL, {"city": "Delft"}, _ADVICE),
    "dag": Case(REPORT, {"company": "Weft Ltd"}, _REPORT),
    "fanout": Case(MORNING, {"user": "me"}, _DIGESTS),
}
