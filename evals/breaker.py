"""`python -m evals.breaker [--quick] [--json FILE]`: an outage with and without a circuit breaker.

Calls of one tool arrive evenly, each in a run of its own. For 30 seconds the server takes
connections and answers nothing: a call then fails after a second. Everything is in virtual time, so
the figures are counts and seconds of that clock, the same on every machine. The server is a
function: no figure is about a network.

calls_in_outage   calls that reached the server while it was down
recovery_s        from the end of the outage to the first call after which none fails or is refused
lost              calls that had no result in the end
late_s            the longest that a call took, with its waits
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import weft
from evals.engine.rows import Row
from evals.results import environment, title, write_results
from weft.core.events import NodeRetrying
from weft.testing import FakeClock

RATE: Final = 20
"""Calls that arrive in a second."""
DOWN_S: Final = (30.0, 60.0)
ANSWER_S: Final = 0.05
FAILS_S: Final = 1.0
BREAKERS: Final[Mapping[str, weft.Breaker | None]] = {
    "retry alone": None,
    "breaker, 5 s": weft.Breaker(failures=5, within_s=30, after_s=5, successes=3),
    "breaker, 20 s": weft.Breaker(failures=5, within_s=30, after_s=20, successes=3),
}
RETRIES: Final[Mapping[str, Mapping[str, float]]] = {
    "3 attempts": {"attempts": 3, "delay": 0.5},
    "8 attempts": {"attempts": 8, "delay": 0.5},
}


@dataclass(slots=True)
class Outage:
    """A server that is down for a while, and what happened to the calls that arrived."""

    clock: FakeClock
    in_outage: int = 0
    failed: int = 0
    lost: int = 0
    troubles: list[float] = field(default_factory=list)
    took: list[float] = field(default_factory=list)

    async def fetch(self, number: int) -> int:
        """The answer of the server."""
        if DOWN_S[0] <= self.clock.now() < DOWN_S[1]:
            self.in_outage += 1
            await self.clock.sleep(FAILS_S)
            raise ConnectionError("no answer")
        await self.clock.sleep(ANSWER_S)
        return number

    def listen(self, event: object) -> None:
        """Note when a call failed or was refused."""
        if isinstance(event, NodeRetrying):
            self.troubles.append(self.clock.now())


async def arrive(outage: Outage, flow: weft.Flow, until_s: float) -> None:
    """Start a run for each call that arrives, and wait for all of them."""

    async def one(number: int) -> None:
        begun = outage.clock.now()
        settings: dict[str, Any] = {"clock": outage.clock, "durability": "none"}
        result = await flow.run(number=number, listeners=[outage.listen], **settings)
        outage.took.append(outage.clock.now() - begun)
        if result.outputs.get("r") != number:
            outage.lost += 1
            outage.troubles.append(outage.clock.now())

    async with asyncio.TaskGroup() as group:
        for number in range(int(until_s * RATE)):
            group.create_task(one(number))
            await outage.clock.sleep(1 / RATE)


def measure(
    breaker: weft.Breaker | None, retry: Mapping[str, float], until_s: float = 120.0
) -> Outage:
    """All calls through one outage."""
    clock = FakeClock()
    outage = Outage(clock)
    declared: dict[str, Any] = {"use": outage.fetch}
    if breaker is not None:
        declared["breaker"] = breaker
    flow = weft.Flow("outage", tools={"fetch": declared})
    flow.output(r=flow.tool("fetch", number=flow.input("number", int), retry=dict(retry)))
    clock.run(arrive(outage, flow, until_s))
    return outage


def rows_of(*, quick: bool = False) -> list[Row]:
    """Every breaker with every retry."""
    rows = []
    for case, retry in list(RETRIES.items())[: 1 if quick else None]:
        for system, breaker in BREAKERS.items():
            found = measure(breaker, retry, 90.0 if quick else 120.0)
            recovery_s = max(0.0, max(found.troubles, default=0.0) - DOWN_S[1])
            rows += [
                Row(case, system, "calls_in_outage", found.in_outage, "calls"),
                Row(case, system, "recovery_s", recovery_s, "s"),
                Row(case, system, "lost", found.lost, "calls"),
                Row(case, system, "late_s", max(found.took), "s"),
                Row(case, system, "arrived", len(found.took), "calls"),
            ]
    return rows


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(prog="python -m evals.breaker", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one retry, 90 seconds")
    parser.add_argument("--json", type=Path, metavar="FILE")
    asked = parser.parse_args()
    rows, about = rows_of(quick=asked.quick), environment()
    print(f"\n{title(about)}\n")
    for row in rows:
        print(f"{row.case:<12} {row.system:<14} {row.metric:<16} {row.value:9.2f} {row.unit}")
    if asked.json:
        write_results(asked.json, rows, about)


if __name__ == "__main__":
    main()
