"""What the fleets of this process did and do, for Prometheus. Counts survive the fleets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from weft.serving.fleet.stats import FleetStats, ended_fleets, open_fleets

_HELP: Final = {
    "sent": "Requests that went to a replica, of all kinds.",
    "resumed": "Streams that went on from the tokens of a broken one.",
    "repeated": "Answers asked again from the start after something had been delivered.",
    "retried": "Calls asked again because a replica was overloaded.",
    "moved": "Calls that a broken replica gave back.",
    "warmed": "Prompts computed ahead.",
    "held_for_prefix": "Calls that waited for a prefix they share.",
    "cancelled": "Calls that their caller closed.",
    "timed_out": "Calls whose time was over.",
    "received_tokens": "Token ids that came back, where replicas tell.",
}
_STATES: Final = ("usable", "resting", "broken")


class FleetCollector:
    """A collector for a `CollectorRegistry`. Labels hold names of models and states only."""

    def collect(self) -> Iterator[Metric]:
        """Every count, as Prometheus' client asks for it."""
        totals = ended_fleets()
        waiting: dict[str, int] = {}
        running: dict[str, int] = {}
        states: dict[tuple[str, str], int] = {}
        for fleet in open_fleets():
            model, load = fleet.model, fleet.load()
            totals[model] = totals.get(model, FleetStats()) + fleet.stats()
            waiting[model] = waiting.get(model, 0) + load.waiting
            running[model] = running.get(model, 0) + load.running
            for state in _STATES:
                key = (model, state)
                states[key] = states.get(key, 0) + getattr(load, state)
        yield from _counters(totals)
        yield _gauge("weft_fleet_waiting", "Calls that wait for a replica.", waiting)
        yield _gauge("weft_fleet_running", "Calls on replicas.", running)
        gauge = GaugeMetricFamily("weft_fleet_replicas", "Replicas.", labels=["model", "state"])
        for (model, state), count in sorted(states.items()):
            gauge.add_metric([model, state], count)
        yield gauge


def _counters(totals: dict[str, FleetStats]) -> Iterator[Metric]:
    for name, text in _HELP.items():
        counter = CounterMetricFamily(f"weft_fleet_{name}", text, labels=["model"])
        for model, stats in sorted(totals.items()):
            counter.add_metric([model], asdict(stats)[name])
        yield counter


def _gauge(name: str, text: str, values: dict[str, int]) -> GaugeMetricFamily:
    gauge = GaugeMetricFamily(name, text, labels=["model"])
    for model, value in sorted(values.items()):
        gauge.add_metric([model], value)
    return gauge
