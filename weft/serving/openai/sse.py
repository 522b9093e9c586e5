"""Server-sent events out of bytes, however they were cut; does not know what the events mean."""

from __future__ import annotations

import re

from weft.core.errors import ModelOutputError

_LINE_END = re.compile(rb"\r\n|\n|\r")


class EventParser:
    """Feed it bytes as they arrive; it gives back the data of each event that became complete.

    Memory is bounded by `max_event_bytes`, the most one event may hold.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self._max = max_event_bytes
        self._line = bytearray()
        self._data: list[bytes] = []
        self._held = b""
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that `chunk` completes, in order.

        Raises: `ModelOutputError` when one event is larger than allowed.
        """
        chunk = self._held + chunk
        # A CR at the very end may be half of a CRLF.
        self._held = chunk[-1:] if chunk.endswith(b"\r") else b""
        first, *rest = _LINE_END.split(chunk.removesuffix(b"\r"))
        events: list[bytes] = []
        self._grow(first)
        for piece in rest:
            self._end_line(events)
            self._grow(piece)
        return events

    def end(self) -> list[bytes]:
        """What is left when the stream has ended: an event whose closing blank line is missing."""
        events: list[bytes] = []
        self._end_line(events)
        self._dispatch(events)
        return events

    def _grow(self, piece: bytes) -> None:
        self._line += piece
        self._size += len(piece)
        if self._size > self._max:
            raise ModelOutputError(
                f"the server sent one event of more than {self._max:,} bytes", retryable=False
            )

    def _end_line(self, events: list[bytes]) -> None:
        line = bytes(self._line)
        self._line.clear()
        if not line:
            self._dispatch(events)
        elif line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        else:
            self._size -= len(line)

    def _dispatch(self, events: list[bytes]) -> None:
        if self._data:
            events.append(b"\n".join(self._data))
        self._data.clear()
        self._size = 0
