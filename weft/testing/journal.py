"""A journal in memory. It keeps texts, as real ones do, so that nobody shares an object with it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from weft.core.codec import decode, encode
from weft.core.errors import RunBusy, RunExists, StoreError
from weft.core.events import RunFinished
from weft.core.ids import RunId
from weft.core.ports.clock import Clock, SystemClock
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


@dataclass(slots=True)
class _Post:
    letter: str
    taken: bool = False


@dataclass(slots=True)
class _Kept:
    header: str
    progress: RunProgress = field(default_factory=RunProgress)
    ended_wall: str = ""
    lines: list[tuple[int, str]] = field(default_factory=list)
    post: list[_Post] = field(default_factory=list)
    holder: _MemoryClaim | None = None

    @property
    def size(self) -> int:
        return len(self.header) + sum(len(text) for _, text in self.lines)


class _MemoryClaim:
    def __init__(self, kept: _Kept) -> None:
        self._kept = kept
        kept.holder = self

    def release(self) -> None:
        if self._kept.holder is self:
            self._kept.holder = None


class MemoryJournal:
    """Implements `Journal`. `clock` gives the wall time of ends and ages."""

    quick = True

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._runs: dict[RunId, _Kept] = {}
        self._lock = threading.RLock()
        self._version = 0

    def begin(self, header: RunHeader) -> Claim:
        with self._lock:
            if header.run in self._runs:
                raise RunExists(f"the journal has a run {header.run!r}")
            kept = self._runs[header.run] = _Kept(encode(header))
            self._version += 1
            return _MemoryClaim(kept)

    def taken(self, runs: Sequence[RunId]) -> frozenset[RunId]:
        with self._lock:
            return frozenset(run for run in runs if run in self._runs)

    def claim(self, run: RunId) -> Claim:
        with self._lock:
            kept = self._kept(run)
            if kept.holder is not None:
                raise RunBusy(f"this process has the run {run!r}")
            for post in kept.post:
                post.taken = False
            return _MemoryClaim(kept)

    def append(self, run: RunId, records: Sequence[Record], *, wait: bool = True) -> None:
        del wait  # there is nobody to wait for
        texts = [encode(record) for record in records]
        with self._lock:
            kept = self._kept(run)
            if kept.holder is None:
                raise StoreError(f"nobody has claimed the run {run!r}")
            for record, text in zip(records, texts, strict=True):
                kept.progress.see(record)
                kept.lines.append((kept.progress.part, text))
                kept.post = [p for p in kept.post if not settles(record, decode(p.letter))]
                if isinstance(record, RunFinished):
                    kept.ended_wall = self._clock.wall().isoformat()
            self._version += 1

    def header(self, run: RunId) -> RunHeader:
        with self._lock:
            found: RunHeader = decode(self._kept(run).header)
            return found

    def summary(self, run: RunId) -> RunSummary:
        with self._lock:
            return _summary(self._kept(run))

    def runs(self, *, flow: str | None = None, limit: int | None = None) -> Sequence[RunSummary]:
        with self._lock:
            latest = [_summary(kept) for kept in reversed(self._runs.values())]
        return [summary for summary in latest if flow in (None, summary.flow)][:limit]

    def records(
        self, run: RunId, after: int = 0, limit: int | None = None
    ) -> Iterator[NumberedRecord]:
        with self._lock:
            lines = self._kept(run).lines[after : None if limit is None else after + limit]
        return (
            NumberedRecord(seq, part, decode(text))
            for seq, (part, text) in enumerate(lines, after + 1)
        )

    def losses(self, run: RunId) -> Losses:
        with self._lock:
            self._kept(run)
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
            self._kept(run).post.append(_Post(text))
            self._version += 1

    def letters(self, run: RunId, *, wait: bool = True) -> Sequence[Letter]:
        del wait
        with self._lock:
            waiting = [post for post in self._kept(run).post if not post.taken]
            for post in waiting:
                post.taken = True
            return [decode(post.letter) for post in waiting]

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
            free = [run for run, kept in self._runs.items() if kept.holder is None]
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
        """There is nothing to let go of: the runs are there as long as the object is."""

    def _kept(self, run: RunId) -> _Kept:
        kept = self._runs.get(run)
        if kept is None:
            raise unknown_run(run, self._runs)
        return kept

    def _named(self, runs: Sequence[RunId]) -> list[RunId]:
        for run in runs:
            if self._kept(run).holder is not None:
                raise RunBusy(f"this process has the run {run!r}")
        return list(runs)

    def _size(self) -> int:
        return sum(kept.size for kept in self._runs.values())


def _summary(kept: _Kept) -> RunSummary:
    header: RunHeader = decode(kept.header)
    return RunSummary(
        run=header.run,
        flow=header.flow,
        standing=kept.progress.standing(kept.holder is not None),
        wall=header.wall,
        ended_wall=kept.ended_wall if kept.progress.status else "",
        parts=kept.progress.part,
        records=len(kept.lines),
        asking=tuple(kept.progress.asking),
    )
