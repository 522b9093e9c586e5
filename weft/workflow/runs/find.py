"""Which run a person means. Knows nothing of what is in it."""

from __future__ import annotations

from contextlib import suppress

from weft.core.errors import UnknownReference
from weft.core.ids import RunId
from weft.core.ports.journal import Journal, RunSummary
from weft.core.progress import unknown_run
from weft.engine.journal.refusals import lost

LAST = "last"
_MOST_TOLD = 5


def find_run(journal: Journal, text: str) -> RunId:
    """The run of this id, the only one whose id begins like this, or the `last` one.

    Raises: `UnknownReference` when there is none, or more than one; `RunLost`.
    """
    if text == LAST:
        return _last(journal)
    with suppress(UnknownReference):
        return journal.summary(RunId(text)).run
    runs = [summary.run for summary in journal.runs()]
    found = [run for run in runs if run.startswith(text)] if text else []
    for gone in () if found else journal.lost_runs():
        if text and gone.run.startswith(text):
            raise lost(gone)
    if not found:
        raise unknown_run(RunId(text), runs)
    if len(found) > 1:
        shown = ", ".join(found[:_MOST_TOLD]) + (", ..." if len(found) > _MOST_TOLD else "")
        raise UnknownReference(f"{len(found)} runs begin with {text!r}", hint=f"there is: {shown}")
    return found[0]


def _last(journal: Journal) -> RunId:
    latest = journal.runs(limit=1)
    if not latest and (gone := journal.lost_runs()):
        raise lost(gone[-1])
    if not latest:
        raise UnknownReference("the journal has no runs", hint="`weft run FILE` records one")
    return latest[0].run


def shown_standing(summary: RunSummary) -> str:
    """How a run stands, in one word: `asking` too where nobody has it who could go on."""
    waits = summary.standing in ("running", "interrupted") and summary.asking
    return "asking" if waits else summary.standing
