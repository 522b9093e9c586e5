"""Writes the events of one run to its journal, as soon as its durability asks for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final, Literal, Protocol, TypeVar

from weft.core.calls import ModelStreamed
from weft.core.errors import Cancelled, Failure, StoreError
from weft.core.events import (
    HumanAnswered,
    HumanAsked,
    JoinDecided,
    NodeFinished,
    NodeStarted,
    NodeStreamed,
    RunFinished,
    RunResumed,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.core.loggers import logger
from weft.core.ports import Clock, Timer
from weft.core.ports.clock import SystemClock
from weft.core.ports.journal import Journal, Letter, Record
from weft.engine.runner.inbox import SignalInbox, SignalTarget
from weft.engine.runner.meter import Meter
from weft.engine.scheduler.commands import Start

_PIECES = (NodeStreamed, ModelStreamed)
_MAX_PIECES = 256  # pieces joined into one: joining one by one would copy the text each time


class PendingRecords:
    """Records in order. Deferred ones pass `redact`, all together, before they leave."""

    def __init__(self, redact: Callable[[list[Record]], list[Record]] | None = None) -> None:
        self.records: list[Record] = []
        self._redact = redact
        self._deferred: list[Record] = []
        self.defer = self._deferred.append
        self._streams: dict[tuple[str, str], tuple[int, list[NodeStreamed | ModelStreamed]]] = {}

    def __len__(self) -> int:
        return len(self.records) + len(self._deferred)

    def add(self, record: Record) -> None:
        """Add the next record."""
        if self._deferred:
            self._redact_deferred()
        if isinstance(record, _PIECES):
            self._add_piece(record)
        else:
            if self._streams:
                self._join_pieces()
            self.records.append(record)

    def take(self) -> list[Record]:
        """Remove and return all records, in order."""
        if self._deferred and not self.records:
            records, self._deferred = self._deferred, []
            self.defer = self._deferred.append
            return records if self._redact is None else self._redact(records)
        if self._deferred:
            self._redact_deferred()
        elif self._streams:
            self._join_pieces()
        records, self.records = self.records, []
        return records

    def _redact_deferred(self) -> None:
        if self._streams:
            self._join_pieces()
        deferred, self._deferred = self._deferred, []
        self.defer = self._deferred.append
        self.records += deferred if self._redact is None else self._redact(deferred)

    def _add_piece(self, piece: NodeStreamed | ModelStreamed) -> None:
        stream = piece.node, piece.call if isinstance(piece, ModelStreamed) else ""
        open_stream = self._streams.get(stream)
        if open_stream is None or len(open_stream[1]) >= _MAX_PIECES:
            self._streams[stream] = len(self.records), [piece]
            self.records.append(piece)
        else:
            open_stream[1].append(piece)

    def _join_pieces(self) -> None:
        for place, pieces in self._streams.values():
            if len(pieces) > 1:
                self.records[place] = _joined(pieces)
        self._streams.clear()


def _joined(pieces: list[NodeStreamed | ModelStreamed]) -> Record:
    first = pieces[0]
    if isinstance(first, NodeStreamed):
        nodes = [piece for piece in pieces if isinstance(piece, NodeStreamed)]
        text = "".join(piece.text for piece in nodes)
        return replace(first, text=text, tokens=sum(piece.tokens for piece in nodes))
    deltas = [d for piece in pieces if isinstance(piece, ModelStreamed) for d in piece.deltas]
    return replace(first, deltas=tuple(deltas))


_logger = logger("journal")
T = TypeVar("T")
Durability = Literal["none", "exit", "async", "sync"]
"""When events are in the journal.

sync    before anything is started that builds on them
async   soon: within some 20 ms
exit    at the end of the run, when a person is asked, and around calls that must not be repeated
none    never
"""

PATIENCE_S: Final = 300.0
"""How long a run waits for a journal that cannot be written for the moment."""
_FIRST_DELAY_S: Final = 0.1
_LONGEST_DELAY_S: Final = 10.0
_SOON_S: Final = 0.02
_POLL_S: Final = 0.25
_CROWDED: Final = 20_000
_DURABLE_EVENTS: Final = frozenset(
    (RunStarted, RunResumed, NodeFinished, JoinDecided, HumanAsked, HumanAnswered, RunFinished)
)
_KEPT_EVENTS: Final = frozenset((NodeStarted, NodeFinished))


class Redactions(Protocol):
    """Removes secrets from records."""

    @property
    def alone(self) -> Container[type]:
        """Kinds of records that may be redacted later, with others."""

    @property
    def holds_back(self) -> bool:
        """Whether the end of a node has to be redacted at once."""

    def redact_all(self, records: list[Record]) -> list[Record]:
        """The records without their secrets."""


class RecorderHost(SignalTarget, Protocol):
    """The run that is recorded."""

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run started, in all its parts."""

    def start(self, starts: Sequence[Start]) -> None:
        """Start what had to wait for the record of its cause."""

    def journal_lost(self, failure: Failure) -> None:
        """End the run: nothing can be recorded any more."""


class RunRecorder:
    """The record of one run. The caller holds the right to write (see `Journal.begin`, `claim`).

    A `quick` journal is written in the event loop; while another process writes to it, in a thread
    that waits, as other journals always are. Records that it takes are already redacted, except
    those that `defer` takes: `redactions` redact these. `letters` have been taken from the journal
    already.

    A failure that may pass, such as a journal that is locked or cannot be reached, is retried for
    `patience_s` seconds of the run's clock: running nodes continue, what would follow from them
    waits. After that the run is `suspended`: it ends here, but its record has no end. Where the
    journal cannot be written for good, the run ends, failed.
    """

    def __init__(
        self,
        journal: Journal,
        run: RunId,
        durability: Durability = "sync",
        *,
        letters: Iterable[Letter] = (),
        patience_s: float = PATIENCE_S,
        redactions: Redactions | None = None,
    ) -> None:
        self.lost: StoreError | None = None
        self.suspended = False
        self._patience_s = patience_s
        self._journal = journal
        self._run = run
        self._durability = durability
        self._left = self._closing = False
        self._in_loop = journal.quick
        self._inbox = SignalInbox(journal, run, letters)
        self._takes = durability != "none"
        self._redactions = redactions
        self._alone: Container[type] = () if redactions is None else redactions.alone
        self._waiting = PendingRecords(None if redactions is None else redactions.redact_all)
        self._flush_due = False
        self._durable_kinds = _DURABLE_EVENTS if durability == "sync" else frozenset((HumanAsked,))
        self._deferred_starts: list[Start] = []
        self._writing: asyncio.Future[None] | None = None
        self._timers: dict[float, Timer] = {}
        self._thread: ThreadPoolExecutor | None = None
        self._host: RecorderHost | None = None
        self._clock: Clock | None = None
        self._meter: Meter | None = None

    # -- events --------------------------------------------------------------------------------

    def begin(self, host: RecorderHost, clock: Clock) -> None:
        """The run begins."""
        self._host, self._clock = host, clock
        if isinstance(clock, SystemClock):
            self._meter = Meter()
        if self._durability != "none":
            self._later(_POLL_S, self._poll)

    @property
    def now_s(self) -> float:
        """Seconds of the run, those of its earlier parts included; 0 before it begins."""
        return self.seconds()

    def seconds(self) -> float:
        """`now_s` as a function, for a component that takes a clock."""
        return 0.0 if self._host is None else self._host.elapsed_s

    def metered(self, node: NodeId, work: Awaitable[Any]) -> Awaitable[Any]:
        """`work`, an attempt of `node`, measured where the run is in real time."""
        return work if self._meter is None else self._meter.run(node, work)

    def record(self, event: Record) -> None:
        """Add the next event of the run."""
        if self._left:
            return
        if self._meter is not None and type(event) is RunFinished:
            self.add(self._meter.measured(event.at_s))
        self.add(event)
        if type(event) in self._durable_kinds:
            self._flush_due = True
            if isinstance(event, HumanAsked) and self._host is not None:
                self._inbox.answer_early(event.node, self._host)

    def defer(self, record: Record) -> bool:
        """Add the next event or call unredacted: it is redacted when its batch is written.

        False where it has to be redacted now, and then goes to `record` or `add`.
        """
        kind, redactions = type(record), self._redactions
        if redactions is None or (
            kind not in self._alone and (kind is not NodeFinished or redactions.holds_back)
        ):
            return False
        if self._takes and not (self._left and kind in _KEPT_EVENTS):
            self._waiting.defer(record)
            if kind in self._durable_kinds:
                self._flush_due = True
            if self._durability == "async":
                self._write_soon()
        return True

    def add(self, record: Record) -> None:
        """Add a call across the I/O boundary, to be written with what follows it."""
        if self._takes:
            self._waiting.add(record)
            if self._durability == "async":
                self._write_soon()

    async def write(self, event: Record, durable: bool = False) -> None:
        """Add a call across the I/O boundary. `durable`: it is in the journal on return.

        Raises: `StoreError` where it cannot be.
        """
        self.add(event)
        if durable:
            await self.settle()

    async def settle(self) -> None:
        """Wait until all records taken so far are in the journal.

        Raises: `StoreError` where they cannot be.
        """
        await self.flush()
        if self.lost is not None:
            raise self.lost

    def commit(self, starts: Sequence[Start]) -> None:
        """End a scheduling step: let `starts` start, as soon as the step is durable enough."""
        if self.lost is not None:
            return
        if not self._flush_due and not self._deferred_starts:
            self._release(starts)
        else:
            self._deferred_starts += starts
            self._write()

    def leave(self) -> None:
        """Record no more events: in the journal the run has not ended. Calls are recorded."""
        self._left = True

    async def flush(self) -> None:
        """Write all records taken so far."""
        for _ in range(2):  # what is being written now, and what waits
            self._write()
            if self._writing is None:
                return
            await asyncio.wait([self._writing])

    async def close(self) -> StoreError | None:
        """Write the rest, and stop; the error that prevented it, if any."""
        self._closing = True
        for timer in self._timers.values():
            timer.cancel()
        await self.flush()
        self._host = None
        if self._thread is not None:
            self._thread.shutdown(wait=False)
        return self.lost

    # -- writing -------------------------------------------------------------------------------

    def _write_soon(self) -> None:
        self._later(_SOON_S, self._write)
        self._flush_due |= len(self._waiting) > _CROWDED

    def _release(self, starts: Sequence[Start]) -> None:
        if starts and self.lost is None and self._host is not None:
            self._host.start(starts)

    def _write(self) -> None:
        """Write the waiting records: one batch at a time, the next when it is done."""
        if self.lost is not None:
            return
        if self._writing is not None:
            self._flush_due = True
            return
        self._flush_due = False
        starts, self._deferred_starts = self._deferred_starts, []
        if self._waiting:
            self._writing = self._appending()
        if self._writing is None:
            self._release(starts)
        else:
            self._writing.add_done_callback(lambda done: self._written(done, starts))

    def _appending(self) -> asyncio.Future[None] | None:
        """Write the waiting records; where a thread has to, return its future."""
        try:
            records = self._waiting.take()
            if not self._in_loop:
                return asyncio.ensure_future(self._persist(records))
            try:
                self._journal.append(self._run, records, wait=False)
            except StoreError as error:
                if not error.retryable:
                    raise
                return asyncio.ensure_future(self._persist(records))
        except Exception as error:  # noqa: BLE001 - whatever a journal or a value raises
            self._lose(error)
        return None

    def _written(self, done: asyncio.Future[None], starts: Sequence[Start]) -> None:
        self._writing = None
        if (error := done.exception()) is not None:
            self._lose(error)
        self._release(starts)
        if self._flush_due or self._deferred_starts:
            self._write()

    async def _persist(self, records: Sequence[Record]) -> None:
        """Append in the thread, with retries. Raises: the error of the last try."""
        clock, delay_s = self._clock, _FIRST_DELAY_S
        began_s = clock.now() if clock is not None else 0.0
        while True:
            try:
                return await self._in_thread(self._journal.append, self._run, records)
            except StoreError as error:
                if not error.retryable or clock is None:
                    raise
                left_s = began_s + self._patience_s - clock.now()
                if left_s <= 0:
                    self.suspended = True
                    raise
                if delay_s == _FIRST_DELAY_S:
                    text = "%s waits for its journal, for %g s at most: %s"
                    _logger.warning(text, self._run, self._patience_s, error.message)
            await clock.sleep(min(delay_s, left_s))
            delay_s = min(2 * delay_s, _LONGEST_DELAY_S)

    def _lose(self, error: BaseException) -> None:
        cause = error if isinstance(error, StoreError) else StoreError(repr(error))
        if self.lost is not None:
            return
        if self.suspended:
            hint = f"`weft resume {self._run}` goes on with it once its journal can be written"
            waited = f"its journal could not be written for {self._patience_s:g} s"
            self.lost = StoreError(f"the run is suspended: {waited}: {cause.message}", hint=hint)
            failure = Cancelled(self.lost.message, hint=hint).failure()
        else:
            self.lost = StoreError(f"the run cannot be recorded: {cause.message}", hint=cause.hint)
            failure = self.lost.failure()
        self.lost.__cause__ = error
        self._takes = False
        if self._host is not None:
            self._host.journal_lost(failure)

    # -- timers --------------------------------------------------------------------------------

    def _poll(self) -> None:
        """Write what waits, for observers in other processes, and read their signals."""
        if self._durability != "exit":
            self._write()
        if self._in_loop:
            try:
                self._deliver(self._inbox.read(wait=False))
            except StoreError as error:
                if error.retryable:
                    self._later(_POLL_S, self._poll)
                else:
                    self._lose(error)
            return
        self._in_thread(self._inbox.read).add_done_callback(self._polled)

    def _polled(self, done: asyncio.Future[Sequence[Letter]]) -> None:
        error = done.exception()
        if error is None:
            self._deliver(done.result())
        elif isinstance(error, StoreError) and error.retryable:
            self._later(_POLL_S, self._poll)
        else:
            self._lose(error)

    def _deliver(self, letters: Sequence[Letter]) -> None:
        if self._host is not None and self.lost is None:
            self._inbox.deliver(letters, self._host)
            self._later(_POLL_S, self._poll)

    def _later(self, delay_s: float, act: Callable[[], None]) -> None:
        if delay_s in self._timers or self._clock is None or self._closing:
            return

        def fire() -> None:
            del self._timers[delay_s]
            act()

        self._timers[delay_s] = self._clock.call_later(delay_s, fire)

    def _in_thread(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="weft-journal")
        return asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
