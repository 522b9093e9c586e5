"""Who listens to runs from outside: spans, where the environment asks for them, and metrics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from weft.core.calls import CallEvent
from weft.core.errors import ServeError
from weft.core.events import Event, Listener
from weft.core.extras import optional_packages
from weft.serving.telemetry.export import Tracing, wanted

if TYPE_CHECKING:
    from weft.serving.telemetry.metrics import RunMetrics

_logger = logging.getLogger("weft")
CallObserver = Callable[[Event | CallEvent], None]


class CallListener:
    """Who hears of calls, if anybody does. One that raises is told no more."""

    def __init__(self, hear: CallObserver | None) -> None:
        self._hear = hear

    def tell(self, event: Event | CallEvent) -> None:
        """Tell it; secrets are out of `event`."""
        if self._hear is None:
            return
        try:
            self._hear(event)
        except Exception as error:  # noqa: BLE001 - a viewer only: the run is worth more
            self._hear = None
            _logger.warning("a listener of calls raised %r and is told no more", error)


def run_spans() -> CallObserver | None:
    """A listener that makes one run's spans; None where the environment asks for none.

    Raises: `BuildError` for an exporter that there is not, or when the packages are missing.
    """
    return _tracing().listener() if wanted() else None


@cache
def _tracing() -> Tracing:
    return Tracing()  # one for the process: providers batch, and send the rest when it ends


@dataclass(frozen=True, slots=True)
class MetricsEndpoint:
    """Metrics of this process's runs at an `address`."""

    address: str
    listener: Listener


@contextmanager
def serve_metrics(port: int) -> Iterator[MetricsEndpoint]:
    """Serve the metrics of runs on a port of this machine; 0 takes a free one.

    Raises: `ServeError` when it cannot be taken, or when the package is missing.
    """
    metrics = run_metrics()
    from weft.serving.telemetry.metrics import MetricsServer

    exposed = MetricsServer(metrics.registry, port)
    try:
        yield MetricsEndpoint(exposed.address, metrics.listener())
    finally:
        exposed.close()


def run_metrics() -> RunMetrics:
    """Counts of runs. Raises: `ServeError` when the package is missing."""
    with optional_packages("metrics", ServeError):
        from weft.serving.telemetry.metrics import RunMetrics
    return RunMetrics()
