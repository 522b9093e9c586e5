"""Metrics on a port of this machine, for a scraper."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, start_http_server

from weft.core.errors import ServeError


class Exposed:
    """Serves what is counted in `registry` on `127.0.0.1:port` until `close`; 0 takes a free port.

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
        """Give the port back."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
