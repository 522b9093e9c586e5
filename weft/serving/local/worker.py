"""The thread that owns a model. It lives while there is work and ends when there is none.

Knows nothing of tensors: it moves tickets to the batcher and lets it step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from weft.core.errors import WeftError
from weft.serving.local.failure import converted
from weft.serving.local.ticket import Ticket

if TYPE_CHECKING:
    from weft.serving.local.batch import Batching


class Worker:
    """Serves tickets from any thread on one thread of its own.

    The thread is not a daemon: the interpreter waits for rows whose streams are still open, and a
    closed stream ends its row before the next step.
    """

    def __init__(self, load: Callable[[], Batching]) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._arrived: list[tuple[Ticket, ...]] = []
        self._thread: threading.Thread | None = None
        self._closed: WeftError | None = None
        self._batcher: Batching | None = None

    @property
    def forwards(self) -> int:
        """Forward passes so far."""
        return self._batcher.forwards if self._batcher else 0

    @property
    def running(self) -> int:
        """Rows of the batch in use."""
        return len(self._batcher.rows) if self._batcher else 0

    def submit(self, *tickets: Ticket) -> None:
        """Take on a ticket, or those of a group that runs together.

        Their events, or one error, will be put into them.
        """
        with self._lock:
            if self._closed is not None:
                self._refuse([tickets], self._closed)
                return
            self._arrived.append(tickets)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="weft-local-model")
                self._thread.start()

    def close(self, reason: WeftError) -> None:
        """Fail what is running with `reason`, let the weights go, wait for the thread."""
        with self._lock:
            self._closed = self._closed or reason
            thread = self._thread
        if thread is not None:
            thread.join()
        if self._batcher is not None:
            self._batcher.close()
        self._batcher = None

    def _run(self) -> None:
        while self._take_in():
            if self._batcher is not None:
                self._step(self._batcher)

    def _take_in(self) -> bool:
        """Move arrived tickets to the batcher; whether there is anything to do."""
        with self._lock:
            arrived, self._arrived = self._arrived, []
            if self._closed is not None:
                self._refuse(arrived, self._closed)
                if self._batcher is not None:
                    self._batcher.abort(self._closed)
                arrived = []
            if not arrived and (self._batcher is None or self._batcher.idle):
                self._thread = None
                return False
        self._hand_over(arrived)
        return True

    def _hand_over(self, arrived: list[tuple[Ticket, ...]]) -> None:
        if not arrived:
            return
        try:
            batcher = self._batcher = self._batcher or self._load()
        except BaseException as error:  # noqa: BLE001 - converted, and told to all who wait
            self._refuse(arrived, converted("the model cannot be loaded", error))
            return
        for tickets in arrived:
            batcher.add(*tickets)

    def _step(self, batcher: Batching) -> None:
        try:
            batcher.step()
        except BaseException as error:  # noqa: BLE001 - converted, and told to all who wait
            batcher.abort(converted("the model failed", error))

    def _refuse(self, arrived: list[tuple[Ticket, ...]], error: WeftError) -> None:
        for ticket in (ticket for tickets in arrived for ticket in tickets):
            ticket.put(error)
