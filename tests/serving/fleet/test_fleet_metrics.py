"""What fleets did and do, as a scraper reads it."""

from __future__ import annotations

import asyncio

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from tests.serving.fleet.fleet_calls import answer, asking, play, settle
from tests.serving.fleet.server import Fate, Server
from weft.serving.fleet import Fleet
from weft.serving.telemetry.metrics import RunMetrics
from weft.testing import FakeClock

Samples = dict[tuple[str, ...], float]


def counted(registry: CollectorRegistry, model: str) -> Samples:
    text = RunMetrics(registry).text().decode()
    return {
        (sample.name, *(value for key, value in sample.labels.items() if key != "model")): (
            sample.value
        )
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("model") == model
    }


def test_failovers_retries_and_queues_are_told_while_they_happen_and_afterwards() -> None:
    fates = iter([Fate(break_after_tokens=3), Fate(overloaded_s=1)])
    servers = [Server(lambda _: next(fates, Fate()), model="told") for _ in range(2)]

    async def body(fleet: Fleet, clock: FakeClock) -> Samples:
        for _ in range(2):
            await answer(fleet, asking("river", 10))
        held = [asyncio.create_task(answer(fleet, asking(f"{n}", 5))) for n in range(5)]
        await settle()
        found = counted(CollectorRegistry(), "told")
        await asyncio.wait(held)
        return found

    busy = play(body, servers, in_flight=1)
    assert busy["weft_fleet_moved_total",] == 1
    assert busy["weft_fleet_retried_total",] == 1
    assert busy["weft_fleet_resumed_total",] >= 1
    assert busy["weft_fleet_running",] + busy["weft_fleet_waiting",] == 5
    states = ("usable", "resting", "broken")
    assert sum(busy["weft_fleet_replicas", state] for state in states) == 2

    after = counted(CollectorRegistry(), "told")
    assert (
        after["weft_fleet_sent_total",]
        == busy["weft_fleet_sent_total",] + (busy["weft_fleet_waiting",])
    )
    assert ("weft_fleet_waiting",) not in after
