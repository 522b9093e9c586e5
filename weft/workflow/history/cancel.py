"""Cancellation of a run from another process."""

from __future__ import annotations

from weft.core.errors import RunBusy
from weft.core.events import RunFinished, RunStarted
from weft.core.ids import RunId
from weft.core.ports.journal import Journal, Letter, Record
from weft.workflow.history.run_history import read_history


def cancel_run(journal: Journal, run: RunId, reason: str) -> bool:
    """End a run. True when its record has ended here, or had; false when its process ends it soon.

    Blocks briefly. Raises: `UnknownReference`, `StoreError`.
    """
    try:
        claim = journal.claim(run)
    except RunBusy:
        journal.send(run, Letter("cancel", None, reason))
        return False
    try:
        history = read_history(journal, run)
        if history.ended is None:
            at_s = max((numbered.record.at_s for numbered in history.records), default=0.0)
            records: list[Record] = []
            if not history.records:
                header = history.header
                records.append(RunStarted(run, header.flow, header.wall, (), {}))
            end = RunFinished("cancelled", history.trace.usage, (reason,), at_s)
            journal.append(run, [*records, end])
        return True
    finally:
        claim.release()
