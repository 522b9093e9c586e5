"""Prometheus metrics of runs and fleets, and a local port that serves them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    start_http_server,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from weft.core.calls import CallEvent
from weft.core.errors import ServeError
from weft.core.events import (
    Event,
    GraphGrew,
    HumanAnswered,
    HumanAsked,
    NodeDecoded,
    NodeDenoised,
    NodeFinished,
    NodeRetrying,
    NodeSpent,
    NodeStarted,
    RunFinished,
    RunStarted,
)
from weft.core.ids import NodeId
from weft.core.values import Usage
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
    """A collector for a `CollectorRegistry`. Labels are names of models and states."""

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
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


CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)


class RunMetrics:
    """Counts runs that it listens to, and fleets, in its own registry or the given one.

    Labels are names of flows, kinds of nodes, statuses and decoders: neither a model's output nor a
    run's id can add series.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = own = registry or CollectorRegistry()
        own.register(FleetCollector())
        counter, gauge = partial(Counter, registry=own), partial(Gauge, registry=own)
        histogram = partial(Histogram, buckets=_SECONDS, registry=own)
        self.runs = counter("weft_runs", "Runs that have ended.", ["flow", "status"])
        self.active = gauge("weft_runs_active", "Runs under way.", ["flow"])
        self.run_seconds = histogram("weft_run_seconds", "How long runs took.", ["flow"])
        self.nodes = counter("weft_nodes", "Nodes that have ended.", ["flow", "kind", "status"])
        self.running = gauge("weft_nodes_running", "Nodes that have begun and not ended.", ["flow"])
        self.node_seconds = histogram(
            "weft_node_seconds", "From a node's first attempt to its end.", ["flow", "kind"]
        )
        self.retries = counter("weft_retries", "Attempts repeated.", ["flow", "kind"])
        self.recalled = counter(
            "weft_nodes_recalled", "Nodes that an earlier process had ended.", ["flow"]
        )
        self.asking = gauge("weft_questions", "Questions that wait for a person.", ["flow"])
        self.tokens = counter("weft_tokens", "Tokens that models took.", ["flow", "kind"])
        self.requests = counter("weft_model_requests", "Model calls.", ["flow"])
        self.money = counter("weft_money_usd", "US dollars spent.", ["flow"])
        self.forwards = counter(
            "weft_decoder_forwards",
            "Passes of models that wrote several tokens each.",
            ["flow", "decoder"],
        )
        self.decoded = counter(
            "weft_decoder_tokens",
            "Tokens that came several a pass: drafted and accepted, or filled in.",
            ["flow", "decoder"],
        )

    def listener(self) -> Callable[[Event | CallEvent], None]:
        """A listener for one run."""
        return _RunCounter(self)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class _RunCounter:
    def __init__(self, metrics: RunMetrics) -> None:
        self._metrics = metrics
        self._flow = ""
        self._kinds: dict[NodeId, str] = {}
        self._began: dict[NodeId, float] = {}
        self._asking: set[NodeId] = set()

    def __call__(self, event: Event | CallEvent) -> None:
        metrics, flow = self._metrics, self._flow
        match event:
            case RunStarted():
                self._run_begins(event)
            case GraphGrew(nodes=nodes):
                self._kinds.update((info.id, info.kind) for info in nodes)
            case NodeStarted(node=node, at_s=at_s) if node not in self._began:
                self._began[node] = at_s
                metrics.running.labels(flow).inc()
            case NodeFinished():
                self._node_ends(event)
            case NodeSpent(usage=usage):
                self._spends(usage)
            case HumanAsked(node=node):
                self._asking.add(node)
                metrics.asking.labels(flow).inc()
            case HumanAnswered(node=node):
                self._answered(node)
            case RunFinished():
                self._run_ends(event)
            case _:
                self._count(event)

    def _run_begins(self, event: RunStarted) -> None:
        self._flow = event.flow
        self._kinds.update((info.id, info.kind) for info in event.nodes)
        self._metrics.active.labels(self._flow).inc()

    def _count(self, event: Event | CallEvent) -> None:
        metrics, flow = self._metrics, self._flow
        match event:
            case NodeRetrying(node=node):
                metrics.retries.labels(flow, self._kinds.get(node, "call")).inc()
            case NodeDecoded(speculated=how):
                metrics.forwards.labels(flow, how.method).inc(how.forwards)
                metrics.decoded.labels(flow, how.method).inc(how.accepted)
            case NodeDenoised(denoised=how):
                metrics.forwards.labels(flow, how.method).inc(how.forwards)
                metrics.decoded.labels(flow, how.method).inc(how.kept)
            case _:
                pass  # the details of one run are not counted

    def _node_ends(self, event: NodeFinished) -> None:
        metrics, flow, node = self._metrics, self._flow, event.node
        kind = self._kinds.pop(node, "call")
        metrics.nodes.labels(flow, kind, event.outcome.status).inc()
        metrics.recalled.labels(flow).inc(event.recalled)
        self._answered(node)
        began = self._began.pop(node, None)
        if began is not None:
            metrics.running.labels(flow).dec()
            metrics.node_seconds.labels(flow, kind).observe(event.at_s - began)

    def _answered(self, node: NodeId) -> None:
        if node in self._asking:
            self._asking.discard(node)
            self._metrics.asking.labels(self._flow).dec()

    def _spends(self, usage: Usage) -> None:
        metrics, flow = self._metrics, self._flow
        metrics.tokens.labels(flow, "prompt").inc(usage.prompt_tokens)
        metrics.tokens.labels(flow, "completion").inc(usage.completion_tokens)
        metrics.tokens.labels(flow, "cached").inc(usage.cached_tokens)
        metrics.requests.labels(flow).inc(usage.requests)
        metrics.money.labels(flow).inc(usage.money)

    def _run_ends(self, event: RunFinished) -> None:
        metrics, flow = self._metrics, self._flow
        metrics.running.labels(flow).dec(len(self._began))
        metrics.asking.labels(flow).dec(len(self._asking))
        self._began.clear()
        self._asking.clear()
        metrics.runs.labels(flow, event.status).inc()
        metrics.run_seconds.labels(flow).observe(event.at_s)
        metrics.active.labels(flow).dec()


class MetricsServer:
    """Serves the metrics in `registry` on `127.0.0.1:port` until `close`; 0 takes a free port.

    Raises: `ServeError` when the port cannot be taken.
    """

    def __init__(self, registry: CollectorRegistry, port: int) -> None:
        try:
            self._server, self._thread = start_http_server(port, "127.0.0.1", registry)
        except (OSError, OverflowError) as error:
            hint = "choose another --metrics-port, or 0 for a free one"
            raise ServeError(f"port {port} cannot be taken: {error}", hint=hint) from error

    @property
    def address(self) -> str:
        """`http://127.0.0.1:port/metrics`."""
        return f"http://127.0.0.1:{self._server.server_port}/metrics"

    def close(self) -> None:
        """Release the port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
