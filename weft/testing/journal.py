"""A journal in memory. Stores texts, as real journals do, so that it shares no objects."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from weft.core.codec import decode, encode
from weft.core.errors import RunBusy, RunExists, StoreError
from weft.core.events import RunFinished
from weft.core.ids import RunId
from weft.core.ports.clock import Clock, SystemClock
from weft.core.ports.conversations import StoredThread, ThreadSummary
from weft.core.ports.journal import (
    Claim,
    Letter,
    Losses,
    LostRun,
    NumberedRecord,
    PruneResult,
    Record,
    RunHeader,
    RunProgress,
    RunSummary,
    Salvage,
    outdated,
    settles,
    unknown_run,
)
from weft.core.ports.rates import RateChange, T


@dataclass(slots=True)
class _Signal:
    letter: str
    taken: bool = False


@dataclass(slots=True)
class _StoredRun:
    header: str
    progress: RunProgress = field(default_factory=RunProgress)
    ended_wall: str = ""
    lines: list[tuple[int, str]] = field(default_factory=list)
    signals: list[_Signal] = field(default_factory=list)
    holder: _MemoryClaim | None = None

    @property
    def size(self) -> int:
        return len(self.header) + sum(len(text) for _, text in self.lines)


@dataclass(slots=True)
class _MemoryThread:
    messages: list[str] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    summary: tuple[str, int] = ("", 0)


class _MemoryClaim:
    def __init__(self, stored: _StoredRun) -> None:
        self._stored = stored
        stored.holder = self

    def release(self) -> None:
        if self._stored.holder is self:
            self._stored.holder = None


class MemoryJournal:
    """Implements `Journal`. `clock` gives the wall time of ends and ages."""

    quick = True

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._runs: dict[RunId, _StoredRun] = {}
        self._rates: dict[str, str] = {}
        self._threads: dict[str, _MemoryThread] = {}
        self._lock = threading.RLock()
        self._version = 0

    def begin(self, header: RunHeader) -> Claim:
        with self._lock:
            if header.run in self._runs:
                raise RunExists(f"the journal has a run {header.run!r}")
            stored = self._runs[header.run] = _StoredRun(encode(header))
            self._version += 1
            return _MemoryClaim(stored)

    def taken(self, runs: Sequence[RunId]) -> frozenset[RunId]:
        with self._lock:
            return frozenset(run for run in runs if run in self._runs)

    def claim(self, run: RunId) -> Claim:
        with self._lock:
            stored = self._stored(run)
            if stored.holder is not None:
                raise RunBusy(f"this process has the run {run!r}")
            for signal in stored.signals:
                signal.taken = False
            return _MemoryClaim(stored)

    def withdraw(self, run: RunId) -> bool:
        with self._lock:
            stored = self._runs.get(run)
            if stored is None or stored.holder is None:
                raise StoreError(f"nobody has claimed the run {run!r}")
            if stored.lines:
                return False
            del self._runs[run]
            self._version += 1
            return True

    def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
        del wait  # appending never waits
        texts = [encode(record) for record in records]
        with self._lock:
            stored = self._stored(run)
            if stored.holder is None:
                raise StoreError(f"nobody has claimed the run {run!r}")
            for record, text in zip(records, texts, strict=True):
                stored.progress.see(record)
                stored.lines.append((stored.progress.part, text))
                open_ = [s for s in stored.signals if not settles(record, decode(s.letter))]
                stored.signals = open_
                if isinstance(record, RunFinished):
                    stored.ended_wall = self._clock.wall().isoformat()
            self._version += 1

    def header(self, run: RunId) -> RunHeader:
        with self._lock:
            found: RunHeader = decode(self._stored(run).header)
            return found

    def summary(self, run: RunId) -> RunSummary:
        with self._lock:
            return _summary(self._stored(run))

    def runs(self, *, flow: str | None = None, limit: int | None = None) -> Sequence[RunSummary]:
        with self._lock:
            latest = [_summary(stored) for stored in reversed(self._runs.values())]
        return [summary for summary in latest if flow in (None, summary.flow)][:limit]

    def records(
        self, run: RunId, after: int = 0, limit: int | None = None
    ) -> Iterator[NumberedRecord]:
        with self._lock:
            lines = self._stored(run).lines[after : None if limit is None else after + limit]
        return (
            NumberedRecord(seq, part, decode(text))
            for seq, (part, text) in enumerate(lines, after + 1)
        )

    def losses(self, run: RunId) -> Losses:
        with self._lock:
            self._stored(run)
        return Losses()

    def lost_runs(self) -> Sequence[LostRun]:
        return ()

    def salvage(self, run: RunId) -> Salvage:
        return Salvage(self.header(run), tuple(self.records(run)))

    def version(self) -> int:
        return self._version

    def send(self, run: RunId, letter: Letter) -> None:
        text = encode(letter)
        with self._lock:
            self._stored(run).signals.append(_Signal(text))
            self._version += 1

    def letters(self, run: RunId, *, wait: bool = True) -> Sequence[Letter]:
        del wait
        with self._lock:
            waiting = [signal for signal in self._stored(run).signals if not signal.taken]
            for signal in waiting:
                signal.taken = True
            return [decode(signal.letter) for signal in waiting]

    def pending_letters(self, run: RunId) -> Sequence[Letter]:
        with self._lock:
            return [decode(signal.letter) for signal in self._stored(run).signals]

    def change_rate(self, key: str, change: RateChange[T], now_s: float | None = None) -> T:
        """See `RateStore`."""
        with self._lock:
            now_s = self._clock.wall().timestamp() if now_s is None else now_s
            self._rates[key], result = change(self._rates.get(key, ""), now_s)
            return result

    def threads(self) -> Sequence[ThreadSummary]:
        """See `ConversationStore`."""
        with self._lock:
            return [
                ThreadSummary(name, len(thread.messages), thread.summary[1])
                for name, thread in sorted(self._threads.items())
            ]

    def read_thread(self, thread: str) -> StoredThread:
        """See `ConversationStore`."""
        with self._lock:
            found = self._threads.get(thread, _MemoryThread())
            return StoredThread(tuple(found.messages), *found.summary)

    def append_to_thread(
        self, thread: str, key: str, messages: Sequence[str], summary: tuple[str, int] | None = None
    ) -> bool:
        """See `ConversationStore`."""
        with self._lock:
            found = self._threads.setdefault(thread, _MemoryThread())
            if key in found.keys:
                return False
            found.keys.add(key)
            found.messages += messages
            if summary is not None and summary[1] > found.summary[1]:
                found.summary = summary
            return True

    def delete_thread(self, thread: str) -> bool:
        """See `ConversationStore`."""
        with self._lock:
            return self._threads.pop(thread, None) is not None

    def prune(
        self,
        *,
        keep: int | None = None,
        older_than_s: float | None = None,
        max_bytes: int | None = None,
        runs: Sequence[RunId] | None = None,
    ) -> PruneResult:
        with self._lock:
            before = self._size()
            free = [run for run, stored in self._runs.items() if stored.holder is None]
            gone = self._named(runs or ())
            gone += outdated(self.runs(), self._clock.wall(), keep, older_than_s)
            removed = [run for run in dict.fromkeys(gone) if run in free]
            for run in removed:
                del self._runs[run]
            for run in [run for run in free if run in self._runs]:
                if max_bytes is None or self._size() <= max_bytes:
                    break
                del self._runs[run]
                removed.append(run)
            self._version += 1
            return PruneResult(tuple(removed), before - self._size(), self._size())

    def check(self) -> Sequence[str]:
        return ()

    def close(self) -> None:
        """Do nothing: the runs exist as long as the object."""

    def _stored(self, run: RunId) -> _StoredRun:
        stored = self._runs.get(run)
        if stored is None:
            raise unknown_run(run, self._runs)
        return stored

    def _named(self, runs: Sequence[RunId]) -> list[RunId]:
        for run in runs:
            if self._stored(run).holder is not None:
                raise RunBusy(f"this process has the run {run!r}")
        return list(runs)

    def _size(self) -> int:
        return sum(stored.size for stored in self._runs.values())


def _summary(stored: _StoredRun) -> RunSummary:
    header: RunHeader = decode(stored.header)
    return RunSummary(
        run=header.run,
        flow=header.flow,
        standing=stored.progress.standing(stored.holder is not None),
        wall=header.wall,
        ended_wall=stored.ended_wall if stored.progress.status else "",
        parts=stored.progress.part,
        records=len(stored.lines),
        asking=tuple(stored.progress.asking),
    )
