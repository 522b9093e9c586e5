"""Scenarios of our own: chains, joins and fan-outs with single and compound failures.

After the three topologies of Self-Healing Router (arXiv 2603.01548), whose nineteen scenarios are
not published; these are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from evals.planning.healing.scenario import Scenario
from evals.planning.healing.workshop import Fault
from weft.planner.routing import Cost, Errand, Goal, RoutedTool, ToolGraph

Faults = Mapping[str, Fault]


def _tool(name: str, /, *, gives: str = "", latency_s: float = 0.5, **needs: str) -> RoutedTool:
    return RoutedTool(name, needs, (gives,) if gives else (), cost=Cost(latency_s))


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

_TRAVEL: Mapping[str, Faults] = {
    "all_well": {},
    "first_raises": {"geocode": "raises"},
    "middle_raises": {"forecast": "raises"},
    "last_raises": {"advise": "raises"},
    "first_hangs": {"geocode": "hangs"},
    "middle_lies": {"forecast": "lies"},
    "first_and_last": {"geocode": "raises", "advise": "late"},
    "all_first_choices": {"geocode": "raises", "forecast": "late", "advise": "hangs"},
    "a_tool_and_its_spare": {"geocode": "raises", "gazetteer": "late"},
    "a_step_and_its_spare": {"forecast": "hangs", "almanac": "raises"},
    "no_weather_at_all": {"forecast": "raises", "almanac": "late", "weather_by_name": "lies"},
    "nothing_left": {"advise": "raises", "rule_of_thumb": "raises", "climate_table": "raises"},
}

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

_REPORT: Mapping[str, Faults] = {
    "all_well": {},
    "root_raises": {"find_company": "raises"},
    "one_branch": {"filings": "late"},
    "both_branches": {"filings": "late", "quotes": "raises"},
    "inner_join": {"analyse": "lies"},
    "branch_outside": {"press": "hangs"},
    "root_branch_and_join": {"find_company": "hangs", "quotes": "late", "analyse": "raises"},
    "every_first_choice": {
        "find_company": "raises",
        "filings": "late",
        "quotes": "lies",
        "press": "hangs",
        "analyse": "raises",
    },
    "one_branch_is_gone": {"filings": "raises", "accounts_mirror": "late"},
    "the_last_join_is_gone": {"write": "raises"},
    "everything_that_matters": {"find_company": "raises", "registry": "late"},
}

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

_MORNING: Mapping[str, Faults] = {
    "all_well": {},
    "one_branch": {"fetch_rome": "raises"},
    "three_of_five": {"fetch_rome": "raises", "fetch_oslo": "late", "fetch_wien": "hangs"},
    "all_of_them": dict.fromkeys((f"fetch_{city}" for city in _CITIES), "raises"),
    "the_root": {"sign_in": "hangs"},
    "the_root_and_its_spare": {"sign_in": "raises", "sign_in_by_mail": "late"},
    "the_root_and_two": {"sign_in": "raises", "fetch_bern": "late", "fetch_oslo": "lies"},
    "one_branch_is_gone": {"fetch_rome": "raises", "cache_rome": "late"},
    "a_reader_is_gone": {"read_bern": "raises"},
}


def scenarios() -> Iterator[Scenario]:
    """All of them, the feasible ones and those that are not."""
    advice = Errand(Goal("advice"), (Goal("climate_table"),))
    for name, faults in _TRAVEL.items():
        yield Scenario(f"travel_{name}", "linear", TRAVEL, {"city": "Delft"}, advice, faults)
    report = Errand(Goal("report"), (Goal("analysis"), Goal("note")))
    for name, faults in _REPORT.items():
        have = {"company": "Weft Ltd"}
        yield Scenario(f"report_{name}", "dag", REPORT, have, report, faults)
    digests = Errand(Goal("morning", tuple(f"digest_{city}" for city in _CITIES)))
    for name, faults in _MORNING.items():
        yield Scenario(f"morning_{name}", "fanout", MORNING, {"user": "me"}, digests, faults)
