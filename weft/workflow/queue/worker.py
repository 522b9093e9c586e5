"""A worker: takes runs from a queue, executes them with recording, and continues abandoned ones.

Nothing here decides who may execute a run: that is the queue's claim.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import uuid4

from weft.cluster.settings import Placement
from weft.core.errors import BuildError, StoreError, WeftError, convert
from weft.core.ids import NodeId, RunId
from weft.core.loggers import logger
from weft.core.ports import Clock, ModelClient
from weft.core.ports.clock import SystemClock
from weft.core.ports.journal import Journal
from weft.core.ports.queue import RunQueue, TakenRun, WorkerEntry, queue_of
from weft.durability.journal.refusals import HeldClaim
from weft.workflow.document.secrets import redactor_of
from weft.workflow.flow.flow import AnyFlow
from weft.workflow.history.resume import RunSucceeded, WorkflowChanged, claim_run, resume_run
from weft.workflow.queue.firing import fire_schedules
from weft.workflow.queue.heartbeat import LEASE_S, WorkerHeartbeat
from weft.workflow.queue.versions import recorded_texts, version_of
from weft.workflow.runtime.models.factory import Models, ModelSource
from weft.workflow.runtime.run import FlowRun

_logger = logger("queue")
_LONGEST_S: Final = 60.0
"""The longest sleep of an idle worker: against a clock that is set."""
EventKind = Literal["taken", "ended", "asking", "left", "stopped", "changed", "fired"]


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """What happened to a run at a worker; an end is told once the queue shows it.

    taken      it begins, or continues after another worker's part (`attempts` above 1)
    ended      `text` is its status, and why
    asking     it waits for an answer, and occupies nothing here
    left       another worker continues it: this one drains, or cannot reach the journal
    stopped    it cannot be executed, because of `text`; `weft queue retry` tries again
    changed    its workflow's files have changed since this worker was started
    fired      the schedule `text` has submitted it
    """

    kind: EventKind
    run: RunId
    flow: str
    text: str = ""
    attempts: int = 0


@dataclass(slots=True)
class _Execution:
    taken: TakenRun
    flow: AnyFlow
    run: FlowRun[Any] | None = None


@dataclass(frozen=True, slots=True)
class _PartEnd:
    """How this worker's part of a run ended. `open_question`: it can go on without the answer."""

    kind: EventKind
    text: str
    open_question: bool = False


class Worker:
    """Executes queued runs of `flows`, at most `concurrency` at once.

        worker = Worker([weft.load("brief.yaml")], journal, concurrency=8)
        await worker.serve()

    Only runs that were submitted with the same version of a workflow and its code are taken. The
    owner of `journal` closes it. `models`: clients for all runs, as of `RunSettings`; by default
    declared models are loaded once and shared. `on`: where the tools of all runs run, as of
    `RunSettings`. `grace_s`: how long `drain` waits for running nodes. `lease_s`: how long the
    journal lists it as alive after a heartbeat. `report` receives what happens; it must not raise.

    Raises: `BuildError` for a workflow that cannot run here, `StoreError` for a journal without a
    queue.
    """

    def __init__(
        self,
        flows: Sequence[AnyFlow],
        journal: Journal,
        *,
        concurrency: int = 4,
        queues: Sequence[str] = ("default",),
        grace_s: float = 30.0,
        lease_s: float = LEASE_S,
        clock: Clock | None = None,
        models: ModelSource | dict[str, ModelClient] | None = None,
        on: Placement | None = None,
        report: Callable[[WorkerEvent], None] | None = None,
    ) -> None:
        if not flows:
            raise BuildError("a worker needs a workflow", hint="name one or more")
        if concurrency < 1:
            raise BuildError(f"`concurrency` is at least 1, not {concurrency}")
        if not lease_s > 0:
            raise BuildError(f"`lease_s` is above 0, not {lease_s}")
        self._journal = journal
        self._queue: RunQueue = queue_of(journal)
        self.versions: dict[str, AnyFlow] = {}
        """The workflows by their versions."""
        for flow in flows:
            flow.check(on=on)
            unit = flow.unit
            self.versions[version_of(recorded_texts(unit, redactor_of(unit)))] = flow
        self._concurrency = concurrency
        self._queues = tuple(queues)
        self._grace_s = grace_s
        self._clock = clock or SystemClock()
        self._heartbeat = WorkerHeartbeat(self._queue, self._entry, lease_s, self._clock)
        self._id, self._since_s = uuid4().hex, 0.0
        self._given_models = models
        self._models: Any = models
        self._on = on
        self._report = report or (lambda _: None)
        self._executions: dict[RunId, _Execution] = {}
        self._wake = asyncio.Event()
        self._draining = False

    @property
    def running(self) -> tuple[RunId, ...]:
        """The runs that it executes now."""
        return tuple(self._executions)

    @property
    def draining(self) -> bool:
        """Whether it takes no more runs."""
        return self._draining

    def drain(self) -> None:
        """Take no more runs, let running nodes end, and leave the rest to other workers.

        `serve` returns after that. Call it in the loop's thread.
        """
        self._draining = True
        for execution in self._executions.values():
            if execution.run is not None:
                execution.run.drain()
        self._wake.set()

    async def serve(self, ready: Callable[[], None] | None = None) -> bool:
        """Execute runs until drained; `ready` is called when it begins to look for them.

        Cancelling it leaves the runs to other workers at once. Returns: False when nodes had to be
        cut off. Raises: `StoreError` for a journal that cannot be used for good.
        """
        loop, own = asyncio.get_running_loop(), None
        whole, failure = False, None
        if self._given_models is None:
            own = self._models = Models()
        listener = self._queue.listen(lambda: loop.call_soon_threadsafe(self._wake.set))
        try:
            self._since_s = self._clock.wall().timestamp()
            await self._heartbeat.beat()
            async with asyncio.TaskGroup() as tasks:
                beating = tasks.create_task(self._heartbeat.keep_beating())
                try:
                    if ready is not None:
                        ready()
                    while not self._draining:
                        self._wake.clear()
                        wait_s = await self._look(tasks, listener.poll_s)
                        await self._sleep(wait_s)
                    whole = await self._drained()
                except StoreError as error:  # a task group would wrap it
                    failure = error
                finally:
                    self._leave_all()
                    beating.cancel()
        finally:
            await self._heartbeat.leave()
            await asyncio.to_thread(listener.close)
            if own is not None:
                await own.aclose()
        if failure is not None:
            raise failure
        return whole

    def _entry(self) -> WorkerEntry:
        """It, for the journal's list of workers."""
        return WorkerEntry(
            self._id,
            platform.node(),
            os.getpid(),
            tuple((flow.name, version) for version, flow in self.versions.items()),
            self._queues,
            self._concurrency,
            self._since_s,
            self._draining,
        )

    # -- taking --------------------------------------------------------------------------------

    @property
    def _now_s(self) -> float | None:
        """The time, where it is not the store's own."""
        fake = not isinstance(self._clock, SystemClock)
        return self._clock.wall().timestamp() if fake else None

    async def _look(self, tasks: asyncio.TaskGroup, poll_s: float | None) -> float:
        """Fire due schedules and take runs; the seconds until the next look."""
        try:
            await self._fire()
            while len(self._executions) < self._concurrency and not self._draining:
                taken = await self._take()
                if taken is None:
                    break
                tasks.create_task(self._execute(taken))
            else:
                return _LONGEST_S  # a run that ends wakes it
            if poll_s is not None:
                return poll_s
            asked = (self._queues, tuple(self.versions), self._now_s)
            wait_s = await asyncio.to_thread(self._queue.wait_s, *asked)
        except StoreError as error:
            if not error.retryable:
                raise
            _logger.warning("the queue cannot be reached: %s", error.message)
            return 1.0
        return _LONGEST_S if wait_s is None else min(wait_s, _LONGEST_S)

    async def _fire(self) -> None:
        for run, schedule in await fire_schedules(self._queue, self._now_s):
            self._tell("fired", run, schedule.header.flow, schedule.name)

    async def _take(self) -> TakenRun | None:
        asked = (self._queues, tuple(self.versions), self._now_s)
        taking = asyncio.ensure_future(asyncio.to_thread(self._queue.take, *asked))
        try:
            taken = await asyncio.shield(taking)
        except asyncio.CancelledError:
            taken = await taking
            if taken is not None:
                taken.claim.release()
            raise
        if taken is not None and taken.run not in self._executions:
            self._executions[taken.run] = _Execution(taken, self.versions[taken.version])
        return taken

    async def _sleep(self, wait_s: float) -> None:
        if self._draining:
            return
        timer = self._clock.call_later(wait_s, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            timer.cancel()

    # -- executing -----------------------------------------------------------------------------

    async def _execute(self, taken: TakenRun) -> None:
        """Execute a run to its end, a question or the drain, release it, and then tell."""
        execution = self._executions[taken.run]
        part: _PartEnd | None = None
        try:
            part = await self._run(execution)
        except RunSucceeded:
            part = _PartEnd("ended", "succeeded")
        except WorkflowChanged:
            self.versions.pop(taken.version, None)
            part = _PartEnd("changed", "its files have changed: restart this worker")
        except StoreError as error:
            if error.retryable:
                part = _PartEnd("left", error.message)
            else:
                part = await self._stop(taken.run, error)
        except Exception as error:  # noqa: BLE001 - one run must not end the worker
            part = await self._stop(taken.run, convert(error, NodeId("")))
        finally:
            try:
                await asyncio.to_thread(taken.claim.release)
                if part is not None and part.open_question:
                    await self._requeue(taken.run)
            finally:
                del self._executions[taken.run]
                self._wake.set()
                if part is not None:
                    self._tell(part.kind, taken.run, execution.flow.name, part.text)

    async def _run(self, execution: _Execution) -> _PartEnd:
        taken, name = execution.taken, execution.flow.name
        kept = taken._replace(claim=HeldClaim(lambda: None))  # it is released in `_execute`
        claimed = await asyncio.to_thread(
            claim_run, self._journal, taken.run, unit=execution.flow.unit, taken=kept
        )
        if self._draining:
            return _PartEnd("left", "this worker drains")
        settings = {"models": self._models, "clock": self._clock, "questions": "pause"}
        run = execution.run = resume_run(claimed, **settings, on=self._on)
        self._tell("taken", taken.run, name, attempts=taken.attempts)
        result = await run.wait()
        summary = await asyncio.to_thread(self._journal.summary, taken.run)
        if result.status == "asking":
            return _PartEnd("asking", ", ".join(q.node for q in result.questions))
        if summary.standing in ("running", "asking"):  # its record has no end
            return _PartEnd("left", "; ".join(result.reasons), bool(summary.asking))
        return _PartEnd("ended", ": ".join((result.status, *result.reasons[:1])))

    async def _stop(self, run: RunId, error: WeftError) -> _PartEnd:
        try:
            await asyncio.to_thread(self._queue.stop, run, str(error))
        except StoreError as failure:
            _logger.warning("%s: %s", run, failure.message)
        return _PartEnd("stopped", str(error))

    async def _requeue(self, run: RunId) -> None:
        try:
            await asyncio.to_thread(self._queue.requeue, run)
        except StoreError as failure:
            _logger.warning("%s: %s", run, failure.message)

    def _tell(
        self, kind: EventKind, run: RunId, flow: str, text: str = "", attempts: int = 0
    ) -> None:
        self._report(WorkerEvent(kind, run, flow, text, attempts))

    # -- draining ------------------------------------------------------------------------------

    async def _drained(self) -> bool:
        """Wait for running nodes within the grace period, and leave what is left."""
        over = asyncio.Event()
        timer = self._clock.call_later(self._grace_s, over.set)
        try:
            while self._executions and not over.is_set():
                self._wake.clear()
                waits = [asyncio.ensure_future(each.wait()) for each in (self._wake, over)]
                try:
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for wait in waits:
                        wait.cancel()
        finally:
            timer.cancel()
        whole = not self._executions
        self._leave_all()
        return whole

    def _leave_all(self) -> None:
        for execution in self._executions.values():
            if execution.run is not None:
                execution.run.pause("left to another worker")
