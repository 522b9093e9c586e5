"""One connection of a client, given up when the client dawdles. Knows no requests.

uvicorn has no time limits for headers, nor for clients that do not read; both would let a handful
of clients hold a server's connections and answers for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class PatientConnection(H11Protocol):
    """Headers take at most `header_timeout_s`; what is written is read within `write_timeout_s`."""

    def __init__(
        self, *args: Any, header_timeout_s: float, write_timeout_s: float, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._headers_come = _Patience(header_timeout_s)
        self._client_reads = _Patience(write_timeout_s)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._headers_come.begin(self.loop, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_come.end()
        self._client_reads.end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # What still comes after an early answer is read out, so that the client hears the answer.
        unheard = self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY
        if unheard or self.conn.their_state is h11.IDLE:
            self._headers_come.begin(self.loop, self.transport.abort)
        else:
            self._headers_come.end()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._client_reads.begin(self.loop, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._client_reads.end()


class _Patience:
    """A time limit that begins once and ends."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, loop: asyncio.AbstractEventLoop, out: Callable[[], None]) -> None:
        """Call `out` when the time is over. No effect when it has begun."""
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, out)

    def end(self) -> None:
        """It has come in time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
