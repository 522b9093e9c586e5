"""The async shell around the scheduler: performs its commands and passes it the signals.

Every task, timer and waiter of a run belongs to its `Run` and is gone when `wait` returns, except
code that refuses to be cancelled: the result names it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import replace
from typing import Any

from weft.core.errors import (
    Failure,
    InternalError,
    NodeFailed,
    UnknownReference,
    WeftError,
    convert,
)
from weft.core.events import (
    CacheMissed,
    Event,
    HumanAsked,
    Listener,
    NodeFinished,
    NodeLogged,
    NodeStarted,
    RunFinished,
    RunResumed,
    RunStarted,
)
from weft.core.ids import NodeId, RunId, run_id
from weft.core.ports import Clock, ResultStore
from weft.core.ports.clock import SystemClock
from weft.core.ports.journal import Record
from weft.core.questions import PendingQuestion
from weft.engine.graph.content_digest import DigestTexts
from weft.engine.graph.graph import Graph, RunOptions
from weft.engine.graph.node import AskHuman, NodeCache
from weft.engine.graph.slices import SLICE
from weft.engine.runner.context import AttemptContext, RunHost
from weft.engine.runner.listeners import Listeners
from weft.engine.runner.recorder import RunRecorder
from weft.engine.runner.result import RunResult, conclude
from weft.engine.runner.result_cache import NodeResultCache
from weft.engine.runner.tasks import CancellingTasks, Timers
from weft.engine.scheduler.commands import (
    Answered,
    CancelRequested,
    ClearTimers,
    Command,
    JournalLost,
    Raised,
    Restore,
    Returned,
    SetTimer,
    Signal,
    Start,
    Stop,
    declared_order,
)
from weft.engine.scheduler.effects import EFFECTS, EffectLedger, EffectScope
from weft.engine.scheduler.inputs import restore_node
from weft.engine.scheduler.resume_state import NO_HISTORY, ResumeState
from weft.engine.scheduler.scheduler import Scheduler
from weft.engine.scheduler.state import NodePhase, NodeState

_OPTIONS = RunOptions()
_MOVING = frozenset((NodePhase.QUEUED, NodePhase.RUNNING, NodePhase.BACKOFF))
"""The phases of nodes that continue, or end, without an answer."""


class Run(RunHost):
    """One execution of a graph.

    `redact` returns what of an event may leave the run, in order; listeners and recorder receive
    nothing else. `listeners` get every event at once, in order; one that raises gets no more, and
    the result says so. `store` serves nodes that have a cache policy. `recorder` records the run.
    `recall` has the outcomes of earlier parts of the run, or of another run: their work is not
    repeated. `effects`: see there. `services`: available to node functions in their contexts.
    `leaves`: nobody can answer here, so the run is left as soon as only answers can continue it.
    """

    def __init__(
        self,
        graph: Graph,
        options: RunOptions = _OPTIONS,
        *,
        run: RunId | None = None,
        clock: Clock | None = None,
        store: ResultStore | None = None,
        listeners: Iterable[Listener] = (),
        recall: ResumeState | None = None,
        recorder: RunRecorder | None = None,
        redact: Callable[[Event], Iterable[Record]] | None = None,
        effects: EffectLedger | None = None,
        services: object = None,
        leaves: bool = False,
    ) -> None:
        self._leaves = leaves
        self._unanswerable: set[NodeId] = set()
        self._asks, self._draining = False, ""
        self._left: tuple[PendingQuestion, ...] = ()
        self._effects = effects or EffectLedger()
        self._graph = graph
        self._options = options
        self._clock = clock or SystemClock()
        self._reuse = None if store is None else NodeResultCache(store, self._log, self._missed)
        self._listeners = Listeners(listeners, redact, recorder)
        self._recall = recall or (None if recorder is None else NO_HISTORY)
        self._recorder = recorder
        self._texts = DigestTexts()
        scheduler = Scheduler(graph, options, self._recall, self._effects, slice_nodes=SLICE)
        super().__init__(run or run_id(graph.name, {}), graph.name, scheduler, services)
        self._inbox: list[Signal] = []
        self._step_is_due = False
        self._cancelling = CancellingTasks()
        self._timers = Timers(self._clock, self._signal)
        self._errors: dict[NodeId, WeftError] = {}
        self._begun = False
        self._started_s = 0.0

    # -- what callers use --------------------------------------------------------------------

    async def wait(self) -> RunResult:
        """Run to the end. A failed node does not raise: look at the result.

        Cancelling the caller cancels the run, waits for its end, and raises the cancellation.
        """
        if self._begun:
            raise InternalError(f"{self.id} is already under way; a Run runs once")
        self._has_boundary = self._recall is not None or self._effects.guarded
        self._loop = asyncio.get_running_loop()
        self._context = copy_context()
        self._around = EFFECTS.get()
        self._done: asyncio.Future[None] = self._loop.create_future()
        self._started_s = self._clock.now() - (self._recall.elapsed_s if self._recall else 0.0)
        self._begun = True
        if self._recorder is not None:
            self._recorder.begin(self, self._clock)
        self._announce()
        try:
            quiet = self._listeners.is_quiet and self._reuse is None
            self._perform(self._scheduler.begin(self.elapsed_s, quiet=quiet))
            self._step()  # it may have been cancelled before it began
            await self._done
        except asyncio.CancelledError:
            self._inbox.clear()
            ended = [CancelRequested("the caller was cancelled")]
            self._perform(self._scheduler.advance(ended, self.elapsed_s))
            await self._all_ended()
            await self._end()
            raise
        except Exception:
            await self._close()
            if self._recorder is not None:
                await self._recorder.close()
            raise
        return await self._end()

    def cancel(self, reason: str = "cancelled", node: NodeId | None = None) -> None:
        """End the run, or one node of it with everything inside, keeping what is done.

        Raises: `UnknownReference` for a node that a run under way does not have.
        """
        if node is not None and self._begun and node not in self._scheduler.states:
            raise UnknownReference(f"there is no node {node!r} to cancel", node=node)
        self._signal(CancelRequested(reason, node))

    def answer(self, node: NodeId, value: Any) -> None:
        """Answer the question of `node`. Raises `UnknownReference` when it asks none."""
        if node not in self._scheduler.questions:
            asking = ", ".join(self._scheduler.questions) or "nothing"
            raise UnknownReference(f"{node!r} asks nothing", hint=f"asking: {asking}")
        self._signal(Answered(node, value))

    @property
    def questions(self) -> Mapping[NodeId, AskHuman]:
        """The nodes that wait for a person."""
        return dict(self._scheduler.questions)

    def decline(self, node: NodeId) -> None:
        """Nobody answers the question of `node` here.

        Where that holds for all open questions, and nothing but an answer can continue the run, it
        is left: its status is `asking`, and in its record it has not ended.
        """
        self._unanswerable.add(node)
        self._waits_changed()

    def decline_all(self) -> None:
        """Nobody answers any question here from now on."""
        self._leaves = True
        self._waits_changed()

    def _waits_changed(self) -> None:
        if self._asks:
            self._step_soon()

    def _leave_if_stuck(self) -> None:
        """Leave the run where nothing but an answer can continue it, and nobody answers here."""
        questions = self._scheduler.questions
        self._asks = bool(questions)
        if not questions or self._left or self._inbox or self._scheduler.busy:
            return
        if not self._leaves and not questions.keys() <= self._unanswerable:
            return
        if len(self._tasks) > len(self._waits) or any(
            state.phase in _MOVING and not self._waits.block(state)
            for state in self._scheduler.states.values()
        ):
            return
        self._left = tuple(
            PendingQuestion(self.id, node, ask.question, ask.schema, ask.tool, ask.arguments)
            for node, ask in questions.items()
        )
        self._leave(f"nobody answers {', '.join(questions)} here")

    def drain(self, reason: str) -> None:
        """Start no more node functions; leave the run, unended, when those under way have ended."""
        self._draining = reason
        if self._begun:
            self._step_soon()

    def _leave_if_drained(self) -> None:
        ends = self._left or self._inbox or self._scheduler.busy or self._scheduler.done
        if not ends and len(self._tasks) <= len(self._waits):  # those only wait for other nodes
            self._leave(self._draining)

    def _leave(self, reason: str) -> None:
        if self._recorder is not None:
            self._recorder.leave()
        self._signal(CancelRequested(reason))

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run started."""
        return self._clock.now() - self._started_s

    # -- the loop ----------------------------------------------------------------------------

    def _signal(self, signal: Signal) -> None:
        if self._scheduler.done:
            return
        self._inbox.append(signal)
        if self._begun:
            self._step_soon()

    def _step_soon(self) -> None:
        if not self._step_is_due:
            self._step_is_due = True
            self._loop.call_soon(self._step)

    def _step(self) -> None:
        """One scheduling step: drain the signals, let the scheduler decide, perform.

        What it leaves is done in the next pass of the event loop.
        """
        self._step_is_due = False
        signals, self._inbox = self._inbox, []
        if len(signals) > 1:
            signals.sort(key=declared_order)
        try:
            if signals or self._scheduler.busy:
                now_s = self._clock.now() - self._started_s
                self._perform(self._scheduler.advance(signals, now_s))
            if self._asks:
                self._leave_if_stuck()
            if self._draining:
                self._leave_if_drained()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - a bug must not hang
            self._crash(error)

    def _perform(self, commands: Sequence[Command]) -> None:
        starts: list[Start] = []
        while restores := self._carry_out(commands, starts):
            commands = self._restored(restores)
        if self._recorder is not None:
            self._recorder.commit(starts)
        elif starts:
            self.start(starts)
        if self._scheduler.done:
            if not self._done.done():
                self._done.set_result(None)
        elif self._scheduler.busy:
            self._step_soon()

    def _carry_out(self, commands: Sequence[Command], starts: list[Start]) -> list[Restore]:
        """Perform `commands`; add to `starts` what is to start; return the nodes to restore."""
        restores: list[Restore] = []
        emit = self.emit if self._waiters or self._reuse is not None else self._listeners.tell
        for command in commands:
            match command:
                case Start():
                    starts.append(command)
                case NodeStarted() | NodeFinished():  # by far the most
                    emit(command)
                case Restore():
                    restores.append(command)
                case Stop(state):
                    self._stop(state)
                case SetTimer():
                    self._timers.set(command)
                case ClearTimers(state):
                    self._timers.clear(state)
                case _:
                    self.emit(command)
        return restores

    def _restored(self, restores: Iterable[Restore]) -> Sequence[Command]:
        recall, nodes = self._recall or NO_HISTORY, self._scheduler
        return nodes.restored(
            [restore_node(each, recall, nodes.states, self._texts) for each in restores],
            self.elapsed_s,
        )

    # -- what a recorder asks for ----------------------------------------------------------------

    def journal_lost(self, failure: Failure) -> None:
        """End the run: nothing can be recorded any more."""
        self._signal(JournalLost(failure))

    # -- commands ----------------------------------------------------------------------------

    def start(self, starts: Iterable[Start]) -> None:
        """Start node functions, except those that were stopped meanwhile."""
        if self._draining:
            return
        tasks, create, around = self._tasks, self._loop.create_task, self._context
        for start in starts:
            state = start.state
            if state.epoch != start.epoch:
                continue
            node = state.node
            cache = node.policy.cache
            if cache is None or self._reuse is None or start.work is not node.work:
                attempt = self._attempt(start)
            else:
                attempt = self._attempt_cached(start, cache, self._reuse)
            # Each node has its own context variables.
            tasks[state] = create(attempt, context=around.copy())

    async def _attempt(self, start: Start) -> None:
        state, epoch = start.state, start.epoch
        signal: Signal
        around, has_boundary = self._around, self._has_boundary
        context = AttemptContext(self, state, epoch)
        node = state.node.id
        EFFECTS.set(EffectScope(self._effects, node, state.attempt, around, has_boundary, context))
        try:
            running = start.work(context, start.argument)
            if self._recorder is not None:
                running = self._recorder.metered(state.node.id, running)
            value = await running
        except asyncio.CancelledError:
            if state.epoch != epoch:
                return
            error = NodeFailed("its own code raised CancelledError", node=state.node.id)
            signal = Raised(state, epoch, error)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it raises is its outcome
            raised = self._errors[state.node.id] = convert(error, state.node.id)
            signal = Raised(state, epoch, raised)
        else:
            signal = Returned(state, epoch, value)
        if state.epoch == epoch and self._tasks.pop(state, None) is not None:
            self._inbox.append(signal)
            if not self._tasks and not self._step_is_due:
                self._step()  # no other signal can come in this step
            else:
                self._step_soon()

    async def _attempt_cached(self, start: Start, cache: NodeCache, reuse: NodeResultCache) -> None:
        entry = await reuse.find(start, cache)
        if start.state.epoch != start.epoch:
            return
        if entry is None:
            await self._attempt(start)
        else:
            del self._tasks[start.state]
            self._signal(Returned(start.state, start.epoch, entry.value, cached=True))

    def _stop(self, state: NodeState) -> None:
        task = self._tasks.pop(state, None)
        if task is not None:
            self._cancelling.add(task, state.node.id)
            task.cancel()

    def emit(self, event: Event) -> None:
        """Pass `event` to every listener, and wake those who wait for its node.

        Events leave the run only here, after redaction.
        """
        if type(event) is NodeFinished and (self._waiters or self._reuse is not None):
            self._node_finished(event)
        elif type(event) is HumanAsked and not self._asks:
            self._asks = True
            self._step_soon()
        self._listeners.tell(event)

    def _node_finished(self, event: NodeFinished) -> None:
        self._wake(event.node, event.outcome)
        if self._reuse is not None and (keeping := self._reuse.ended(event)) is not None:
            self._cancelling.add(self._loop.create_task(keeping), event.node)

    def _log(self, node: NodeId, text: str) -> None:
        self.emit(NodeLogged(node, text, self.elapsed_s))

    def _missed(self, node: NodeId, key: str) -> None:
        self.emit(CacheMissed(node, key, self.elapsed_s))

    # -- beginning and end -------------------------------------------------------------------

    def _announce(self) -> None:
        wall = self._clock.wall().isoformat(timespec="milliseconds")
        if self._recall is not None and self._recall.part > 1:
            limit = self._options.limit
            budget = None if limit is None else limit.as_data
            self.emit(RunResumed(self.id, self._recall.part, wall, self.elapsed_s, budget))
        name, infos = self._graph.name, self._graph.infos
        self.emit(RunStarted(self.id, name, wall, infos, self._options.slots, self.elapsed_s))

    def _crash(self, error: BaseException) -> None:
        if not self._done.done():
            bug = error if isinstance(error, InternalError) else InternalError(repr(error))
            bug.__cause__ = error
            self._done.set_exception(bug)

    async def _all_ended(self) -> None:
        """Wait until every node has its outcome; when cancelled meanwhile, end them all at once."""
        try:
            await asyncio.shield(self._done)
        except asyncio.CancelledError:
            while not self._scheduler.done:
                self._perform(self._scheduler.advance((), self.elapsed_s))

    async def _end(self) -> RunResult:
        """Wait for cancelled code, and conclude; also when the caller is cancelled meanwhile."""
        try:
            await self._close()
        finally:
            result = self._conclude()
            if self._recorder is not None:
                result = await self._recorded(self._recorder, result)
        return result

    async def _recorded(self, recorder: RunRecorder, result: RunResult) -> RunResult:
        """`result`, once it is in the journal, or with the reason why it cannot be."""
        lost = await recorder.close()
        if lost is None or lost.message in result.reasons:
            return result
        return replace(result, reasons=(*result.reasons, lost.message))

    async def _close(self) -> None:
        """Cancel what is left and wait for it within the grace period."""
        for state in list(self._tasks):
            self._stop(state)
        self._timers.close()
        await self._cancelling.wait(self._options.grace_s, self._clock)
        if self._recorder is not None:
            await self._recorder.flush()

    def _conclude(self) -> RunResult:
        leaked = tuple(sorted({*self._cancelling.give_up(), *self._effects.abandoned}))
        complaints = self._listeners.complaints
        if self._recorder is not None and self._recorder.lost is not None:
            complaints.append(self._recorder.lost.message)
        keep = self._graph.keep
        ended = (complaints, self.elapsed_s, leaked, self._effects.unsettled)
        errors, questions = self._errors, self._left
        nodes = self._scheduler
        end = conclude(self.id, nodes, keep, *ended, errors=errors, questions=questions)
        summary = (end.status, end.usage, end.reasons, end.wall_s, leaked, end.missed)
        self.emit(RunFinished(*summary))
        self._listeners.close()  # leaked code is not listened to any more
        return end
