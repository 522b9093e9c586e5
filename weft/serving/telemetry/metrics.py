"""What runs did, for Prometheus. Counts events; knows no port and no run by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from weft.core.calls import CallEvent
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
from weft.serving.fleet.metrics import FleetCollector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 7200)


class RunMetrics:
    """Counts of runs that are listened to, and of fleets, in a registry of its own or that given.

    Labels hold names of flows, kinds of nodes, statuses and decoders only: neither a model's words
    nor a run's id can add series.
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = own = registry or CollectorRegistry()
        own.register(FleetCollector())
        self.runs = Counter("weft_runs", "Runs that have ended.", ["flow", "status"], registry=own)
        self.active = Gauge("weft_runs_active", "Runs under way.", ["flow"], registry=own)
        self.run_seconds = Histogram(
            "weft_run_seconds", "How long runs took.", ["flow"], buckets=_SECONDS, registry=own
        )
        self.nodes = Counter(
            "weft_nodes", "Nodes that have ended.", ["flow", "kind", "status"], registry=own
        )
        self.running = Gauge(
            "weft_nodes_running", "Nodes that have begun and not ended.", ["flow"], registry=own
        )
        self.node_seconds = Histogram(
            "weft_node_seconds",
            "From a node's first attempt to its end.",
            ["flow", "kind"],
            buckets=_SECONDS,
            registry=own,
        )
        self.retries = Counter("weft_retries", "Attempts repeated.", ["flow", "kind"], registry=own)
        self.recalled = Counter(
            "weft_nodes_recalled",
            "Nodes that an earlier process had ended.",
            ["flow"],
            registry=own,
        )
        self.asking = Gauge(
            "weft_questions", "Questions that wait for a person.", ["flow"], registry=own
        )
        self.tokens = Counter(
            "weft_tokens", "Tokens that models took.", ["flow", "kind"], registry=own
        )
        self.requests = Counter("weft_model_requests", "Model calls.", ["flow"], registry=own)
        self.money = Counter("weft_money_usd", "US dollars spent.", ["flow"], registry=own)
        self.forwards = Counter(
            "weft_decoder_forwards",
            "Passes of models that wrote several tokens each.",
            ["flow", "decoder"],
            registry=own,
        )
        self.decoded = Counter(
            "weft_decoder_tokens",
            "Tokens that came several a pass: drafted and accepted, or filled in.",
            ["flow", "decoder"],
            registry=own,
        )

    def listener(self) -> Callable[[Event | CallEvent], None]:
        """A listener for one run."""
        return _Counting(self)

    def text(self) -> bytes:
        """Everything counted, in Prometheus' text format."""
        return generate_latest(self.registry)


class _Counting:
    def __init__(self, metrics: RunMetrics) -> None:
        self._to = metrics
        self._flow = ""
        self._kinds: dict[NodeId, str] = {}
        self._began: dict[NodeId, float] = {}
        self._asking: set[NodeId] = set()

    def __call__(self, event: Event | CallEvent) -> None:
        to, flow = self._to, self._flow
        match event:
            case RunStarted():
                self._run_begins(event)
            case GraphGrew(nodes=nodes):
                self._kinds.update((info.id, info.kind) for info in nodes)
            case NodeStarted(node=node, at_s=at_s) if node not in self._began:
                self._began[node] = at_s
                to.running.labels(flow).inc()
            case NodeFinished():
                self._node_ends(event)
            case NodeSpent(usage=usage):
                self._spends(usage)
            case HumanAsked(node=node):
                self._asking.add(node)
                to.asking.labels(flow).inc()
            case HumanAnswered(node=node):
                self._answered(node)
            case RunFinished():
                self._run_ends(event)
            case _:
                self._else(event)

    def _run_begins(self, event: RunStarted) -> None:
        self._flow = event.flow
        self._kinds.update((info.id, info.kind) for info in event.nodes)
        self._to.active.labels(self._flow).inc()

    def _else(self, event: Event | CallEvent) -> None:
        """Counts that one field of an event is."""
        to, flow = self._to, self._flow
        match event:
            case NodeRetrying(node=node):
                to.retries.labels(flow, self._kinds.get(node, "call")).inc()
            case NodeDecoded(speculated=how):
                to.forwards.labels(flow, how.method).inc(how.forwards)
                to.decoded.labels(flow, how.method).inc(how.accepted)
            case NodeDenoised(denoised=how):
                to.forwards.labels(flow, how.method).inc(how.forwards)
                to.decoded.labels(flow, how.method).inc(how.kept)
            case _:
                pass  # the rest is for who looks at one run

    def _node_ends(self, event: NodeFinished) -> None:
        to, flow, node = self._to, self._flow, event.node
        kind = self._kinds.pop(node, "call")
        to.nodes.labels(flow, kind, event.outcome.status).inc()
        to.recalled.labels(flow).inc(event.recalled)
        self._answered(node)
        began = self._began.pop(node, None)
        if began is not None:
            to.running.labels(flow).dec()
            to.node_seconds.labels(flow, kind).observe(event.at_s - began)

    def _answered(self, node: NodeId) -> None:
        if node in self._asking:
            self._asking.discard(node)
            self._to.asking.labels(self._flow).dec()

    def _spends(self, usage: Usage) -> None:
        to, flow = self._to, self._flow
        to.tokens.labels(flow, "prompt").inc(usage.prompt_tokens)
        to.tokens.labels(flow, "completion").inc(usage.completion_tokens)
        to.tokens.labels(flow, "cached").inc(usage.cached_tokens)
        to.requests.labels(flow).inc(usage.requests)
        to.money.labels(flow).inc(usage.money)

    def _run_ends(self, event: RunFinished) -> None:
        to, flow = self._to, self._flow
        to.running.labels(flow).dec(len(self._began))
        to.asking.labels(flow).dec(len(self._asking))
        self._began.clear()
        self._asking.clear()
        to.runs.labels(flow, event.status).inc()
        to.run_seconds.labels(flow).observe(event.at_s)
        to.active.labels(flow).dec()
