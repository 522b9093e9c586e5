"""Listeners outside a run: OpenTelemetry spans, if the environment configures them, and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from weft.core.calls import CallEvent
from weft.core.errors import ServeError
from weft.core.events import Event, Listener
from weft.core.extras import optional_packages
from weft.core.loggers import logger
from weft.serving.telemetry.export import Tracing, wanted

if TYPE_CHECKING:
    from weft.serving.telemetry.metrics import RunMetrics

_logger = logger("telemetry")
CallObserver = Callable[[Event | CallEvent], None]


class CallListener:
    """Notifies an optional observer of calls. An observer that raises is removed."""

    def __init__(self, observer: CallObserver | None) -> None:
        self._observer = observer

    def tell(self, event: Event | CallEvent) -> None:
        """Notify the observer; `event` is redacted."""
        if self._observer is None:
            return
        try:
            self._observer(event)
        except Exception as error:  # noqa: BLE001 - an observer must not fail the run
            self._observer = None
            _logger.warning("a listener of calls raised %r and is told no more", error)


def run_spans() -> CallObserver | None:
    """A listener that makes one run's spans; None where the environment configures none.

    Raises: `BuildError` for an unknown exporter, or when the packages are missing.
    """
    return _tracing().listener() if wanted() else None


@cache
def _tracing() -> Tracing:
    return Tracing()  # one for the process: providers batch, and flush at its end


@dataclass(frozen=True, slots=True)
class MetricsEndpoint:
    """Metrics of this process's runs at an `address`."""

    address: str
    listener: Listener


@contextmanager
def serve_metrics(port: int) -> Iterator[MetricsEndpoint]:
    """Serve the metrics of runs on a port of this machine; 0 takes a free one.

    Raises: `ServeError` when the port is taken, or when the package is missing.
    """
    metrics = run_metrics()
    from weft.serving.telemetry.metrics import MetricsServer

    server = MetricsServer(metrics.registry, port)
    try:
        yield MetricsEndpoint(server.address, metrics.listener())
    finally:
        server.close()


def run_metrics() -> RunMetrics:
    """Counts of runs. Raises: `ServeError` when the package is missing."""
    with optional_packages("metrics", ServeError):
        from weft.serving.telemetry.metrics import RunMetrics
    return RunMetrics()
