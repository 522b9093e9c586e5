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
    """The versions of which runs are ready, and none is at a worker. Raises: `StoreError`.

    A journal does not know its workers, only what they have taken.
    """
    entries = queue_of(journal).entries(("queued", "running"))
    held = {version_of_entry(each) for each in entries if each.holder}
    ready = [each for each in entries if each.state == "queued" and each.terms.due_s <= now_s]
    keys = [key for each in ready if (key := version_of_entry(each)) not in held]
    return {key: WaitingRuns(keys.count(key), _taken(journal, key)) for key in set(keys)}


def _taken(journal: Journal, wanted: FlowVersion) -> str:
    """The version that a worker took last, if it is another one."""
    queue = queue_of(journal)
    entries = (queue.entry(run.run) for run in journal.runs(flow=wanted.flow, limit=_RECENT))
    last = next((each for each in entries if each is not None and each.attempts), None)
    return "" if last is None or last.terms.version == wanted.version else last.terms.version
