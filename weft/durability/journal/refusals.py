"""The errors of every stored journal, in one wording; and the claim on a run."""

from __future__ import annotations

from collections.abc import Callable

from weft.core.calls import ToolCalled
from weft.core.errors import RunBusy, RunExists, StoreError
from weft.core.ids import RunId
from weft.core.ports.journal import LostRun


class RunLost(StoreError):
    """The journal once had the run, and has lost it."""


def busy(run: RunId, who: str, free_s: int | None = None) -> RunBusy:
    """Another process has the run. `free_s`: when it is free if that process has died."""
    hint = "it can be watched with `weft runs`"
    if free_s is not None:
        hint += f"; if that process has died, the run is free in {max(1, free_s)} s"
    return RunBusy(f"{who} has the run {run!r}", hint=hint)


def taken_over(run: RunId, who: str | None) -> StoreError:
    """Another process has claimed or removed the run meanwhile: this one must not write."""
    if who is None:
        return StoreError(f"the run {run!r} was removed while this process had it")
    hint = "this process was silent for longer than its lease; see `weft runs`"
    return StoreError(f"{who} has claimed the run {run!r} meanwhile", hint=hint)


def exists(where: str, run: RunId) -> RunExists:
    """A new run has the id of an old one."""
    hint = f"`weft resume {run}` goes on with that one; give a new one another id"
    return RunExists(f"{where} has a run {run!r}", hint=hint)


def lost(found: LostRun) -> RunLost:
    """The journal has lost the run."""
    calls = sum(isinstance(record, ToolCalled) for record in found.calls)
    text = f"the journal has lost the run {found.run!r}: {found.where} says that it had "
    text += f"{found.seq:,} records, {calls:,} of them intents of once calls"
    hint = (
        f"`weft runs show {found.run}` lists these calls: find out what they did. To begin a run "
        "of this name all the same, move that file away, out of its folder"
    )
    return RunLost(text, hint=hint)


def unclaimed(run: RunId) -> StoreError:
    """Records for a run that this process may not write to."""
    return StoreError(f"this process has not claimed the run {run!r}, or no longer")


def closed(where: str) -> StoreError:
    """The journal is closed."""
    return StoreError(f"{where} is closed")


def newer(where: str, version: int, supported: int) -> StoreError:
    """The tables are those of a newer weft."""
    text = f"{where} has format {version}, this weft knows {supported}"
    return StoreError(text, hint="use the weft that wrote it, or a newer one")


def full(where: str) -> StoreError:
    """The disk is full."""
    hint = "free some there: `weft runs prune` removes old runs, once it has a few MB for that"
    return StoreError(f"no space is left for {where}", hint=hint, retryable=True)


def at_limit(where: str) -> StoreError:
    """A file has reached its size limit."""
    text = f"{where} has reached the size that the system lets a file have here (`ulimit -f`)"
    return StoreError(text, hint="raise that limit and resume the run", retryable=True)


def too_full_to_prune(where: str, needed_bytes: int) -> StoreError:
    """There is no space for removing runs either, which is first written to the log."""
    text = f"no space is left for {where}, not even to remove runs from it; nothing is lost"
    megabytes = f"{-(-needed_bytes // 1_000_000)} MB"
    hint = (
        f"free {megabytes} there and try again; or, while no weft runs, move it and the files "
        "beside it to another disk, prune it there and move it back"
    )
    return StoreError(text, hint=hint, retryable=True)


class HeldClaim:
    """Implements `Claim`. `let_go` ends it, and is harmless when repeated."""

    def __init__(self, let_go: Callable[[], None]) -> None:
        self._let_go = let_go

    def release(self) -> None:
        self._let_go()
