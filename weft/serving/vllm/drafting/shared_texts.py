"""Texts for a proposer from outside: over a socket, or from a file of earlier servers.

A text is a line of JSON, checked wherever it arrives. The server never fails its owner: it cuts off
clients that send malformed data, too much, or nothing for a while, and drops texts when its queue
is full. The file belongs to one model and vocabulary.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from weft.serving.vllm.drafting.memory import LONGEST_LABEL

MOST_TOKENS: Final = 4096
LONGEST_LINE: Final = 64 * 1024
Text = tuple[str, tuple[int, ...]]


def to_line(label: str, tokens: Sequence[int]) -> bytes:
    """A line of at most `LONGEST_LINE` bytes with the last tokens of a text."""
    message = {"label": label[:LONGEST_LABEL], "tokens": list(tokens[-MOST_TOKENS:])}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def from_line(line: bytes, vocabulary: int) -> Text | None:
    """The text in a line; None for a line that contains none of this vocabulary."""
    if len(line) > LONGEST_LINE:
        return None
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict):
        return None
    label, tokens = message.get("label"), message.get("tokens")
    if not isinstance(label, str) or len(label) > LONGEST_LABEL or not isinstance(tokens, list):
        return None
    fine = all(type(token) is int and 0 <= token < vocabulary for token in tokens)
    return (label, tuple(tokens)) if fine and len(tokens) <= MOST_TOKENS else None


LOG = logging.getLogger("vllm.weft")
_CONNECTIONS: Final = 16
_QUEUED: Final = 256
_SILENCE_S: Final = 30.0
_READ: Final = 64 * 1024


class DraftChannelServer:
    """Receives texts at the socket `path`. `vocabulary` bounds their token ids.

    Raises: `OSError` for a path that cannot be bound, such as one that is too long.
    """

    def __init__(self, path: Path, vocabulary: int) -> None:
        self._path = path
        self._vocabulary = vocabulary
        self._received: SimpleQueue[Text] = SimpleQueue()
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
        self._thread = threading.Thread(target=self._listen, name="weft-draft-channel", daemon=True)
        self._thread.start()

    def received(self) -> Iterator[Text]:
        """The received texts, each once."""
        with suppress(Empty):
            while True:
                yield self._received.get_nowait()

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
                except Exception as raised:  # noqa: BLE001 - a thread dies silently
                    LOG.warning("weft's proposer did not read: %r", raised)
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
        """Receive the available data; whether the connection stays open."""
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
        if self._received.qsize() < _QUEUED:
            self._received.put(text)
        else:
            self.dropped += 1
        return True


_TIMEOUT_S: Final = 0.2
_PROPOSERS: Final = 64


async def share_text(folder: Path, label: str, tokens: Sequence[int]) -> int:
    """Send a text to every proposer that listens in `folder`; how many received it.

    Never raises, nor waits long. Removes sockets without a listener.
    """
    line = to_line(label, tokens)
    async with asyncio.TaskGroup() as group:
        sends = [group.create_task(_send(path, line)) for path in _sockets(folder)]
    return sum(each.result() for each in sends)


async def _send(path: Path, line: bytes) -> bool:
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            _, writer = await asyncio.open_unix_connection(path)
            writer.write(line)
            await writer.drain()
        return True
    except ConnectionRefusedError:
        _remove(path)
        return False
    except (OSError, TimeoutError):
        return False
    finally:
        if writer is not None:
            with suppress(OSError):
                writer.close()


def _sockets(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.sock"))[:_PROPOSERS]


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


_CAPACITY: Final = 2000
_LARGEST: Final = 64 * 2**20


class TextArchive:
    """The last texts of a model, in `folder`. Reading and writing never raise."""

    def __init__(self, folder: Path, model: str, vocabulary: int) -> None:
        name = re.sub(r"[^\w.-]", "_", model)[-80:].lstrip(".") or "model"
        self._path = folder / f"{name}-{vocabulary}.jsonl"
        self._vocabulary = vocabulary
        self._lines = 0

    def texts(self) -> Iterator[Text]:
        """The last texts, oldest first. Truncates the file to them."""
        try:
            if self._path.stat().st_size > _LARGEST:
                raise OSError("it is too large")
            with self._path.open("rb") as file:
                lines = deque(file, maxlen=_CAPACITY)
            self._write(b"".join(lines))
        except FileNotFoundError:
            return
        except OSError as error:
            LOG.warning("weft's proposer starts without what was known: %s", error)
            with suppress(OSError):
                self._path.unlink()
            return
        self._lines = len(lines)
        for line in lines:
            text = from_line(line, self._vocabulary)
            if text is not None:
                yield text

    def keep(self, label: str, tokens: Sequence[int]) -> None:
        """Append a text, unless it is too short or has no label, which later runs need."""
        if not label or len(tokens) < 3 or self._lines >= 2 * _CAPACITY:
            return
        self._lines += 1
        with suppress(OSError):
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "ab") as file:
                file.write(to_line(label, tokens))

    def _write(self, content: bytes) -> None:
        new = self._path.with_suffix(".new")
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
        new.replace(self._path)
