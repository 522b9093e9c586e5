"""Versions of workflows whose runs wait while no worker has any of them."""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.core.ports.journal import Journal
from weft.core.ports.queue import QueueEntry, queue_of

_RECENT: Final = 20
"""Runs of a workflow among which the last one that a worker took is looked for."""


class FlowVersion(NamedTuple):
    """A workflow, and the version of it that a worker must have."""

    flow: str
    version: str


class WaitingRuns(NamedTuple):
    """`runs`: how many are ready; `taken`: another version that a worker took last, or empty."""

    runs: int
    taken: str = ""

    @property
    def note(self) -> str:
        """What a person should know, in one sentence."""
        other = f"; workers last took version {self.taken}" if self.taken else ""
        return f"waits for a worker with this version{other}"


def version_of_entry(entry: QueueEntry) -> FlowVersion:
    """The version that a queued run needs."""
    return FlowVersion(entry.flow, entry.terms.version)


def waiting_versions(journal: Journal, now_s: float) -> dict[FlowVersion, WaitingRuns]:
    """The versions of which runs are ready, and no live worker takes any. Raises: `StoreError`.

    What a process without a heartbeat has taken, such as one of an older weft, counts too.
    """
    queue = queue_of(journal)
    entries = queue.entries(("queued", "running"))
    held = {version_of_entry(each) for each in entries if each.holder}
    served = {
        (FlowVersion(*version), name)
        for worker in queue.workers()
        if not worker.draining
        for version in worker.versions
        for name in worker.queues
    }
    ready = [each for each in entries if each.state == "queued" and each.terms.due_s <= now_s]
    found = [(version_of_entry(each), each.terms.queue) for each in ready]
    keys = [key for key, name in found if key not in held and (key, name) not in served]
    return {key: WaitingRuns(keys.count(key), _taken(journal, key)) for key in set(keys)}


def _taken(journal: Journal, wanted: FlowVersion) -> str:
    """The version that a worker took last, if it is another one."""
    queue = queue_of(journal)
    entries = (queue.entry(run.run) for run in journal.runs(flow=wanted.flow, limit=_RECENT))
    last = next((each for each in entries if each is not None and each.attempts), None)
    return "" if last is None or last.terms.version == wanted.version else last.terms.version
