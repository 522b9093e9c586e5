"""The record of one run in memory; and the run that a text such as `last` names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from weft.core.calls import CallEvent
from weft.core.errors import StoreError, UnknownReference
from weft.core.events import (
    Event,
    HumanAnswered,
    HumanAsked,
    NodeFinished,
    Outcome,
    RunFinished,
    RunResumed,
    RunStarted,
)
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import (
    Journal,
    Losses,
    NumberedRecord,
    RunHeader,
    RunSummary,
    unknown_run,
)
from weft.core.ports.queue import QueueingJournal
from weft.durability.journal.refusals import lost
from weft.engine.analysis.trace import Trace


@dataclass(frozen=True)
class RunHistory:
    """The header and the records of a run, in order; `losses`: what the records lack.

    The header's settings have the budget of the last part.
    """

    header: RunHeader
    records: Sequence[NumberedRecord]
    losses: Losses = field(default_factory=Losses)

    @property
    def run(self) -> RunId:
        """The run's id."""
        return self.header.run

    @property
    def events(self) -> Iterator[Event]:
        """The events of the run, without calls."""
        return (one.record for one in self.records if not isinstance(one.record, CallEvent))

    @property
    def calls(self) -> Iterator[CallEvent]:
        """The calls of models and tools, with their ends."""
        return (one.record for one in self.records if isinstance(one.record, CallEvent))

    @cached_property
    def outcomes(self) -> dict[NodeId, Outcome]:
        """How each finished node ended, in the order of the ends."""
        return {
            event.node: event.outcome for event in self.events if isinstance(event, NodeFinished)
        }

    @cached_property
    def questions(self) -> dict[NodeId, HumanAsked]:
        """The open questions of nodes."""
        questions: dict[NodeId, HumanAsked] = {}
        for event in self.events:
            match event:
                case HumanAsked():
                    questions[event.node] = event
                case HumanAnswered() | NodeFinished():
                    questions.pop(event.node, None)
        return questions

    @cached_property
    def ended(self) -> RunFinished | None:
        """The end of the run; None before it."""
        end: RunFinished | None = None
        for event in self.events:
            if isinstance(event, RunFinished):
                end = event
            elif isinstance(event, RunResumed):
                end = None
        return end

    @cached_property
    def trace(self) -> Trace:
        """The run's trace."""
        trace = Trace()
        for event in self.events:
            trace(event)
        return trace


LOST: Final = "lost"
"""The header setting with sentences about records that were missing when the run was exported."""


def read_history(journal: Journal, run: RunId, losses: Losses | None = None) -> RunHistory:
    """Read a run; `losses`: as `Journal.losses` gave them, if known.

    Raises: `UnknownReference`, `StoreError`.
    """
    losses = losses or journal.losses(run)
    return _whole(journal.header(run), list(journal.records(run)), losses)


def salvage_history(journal: Journal, run: RunId) -> RunHistory:
    """The readable part of a run; `losses` describe the rest. Raises: `UnknownReference`."""
    salvage, losses = journal.salvage(run), journal.losses(run)
    if salvage.problems:
        notes = (*salvage.problems, *losses.notes)
        losses = replace(losses, notes=notes, unsure=True)
    return _whole(salvage.header, salvage.records, losses)


def _whole(header: RunHeader, records: Sequence[NumberedRecord], losses: Losses) -> RunHistory:
    """The history with the lost calls of `losses` at its end, and the budget of the last part."""
    lost = header.settings.get(LOST)
    if isinstance(lost, list):
        notes = (*(str(note) for note in lost), *losses.notes)
        losses = replace(losses, notes=notes, unsure=True)
    seq, part = records[-1][:2] if records else (0, 1)
    added = [NumberedRecord(seq + place, part, call) for place, call in enumerate(losses.calls, 1)]
    parts = (one.record for one in reversed(records) if isinstance(one.record, RunResumed))
    last = next(parts, None)
    if last is not None and last.budget is not None:
        header = replace(header, settings={**header.settings, "budget": last.budget})
    return RunHistory(header, [*records, *added], losses)


LAST = "last"
_MOST_SHOWN = 5


def find_run(journal: Journal, text: str) -> RunId:
    """The run of this id, the only one whose id begins with it, or the `last` one.

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
        shown = ", ".join(found[:_MOST_SHOWN]) + (", ..." if len(found) > _MOST_SHOWN else "")
        raise UnknownReference(f"{len(found)} runs begin with {text!r}", hint=f"there is: {shown}")
    return found[0]


def _last(journal: Journal) -> RunId:
    latest = journal.runs(limit=1)
    if not latest and (gone := journal.lost_runs()):
        raise lost(gone[-1])
    if not latest:
        raise UnknownReference("the journal has no runs", hint="`weft run FILE` records one")
    return latest[0].run


def standing_word(summary: RunSummary) -> str:
    """A run's standing in one word; `asking` also for an unclaimed run that waits for an answer."""
    waits = summary.standing in ("running", "interrupted") and summary.asking
    return "asking" if waits else summary.standing


def with_beginning(journal: Journal, summary: RunSummary) -> RunSummary:
    """The summary of a queued run with the time at which a worker began it in `wall`.

    Empty where none has; other runs as they are.
    """
    if not isinstance(journal, QueueingJournal):
        return summary
    try:
        if journal.queue.entry(summary.run) is None:
            return summary
        records = (each.record for each in journal.records(summary.run, limit=1))
        wall = next((each.wall for each in records if isinstance(each, RunStarted)), "")
    except StoreError:  # damaged, or a file of an older format that this user may only read
        return summary
    return replace(summary, wall=wall)


def queue_states(journal: Journal) -> dict[RunId, str]:
    """The states of runs that wait in the journal's queue, `queued` or `stopped`."""
    if not isinstance(journal, QueueingJournal):
        return {}
    try:
        waiting = journal.queue.entries(("queued", "stopped"))
    except StoreError:  # such as a file of an older format that this user may only read
        return {}
    return {entry.run: entry.state for entry in waiting}
