"""What every stored journal refuses, in one wording. Knows no database."""

from __future__ import annotations

from weft.core.errors import RunBusy, RunExists, StoreError
from weft.core.ids import RunId


def busy(run: RunId, who: str) -> RunBusy:
    """Somebody has the run."""
    return RunBusy(f"{who} has the run {run!r}", hint="it can be watched with `weft runs`")


def exists(where: str, run: RunId) -> RunExists:
    """A new run has the id of an old one."""
    hint = f"`weft resume {run}` goes on with that one; give a new one another id"
    return RunExists(f"{where} has a run {run!r}", hint=hint)


def unclaimed(run: RunId) -> StoreError:
    """Records for a run that this process may not write to."""
    return StoreError(f"this process has not claimed the run {run!r}, or no longer")


def closed(where: str) -> StoreError:
    """The journal was closed before."""
    return StoreError(f"{where} is closed")


def newer(where: str, version: int, known: int) -> StoreError:
    """Tables of a weft that comes after this one."""
    told = f"{where} has format {version}, this weft knows {known}"
    return StoreError(told, hint="use the weft that wrote it, or a newer one")


def full(where: str) -> StoreError:
    """There is no room for more."""
    hint = "free some there: `weft runs prune` removes old runs, once it has a few MB for that"
    return StoreError(f"no space is left for {where}", hint=hint, retryable=True)


def too_full_to_prune(where: str, needed_bytes: int) -> StoreError:
    """There is no room for removing runs either, since that is written down first."""
    told = f"no space is left for {where}, not even to remove runs from it; nothing is lost"
    much = f"{-(-needed_bytes // 1_000_000)} MB"
    hint = (
        f"free {much} there and try again; or, while no weft runs, move it and the files beside "
        "it to another disk, prune it there and move it back"
    )
    return StoreError(told, hint=hint, retryable=True)
