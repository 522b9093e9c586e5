"""Submission of runs to a journal's queue, and the handle of a submitted run."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Generic, Literal, cast

from weft.core.errors import Cancelled, InputError, RunExists
from weft.core.events import RunStatus
from weft.core.ids import RunId, run_ids
from weft.core.keywords import check_keywords
from weft.core.ports.clock import Clock, SystemClock
from weft.core.ports.journal import Journal, RunHeader
from weft.core.ports.queue import QueueEntry, QueueState, QueueTerms, RunQueue, queue_of
from weft.core.questions import PendingQuestion
from weft.durability.queue.rows import not_queued
from weft.workflow.document.inputs import check_inputs, plain_inputs
from weft.workflow.document.python_types import PythonTypes
from weft.workflow.document.secrets import redactor_of
from weft.workflow.document.spec.fields import parse_duration
from weft.workflow.document.unit import Unit
from weft.workflow.flow.run_arguments import QUEUE_SETTINGS, SUBMIT_SETTINGS
from weft.workflow.history.answers import PendingQuestions
from weft.workflow.history.cancel import cancel_run
from weft.workflow.history.recorded_workflow import result_of
from weft.workflow.history.run_history import read_history
from weft.workflow.history.signals import send_signal
from weft.workflow.queue.versions import recorded_texts, version_of
from weft.workflow.runtime.journals import JournalPlace, journal_or_own
from weft.workflow.runtime.options import RunSettings
from weft.workflow.runtime.recording import run_header
from weft.workflow.runtime.results.result import FlowResult, Out, typed_result

_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_FEW: Final = 16
SubmittedStatus = Literal[QueueState, RunStatus]
"""Where a submitted run is; once it has ended, how."""


class SubmittedRun(Generic[Out]):
    """A run in a journal's queue, from any process.

    `id` names it everywhere: `weft runs show`, `weft answer`, `weft replay`. `journal`: an open
    one, or its place, which is opened for each call. Methods raise `StoreError`.
    """

    def __init__(
        self, run: RunId, journal: JournalPlace | None, types: PythonTypes | None = None
    ) -> None:
        self.id = run
        self._journal = journal
        self._types = types

    def entry(self) -> QueueEntry:
        """Its place in the queue. Raises: `UnknownReference`."""
        with _opened(self._journal) as journal:
            return _entry(queue_of(journal), self.id)

    @property
    def status(self) -> SubmittedStatus:
        """queued, running, asking or stopped; or how it ended. Raises: `UnknownReference`."""
        entry = self.entry()
        return entry.status if entry.state == "ended" and entry.status else entry.state

    def questions(self) -> tuple[PendingQuestion, ...]:
        """What it asks, the oldest first."""
        with _opened(self._journal) as journal:
            return PendingQuestions(journal).questions(self.id)

    def answer(self, node: str, value: Any) -> None:
        """Answer a question; a worker continues the run. Raises: `InputError` for a misfit."""
        with _opened(self._journal) as journal:
            answers = PendingQuestions(journal)
            answers.give(answers.question(self.id, node), value)

    def signal(self, node: str, value: Any) -> None:
        """Send a value to an `ask` node, also before it asks.

        Raises: `InputError` for a misfit, and once the node or the run has ended;
        `UnknownReference` for another node.
        """
        with _opened(self._journal) as journal:
            send_signal(journal, self.id, node, value)

    def cancel(self, reason: str = "cancelled") -> None:
        """End it: at once where it waits, soon where a worker executes it."""
        with _opened(self._journal) as journal:
            cancel_run(journal, self.id, reason)

    def retry(self) -> None:
        """Let a worker try again what failed, or a run that was stopped."""
        with _opened(self._journal) as journal:
            queue_of(journal).requeue(self.id)

    async def result(self, *, clock: Clock | None = None) -> FlowResult[Out]:
        """Wait for its end. Values are those of the record, without secrets.

        A run that asks is waited for. Raises: `Cancelled` for a run that was stopped, with the
        reason.
        """
        with _opened(self._journal) as journal:
            await _ended(queue_of(journal), self.id, clock or SystemClock())
            history = await asyncio.to_thread(read_history, journal, self.id)
        result = result_of(history)
        if self._types is None:
            return cast("FlowResult[Out]", result)
        return cast("FlowResult[Out]", typed_result(result, self._types))


def submit_flow(unit: Unit, inputs: object, settings: Mapping[str, Any]) -> SubmittedRun[Any]:
    """Submit a run; `settings` are `SubmitSettings`. See `Flow.submit`."""
    check_keywords("flow.submit", settings, SUBMIT_SETTINGS, "inputs go into a mapping")
    given = {key: value for key, value in settings.items() if value is not None}
    own = {key: given.pop(key) for key in QUEUE_SETTINGS & given.keys()}
    return submit(unit, {} if inputs is None else inputs, RunSettings(**given), **own)


def submit(
    unit: Unit,
    inputs: object,
    settings: RunSettings,
    *,
    key: str | None = None,
    queue: str = "default",
    priority: int = 0,
    at: str | datetime | timedelta | float | None = None,
    concurrency_limit: int | None = None,
    concurrency_key: str = "",
) -> SubmittedRun[Any]:
    """Submit a run to the queue of the journal in `settings`; see `Flow.submit`."""
    wall = (settings.clock or SystemClock()).wall()
    header, terms = prepare(
        unit,
        inputs,
        settings,
        queue=queue,
        priority=priority,
        concurrency_limit=concurrency_limit,
        concurrency_key=concurrency_key,
    )
    terms = replace(terms, due_s=due_time(at, wall))
    with _opened(settings.journal) as journal:
        run = _submitted(journal, header, terms, checked_key(key))
    return SubmittedRun(run, settings.journal, unit.types)


def prepare(
    unit: Unit,
    inputs: object,
    settings: RunSettings,
    *,
    queue: str = "default",
    priority: int = 0,
    concurrency_limit: int | None = None,
    concurrency_key: str = "",
    notes: Mapping[str, Any] | None = None,
) -> tuple[RunHeader, QueueTerms]:
    """The header, without an id, and the terms of a run. `notes`: further settings in the header.

    Raises: `InputError`, `BuildError`.
    """
    for name, text in (("queue", queue), ("concurrency_key", concurrency_key or "k")):
        if not _KEY.fullmatch(text):
            raise InputError(f"`{name}` cannot be {text!r:.80}", hint=_KEY_HINT)
    if concurrency_limit is not None and concurrency_limit < 1:
        raise InputError(f"`concurrency_limit` is at least 1, not {concurrency_limit}")
    if concurrency_key and concurrency_limit is None:
        raise InputError(
            "a `concurrency_key` needs a limit",
            hint="add concurrency_limit=N, or --concurrency-limit N",
        )
    checked = check_inputs(unit.document, plain_inputs(inputs, unit.types.inputs))
    redactor = redactor_of(unit)
    texts = recorded_texts(unit, redactor)
    header = run_header(unit, checked, settings, texts, redactor, notes or {})
    limit = concurrency_limit
    terms = QueueTerms(version_of(texts), queue, priority, 0.0, concurrency_key, limit)
    return header, terms


_KEY_HINT: Final = "write letters, digits and . _ - such as order-17"


def checked_key(key: str | None) -> RunId | None:
    """A key as the id of a run. Raises: `InputError`."""
    if key is None:
        return None
    if not _KEY.fullmatch(key) or key == "last":
        raise InputError(f"`key` cannot be {key!r:.80}", hint=_KEY_HINT)
    return RunId(key)


def due_time(at: str | datetime | timedelta | float | None, now: datetime) -> float:
    """`at` in seconds since 1970; 0 for None. Texts are those of `parse_time`.

    Raises: `InputError` for a time without a zone, and one beyond all calendars.
    """
    if at is None:
        return 0.0
    if isinstance(at, str):
        at = parse_time(at)
    if isinstance(at, datetime):
        if at.tzinfo is None:
            hint = "add its zone, such as 2026-01-05T09:00+01:00"
            raise InputError(f"`at` has no time zone: {at.isoformat()}", hint=hint)
        due_s = at.timestamp()
    else:
        due_s = now.timestamp() + (at.total_seconds() if isinstance(at, timedelta) else at)
    try:
        datetime.fromtimestamp(due_s, UTC)
    except (ValueError, OverflowError, OSError):
        raise InputError("`at` is beyond the year 9999", hint=_TIME_HINT) from None
    return due_s


def parse_time(text: str) -> datetime | float:
    """A time, such as 2026-01-05T09:00+01:00, or a delay in seconds, such as that of `10m`.

    A bare number is no delay: 2020 may be meant as a year. Raises: `InputError`.
    """
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        pass
    try:
        return parse_duration(text)
    except ValueError:
        raise InputError(f"`at` is no time: {text!r:.80}", hint=_TIME_HINT) from None


_TIME_HINT: Final = "give a time such as 2026-01-05T09:00+01:00, or a delay such as 10m"


def _submitted(journal: Journal, header: RunHeader, terms: QueueTerms, key: RunId | None) -> RunId:
    queue = queue_of(journal)
    if key is not None:
        if not queue.submit(replace(header, run=key), terms):
            _check_same(journal, replace(header, run=key))
        return key
    for run in run_ids(header.flow, header.inputs, (*range(_FEW), time.time_ns())):
        if queue.submit(replace(header, run=run), terms):
            return run
    raise RunExists(f"the journal has the run {run!r}", hint="submit it once more")


def _check_same(journal: Journal, header: RunHeader) -> None:
    """Check that the run of this id is the same submission. Raises: `RunExists`."""
    there = journal.header(header.run)
    if (there.flow, dict(there.inputs)) != (header.flow, dict(header.inputs)):
        what = "workflow" if there.flow != header.flow else "inputs"
        hint = "a key stands for one run; choose another key"
        raise RunExists(f"the run {header.run!r} was submitted with other {what}", hint=hint)
    _entry(queue_of(journal), header.run)


def _entry(queue: RunQueue, run: RunId) -> QueueEntry:
    entry = queue.entry(run)
    if entry is None:
        raise not_queued(run)
    return entry


async def _ended(queue: RunQueue, run: RunId, clock: Clock) -> None:
    """Wait until a run has ended. Raises: `Cancelled` when it was stopped."""
    changed, loop = asyncio.Event(), asyncio.get_running_loop()
    listener = queue.listen(lambda: loop.call_soon_threadsafe(changed.set))
    try:
        while True:
            changed.clear()
            entry = await asyncio.to_thread(_entry, queue, run)
            if entry.state == "ended":
                return
            if entry.state == "stopped":
                hint = f"`weft queue retry {run}` lets a worker try again"
                raise Cancelled(f"the run {run!r} was stopped: {entry.reason}", hint=hint)
            poll_s = listener.poll_s
            timer = None if poll_s is None else clock.call_later(poll_s, changed.set)
            try:
                await changed.wait()
            finally:
                if timer is not None:
                    timer.cancel()
    finally:
        await asyncio.to_thread(listener.close)


@contextmanager
def _opened(place: JournalPlace | None) -> Iterator[Journal]:
    """The journal, which is closed at the end if it was opened here."""
    with journal_or_own(place) as (journal, own):
        yield journal
        if own is not None:
            own.close()
