"""How a run stands, by what its records say: what every journal has to tell of it.

Does not know where the records are, nor which process has the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from difflib import get_close_matches

from weft.core.errors import UnknownReference
from weft.core.events import (
    HumanAnswered,
    HumanAsked,
    NodeFinished,
    RunFinished,
    RunResumed,
    RunStatus,
)
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Letter, Record, RunSummary, Standing


class Progress:
    """The part that writes now, how the run ended if it did, and which nodes ask a person."""

    def __init__(
        self, part: int = 1, status: RunStatus | None = None, asking: Iterable[NodeId] = ()
    ) -> None:
        self.part = part
        self.status = status
        self.asking = dict.fromkeys(asking)

    def see(self, record: Record) -> bool:
        """Take a record in; true when that changed anything."""
        match record:
            case NodeFinished(node=node) | HumanAnswered(node=node):
                return self.asking.pop(node, self) is None
            case HumanAsked(node=node):
                self.asking[node] = None
            case RunResumed(part=part):
                self.part, self.status = part, None
            case RunFinished(status=status):
                self.status = status
                self.asking.clear()
            case _:
                return False
        return True

    def after(self, records: Iterable[Record]) -> Progress:
        """How the run stands once these have happened too."""
        then = Progress(self.part, self.status, self.asking)
        for record in records:
            then.see(record)
        return then

    def standing(self, held: bool) -> Standing:
        """`held`: a process has the run."""
        if self.status is not None:
            return self.status
        if not held:
            return "interrupted"
        return "asking" if self.asking else "running"


def settles(record: Record, letter: Letter) -> bool:
    """Whether what a letter was sent for has happened.

    A word on a call is for whoever resumes the run, however this part of it ends.
    """
    if letter.kind == "confirm":
        return isinstance(record, RunFinished) and record.status == "succeeded"
    match record:
        case NodeFinished(node=node) | HumanAnswered(node=node):
            return letter.node == node
    return isinstance(record, RunFinished)


def unknown_run(run: RunId, known: Iterable[str]) -> UnknownReference:
    """The error for a run that a journal does not have."""
    close = get_close_matches(run, list(known), n=3, cutoff=0.5)
    hint = f"the closest: {', '.join(close)}" if close else "`weft runs` lists them"
    return UnknownReference(f"the journal has no run {run!r}", hint=hint)


def outdated(
    runs: Sequence[RunSummary], now: datetime, keep: int | None, older_than_s: float | None
) -> list[RunId]:
    """Of `runs`, the latest first, those beyond the first `keep` and those that are too old.

    A run is as old as its end, or as its start when it has none.
    """
    return [
        summary.run
        for place, summary in enumerate(runs)
        if (keep is not None and place >= keep)
        or (older_than_s is not None and _age_s(summary, now) > older_than_s)
    ]


def _age_s(summary: RunSummary, now: datetime) -> float:
    try:
        since = datetime.fromisoformat(summary.ended_wall or summary.wall)
        return (now - since).total_seconds()
    except (ValueError, TypeError):  # no time, or one without a zone
        return 0.0
