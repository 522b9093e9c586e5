"""A proposer's ear: takes texts from any program of the user, in a thread. Never fails its owner.

Each connection sends lines and is answered nothing. Who sends what is none, more than fits, or
nothing for a while is cut off; a queue that nobody empties drops what comes.
"""

from __future__ import annotations

import logging
import os
import selectors
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from weft.serving.vllm.drafting.channel.message import LONGEST_LINE, Text, from_line

LOG = logging.getLogger("vllm.weft")
_CONNECTIONS: Final = 16
_QUEUED: Final = 256
_SILENCE_S: Final = 30.0
_READ: Final = 64 * 1024


class Ear:
    """Listens at `path`. `vocabulary` bounds the token ids that it takes.

    Raises: `OSError` where nobody can listen there, such as for a path that is too long.
    """

    def __init__(self, path: Path, vocabulary: int) -> None:
        self._path = path
        self._vocabulary = vocabulary
        self._heard: SimpleQueue[Text] = SimpleQueue()
        self.dropped = 0
        self._open: dict[socket.socket, tuple[bytearray, float]] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            path.unlink(missing_ok=True)
            self._socket.bind(os.fspath(path))
            path.chmod(0o600)
            self._socket.listen(_CONNECTIONS)
            self._socket.setblocking(False)
        except OSError:
            self._socket.close()
            raise
        self._wake, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._listen, name="weft-ear", daemon=True)
        self._thread.start()

    def heard(self) -> Iterator[Text]:
        """The texts that have come, each once."""
        with suppress(Empty):
            while True:
                yield self._heard.get_nowait()

    def close(self) -> None:
        """Stop listening. Harmless when repeated."""
        with suppress(OSError):
            self._waker.send(b"x")
        self._thread.join()
        self._waker.close()
        self._path.unlink(missing_ok=True)

    def _listen(self) -> None:
        with selectors.DefaultSelector() as waiting, self._socket, self._wake:
            waiting.register(self._socket, selectors.EVENT_READ)
            waiting.register(self._wake, selectors.EVENT_READ)
            while True:
                try:
                    ready = [key.fileobj for key, _ in waiting.select(_SILENCE_S)]
                    if self._wake in ready:
                        break
                    self._serve(waiting, ready)
                except Exception as raised:  # noqa: BLE001 - a thread that dies tells nobody
                    LOG.warning("weft's proposer did not hear: %r", raised)
            for connection in self._open:
                connection.close()

    def _serve(self, waiting: selectors.BaseSelector, ready: Sequence[object]) -> None:
        for connection in list(self._open):
            silent = time.monotonic() - self._open[connection][1] > _SILENCE_S
            if silent or (connection in ready and not self._read(connection)):
                waiting.unregister(connection)
                del self._open[connection]
                connection.close()
        if self._socket in ready:
            connection, _ = self._socket.accept()
            if len(self._open) >= _CONNECTIONS:
                connection.close()
                return
            connection.setblocking(False)
            self._open[connection] = (bytearray(), time.monotonic())
            waiting.register(connection, selectors.EVENT_READ)

    def _read(self, connection: socket.socket) -> bool:
        """Take what has come; whether more may."""
        try:
            data = connection.recv(_READ)
        except BlockingIOError:
            return True
        except OSError:
            return False
        rest, _ = self._open[connection]
        rest += data
        *lines, last = bytes(rest).split(b"\n")
        self._open[connection] = (bytearray(last), time.monotonic())
        return all(self._take(line) for line in lines) and bool(data) and len(last) <= LONGEST_LINE

    def _take(self, line: bytes) -> bool:
        text = from_line(line, self._vocabulary)
        if text is None:
            return False
        if self._heard.qsize() < _QUEUED:
            self._heard.put(text)
        else:
            self.dropped += 1
        return True
