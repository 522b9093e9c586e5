"""Writes what happens in one run to its journal, as soon as its durability asks for."""

from __future__ import annotations

import asyncio
import logging
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
from weft.core.ports import Clock, Timer
from weft.core.ports.clock import SystemClock
from weft.core.ports.journal import Journal, Letter, Record
from weft.engine.runner.inbox import SignalInbox, SignalTarget
from weft.engine.runner.meter import Meter
from weft.engine.scheduler.commands import Start

_PIECES = (NodeStreamed, ModelStreamed)
_LARGEST = 256  # pieces that become one: a text that grew by one piece each time would be copied


class PendingRecords:
    """Records in order. Those that `hold` takes pass `redact`, all together, before they leave."""

    def __init__(self, redact: Callable[[list[Record]], list[Record]] | None = None) -> None:
        self.records: list[Record] = []
        self._redact = redact
        self._held: list[Record] = []
        self.hold = self._held.append
        self._streams: dict[tuple[str, str], tuple[int, list[NodeStreamed | ModelStreamed]]] = {}

    def __len__(self) -> int:
        return len(self.records) + len(self._held)

    def add(self, record: Record) -> None:
        """Take the next record."""
        if self._held:
            self._let_go()
        if isinstance(record, _PIECES):
            self._add_piece(record)
        else:
            if self._streams:
                self._join_pieces()
            self.records.append(record)

    def take(self) -> list[Record]:
        """Everything, in order; nothing waits any more."""
        if self._held and not self.records:
            records, self._held = self._held, []
            self.hold = self._held.append
            return records if self._redact is None else self._redact(records)
        if self._held:
            self._let_go()
        elif self._streams:
            self._join_pieces()
        records, self.records = self.records, []
        return records

    def _let_go(self) -> None:
        if self._streams:
            self._join_pieces()
        held, self._held = self._held, []
        self.hold = self._held.append
        self.records += held if self._redact is None else self._redact(held)

    def _add_piece(self, piece: NodeStreamed | ModelStreamed) -> None:
        stream = piece.node, piece.call if isinstance(piece, ModelStreamed) else ""
        known = self._streams.get(stream)
        if known is None or len(known[1]) >= _LARGEST:
            self._streams[stream] = len(self.records), [piece]
            self.records.append(piece)
        else:
            known[1].append(piece)

    def _join_pieces(self) -> None:
        for place, pieces in self._streams.values():
            if len(pieces) > 1:
                self.records[place] = _joined(pieces)
        self._streams.clear()


def _joined(pieces: list[NodeStreamed | ModelStreamed]) -> Record:
    first = pieces[0]
    if isinstance(first, NodeStreamed):
        told = [piece for piece in pieces if isinstance(piece, NodeStreamed)]
        text = "".join(piece.text for piece in told)
        return replace(first, text=text, tokens=sum(piece.tokens for piece in told))
    deltas = [d for piece in pieces if isinstance(piece, ModelStreamed) for d in piece.deltas]
    return replace(first, deltas=tuple(deltas))


_logger = logging.getLogger("weft")
T = TypeVar("T")
Durability = Literal["none", "exit", "async", "sync"]
"""When what happened is in the journal.

sync    before anything is started that builds on it
async   soon: within some 20 ms
exit    at the end of the run, when a person is asked, and around calls that must not be repeated
none    never
"""

PATIENCE_S: Final = 300.0
"""How long a run waits for a journal that cannot be written to for the moment."""
_FIRST_DELAY_S: Final = 0.1
_LONGEST_DELAY_S: Final = 10.0
_SOON_S: Final = 0.02
_LOOK_S: Final = 0.25
_CROWDED: Final = 20_000
_WEIGHTY: Final = frozenset(
    (RunStarted, RunResumed, NodeFinished, JoinDecided, HumanAsked, HumanAnswered, RunFinished)
)


_KEPT_EVENTS: Final = frozenset((NodeStarted, NodeFinished))


class Redactions(Protocol):
    """Takes secrets out of records."""

    @property
    def alone(self) -> Container[type]:
        """Kinds of records that may be redacted later, with others."""

    @property
    def holds_back(self) -> bool:
        """Whether the end of a node has to be redacted at once."""

    def redact_all(self, records: list[Record]) -> list[Record]:
        """What may be kept of such records."""


class RecorderHost(SignalTarget, Protocol):
    """The run that is recorded."""

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run started, in all its parts."""

    def start(self, starts: Sequence[Start]) -> None:
        """Start what had to wait until it was recorded why."""

    def journal_lost(self, failure: Failure) -> None:
        """Nothing can be recorded any more."""


class RunRecorder:
    """The record of one run, whose right to write (see `Journal.begin`, `claim`) its maker has.

    A `quick` journal is written to in the event loop; while somebody else is writing to it, in a
    thread that waits, as other journals always are. What it takes has no secrets in it any more.
    `letters` have been taken from the journal already. `redactions` take secrets out of what `hold`
    takes.

    What can be tried again, such as a journal that others have locked or that cannot be reached, is
    tried again for `patience_s` seconds of the run's clock: what runs goes on, what would follow
    from it waits. After that the run is `suspended`: it is told to end here, and in its record it
    has not ended. Where the journal cannot be written to for good, it is told to end, failed.
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
        self._left = False
        self._in_loop = journal.quick
        self._letters = SignalInbox(journal, run, letters)
        self._takes = durability != "none"
        self._redactions = redactions
        self._alone: Container[type] = () if redactions is None else redactions.alone
        self._waiting = PendingRecords(None if redactions is None else redactions.redact_all)
        self._weighty = False
        self._weighty_kinds = _WEIGHTY if durability == "sync" else frozenset((HumanAsked,))
        self._held: list[Start] = []
        self._writing: asyncio.Future[None] | None = None
        self._timers: dict[float, Timer] = {}
        self._thread: ThreadPoolExecutor | None = None
        self._host: RecorderHost | None = None
        self._clock: Clock | None = None
        self._meter: Meter | None = None

    # -- what happens ------------------------------------------------------------------------

    def begin(self, host: RecorderHost, clock: Clock) -> None:
        """The run begins."""
        self._host, self._clock = host, clock
        if isinstance(clock, SystemClock):
            self._meter = Meter()
        if self._durability != "none":
            self._later(_LOOK_S, self._look)

    @property
    def now_s(self) -> float:
        """Seconds of the run, those of its earlier parts included; 0 before it begins."""
        return self.seconds()

    def seconds(self) -> float:
        """`now_s` as a function, for a component that is given a clock."""
        return 0.0 if self._host is None else self._host.elapsed_s

    def metered(self, node: NodeId, work: Awaitable[Any]) -> Awaitable[Any]:
        """`work`, an attempt of `node`; in real time it is measured what it takes."""
        return work if self._meter is None else self._meter.run(node, work)

    def hear(self, event: Record) -> None:
        """Take the next event of the run."""
        if self._left:
            return
        if self._meter is not None and type(event) is RunFinished:
            self.add(self._meter.measured(event.at_s))
        self.add(event)
        if type(event) in self._weighty_kinds:
            self._weighty = True
            if isinstance(event, HumanAsked) and self._host is not None:
                self._letters.asked(event.node, self._host)

    def hold(self, record: Record) -> bool:
        """Take the next event or call as it is: it is redacted when its batch is written.

        False where it has to be redacted now, and `hear` or `add` takes what is left of it.
        """
        kind, redactions = type(record), self._redactions
        if redactions is None or (
            kind not in self._alone and (kind is not NodeFinished or redactions.holds_back)
        ):
            return False
        if self._takes and not (self._left and kind in _KEPT_EVENTS):
            self._waiting.hold(record)
            if kind in self._weighty_kinds:
                self._weighty = True
            if self._durability == "async":
                self._write_soon()
        return True

    def add(self, record: Record) -> None:
        """Take what passes the I/O boundary, to be written with what follows it."""
        if self._takes:
            self._waiting.add(record)
            if self._durability == "async":
                self._write_soon()

    async def write(self, event: Record, durable: bool = False) -> None:
        """Take what passes the I/O boundary. `durable`: it is in the journal when this returns.

        Raises: `StoreError` where it cannot be.
        """
        self.add(event)
        if durable:
            await self.settle()

    async def settle(self) -> None:
        """Wait until everything that was taken is in the journal.

        Raises: `StoreError` where it cannot be.
        """
        await self.flush()
        if self.lost is not None:
            raise self.lost

    def commit(self, starts: Sequence[Start]) -> None:
        """A turn of the run is over: let `starts` start, as soon as it is durable enough."""
        if self.lost is not None:
            return
        if not self._weighty and not self._held:
            self._release(starts)
        else:
            self._held += starts
            self._write()

    def leave(self) -> None:
        """Keep no event from now on: in the journal the run has not ended. Calls are kept."""
        self._left = True

    async def flush(self) -> None:
        """Write everything that has happened until now."""
        for _ in range(2):  # what is being written now, and what waits
            self._write()
            if self._writing is None:
                return
            await asyncio.wait([self._writing])

    async def close(self) -> StoreError | None:
        """Write the rest; what kept it from that, if anything did. Nothing is heard any more."""
        for timer in self._timers.values():
            timer.cancel()
        await self.flush()
        self._host = None
        if self._thread is not None:
            self._thread.shutdown(wait=False)
        return self.lost

    # -- how it is written -------------------------------------------------------------------

    def _write_soon(self) -> None:
        self._later(_SOON_S, self._write)
        self._weighty |= len(self._waiting) > _CROWDED

    def _release(self, starts: Sequence[Start]) -> None:
        if starts and self.lost is None and self._host is not None:
            self._host.start(starts)

    def _write(self) -> None:
        """Write what waits: one batch at a time, the next when it is done."""
        if self.lost is not None:
            return
        if self._writing is not None:
            self._weighty = True
            return
        self._weighty = False
        starts, self._held = self._held, []
        if self._waiting:
            self._writing = self._appending()
        if self._writing is None:
            self._release(starts)
        else:
            self._writing.add_done_callback(lambda done: self._written(done, starts))

    def _appending(self) -> asyncio.Future[None] | None:
        """Write the records that wait; where that goes on in the thread, its end."""
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
        if self._weighty or self._held:
            self._write()

    async def _persist(self, records: Sequence[Record]) -> None:
        """Append, in the thread, however often it takes. Raises: what the last try raised."""
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
        told = error if isinstance(error, StoreError) else StoreError(repr(error))
        if self.lost is not None:
            return
        if self.suspended:
            hint = f"`weft resume {self._run}` goes on with it once its journal can be written"
            waited = f"its journal could not be written for {self._patience_s:g} s"
            self.lost = StoreError(f"the run is suspended: {waited}: {told.message}", hint=hint)
            failure = Cancelled(self.lost.message, hint=hint).failure()
        else:
            self.lost = StoreError(f"the run cannot be recorded: {told.message}", hint=told.hint)
            failure = self.lost.failure()
        self.lost.__cause__ = error
        self._takes = False
        if self._host is not None:
            self._host.journal_lost(failure)

    # -- what happens in time ----------------------------------------------------------------

    def _look(self) -> None:
        """Let those who watch see what happened; see what they wrote."""
        if self._durability != "exit":
            self._write()
        if self._in_loop:
            try:
                self._deliver(self._letters.look(wait=False))
            except StoreError as error:
                if error.retryable:
                    self._later(_LOOK_S, self._look)
                else:
                    self._lose(error)
            return
        self._in_thread(self._letters.look).add_done_callback(self._looked)

    def _looked(self, done: asyncio.Future[Sequence[Letter]]) -> None:
        error = done.exception()
        if error is None:
            self._deliver(done.result())
        elif isinstance(error, StoreError) and error.retryable:
            self._later(_LOOK_S, self._look)
        else:
            self._lose(error)

    def _deliver(self, letters: Sequence[Letter]) -> None:
        if self._host is not None and self.lost is None:
            self._letters.deliver(letters, self._host)
            self._later(_LOOK_S, self._look)

    def _later(self, delay_s: float, act: Callable[[], None]) -> None:
        if delay_s in self._timers or self._clock is None:
            return

        def fire() -> None:
            del self._timers[delay_s]
            act()

        self._timers[delay_s] = self._clock.call_later(delay_s, fire)

    def _in_thread(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="weft-journal")
        return asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)
