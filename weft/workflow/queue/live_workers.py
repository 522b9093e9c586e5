"""The workers that serve a journal's queue now, and what each executes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from weft.core.ids import RunId
from weft.core.ports.journal import Journal
from weft.core.ports.queue import WorkerEntry, queue_of


class LiveWorker(NamedTuple):
    """`running`: the runs that its process has claimed."""

    entry: WorkerEntry
    running: tuple[RunId, ...]

    def data(self) -> dict[str, Any]:
        """It as JSON data."""
        entry = self.entry
        return {
            "worker": entry.id,
            "host": entry.host,
            "pid": entry.pid,
            "versions": [f"{flow}@{version}" for flow, version in entry.versions],
            "queues": list(entry.queues),
            "concurrency": entry.concurrency,
            "running": list(self.running),
            "draining": entry.draining,
            "since": _time(entry.since_s),
            "heartbeat": _time(entry.beat_s),
        }


def live_workers(journal: Journal) -> list[LiveWorker]:
    """The workers whose heartbeat is no older than their lease, the oldest first.

    Raises: `StoreError`.
    """
    queue = queue_of(journal)
    workers = sorted(queue.workers(), key=lambda worker: (worker.since_s, worker.id))
    held = queue.entries(("running",)) if workers else ()
    return [
        LiveWorker(one, tuple(each.run for each in held if each.holder == one.holder))
        for one in workers
    ]


def _time(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="seconds")
