"""The log entry of one request and its response, and the gateway's Prometheus metrics.

Neither contains content or keys.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import Scope

from weft.core.values import Completion, Usage
from weft.serving.gateway.admission import AdmissionQueue

_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
_KEY = "weft.exchange"


@dataclass(slots=True)
class GatewayExchange:
    """One request and its response. `status` is 0 until the response begins; `error` is for logs.

    `model` is a served model, or empty. `runs` are the ids of the recorded runs behind the answer.
    `gone`: the client disconnected before the end.
    """

    id: str
    method: str
    path: str
    model: str = ""
    status: int = 0
    error: str = ""
    gone: bool = False
    started_s: float = field(default_factory=time.perf_counter)
    seconds: float = 0.0
    runs: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the response is complete and not an error."""
        return self.status < 400 and not self.error and not self.gone

    def elapsed_s(self) -> float:
        """Seconds since the request's headers arrived."""
        return time.perf_counter() - self.started_s

    @classmethod
    def of(cls, scope: Scope) -> GatewayExchange:
        """The exchange of an admitted request."""
        found: GatewayExchange = scope[_KEY]
        return found

    @classmethod
    def begin(cls, scope: Scope, wanted_id: str | None) -> GatewayExchange:
        """A new exchange, with the client's own request id where that is harmless."""
        fits = wanted_id is not None and _ID.match(wanted_id)
        request_id = wanted_id if wanted_id and fits else f"req_{uuid.uuid4().hex}"
        found = cls(request_id, scope["method"], scope["path"])
        scope[_KEY] = found
        return found


Report = Callable[[GatewayExchange], None]
"""Receives every finished exchange, except health checks and metrics."""


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ANSWER_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_FIRST_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class GatewayMetrics:
    """The metrics. Labels are names of served models and statuses: clients cannot add series."""

    def __init__(
        self, admission: AdmissionQueue, registry: CollectorRegistry | None = None
    ) -> None:
        self._registry = own = registry or CollectorRegistry()
        counter = partial(Counter, registry=own)
        self._requests = counter(
            "weft_gateway_requests", "Requests that have ended.", ["model", "status"]
        )
        self._broken = counter(
            "weft_gateway_broken_streams", "Streams that ended in an error.", ["model"]
        )
        self._gone = counter("weft_gateway_disconnects", "Clients that hung up early.", ["model"])
        self._seconds = Histogram(
            "weft_gateway_request_seconds",
            "From a request's headers to the end of its answer.",
            ["model"],
            buckets=_ANSWER_S,
            registry=own,
        )
        self._first = Histogram(
            "weft_gateway_first_token_seconds",
            "From a request's headers to the first piece of a streamed answer.",
            ["model"],
            buckets=_FIRST_S,
            registry=own,
        )
        self._tokens = counter(
            "weft_gateway_tokens", "Tokens that answers took.", ["model", "kind"]
        )
        running = Gauge("weft_gateway_running", "Answers under way.", registry=own)
        running.set_function(lambda: admission.running)
        waiting = Gauge("weft_gateway_waiting", "Requests that wait for a place.", registry=own)
        waiting.set_function(lambda: admission.waiting)

    def ended(self, exchange: GatewayExchange) -> None:
        """Count a finished request."""
        self._requests.labels(exchange.model, str(exchange.status)).inc()
        if exchange.gone:
            self._gone.labels(exchange.model).inc()
        elif exchange.model and exchange.ok:
            self._seconds.labels(exchange.model).observe(exchange.seconds)
        elif exchange.status == 200:
            self._broken.labels(exchange.model).inc()

    def first_token(self, exchange: GatewayExchange) -> None:
        """Record the first token of a streamed answer."""
        self._first.labels(exchange.model).observe(exchange.elapsed_s())

    def spent(self, model: str, answers: Sequence[Completion]) -> None:
        """Count the tokens of answers."""
        usage = sum((answer.usage for answer in answers), Usage())
        self._tokens.labels(model, "prompt").inc(usage.prompt_tokens)
        self._tokens.labels(model, "completion").inc(usage.completion_tokens)
        self._tokens.labels(model, "cached").inc(usage.cached_tokens)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)
