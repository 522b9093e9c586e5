"""How nodes end: with their own outcome, or cancelled, alone or with the run.

Commands and events accumulate in `out`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator

from weft.core.errors import Cancelled, EffectUnknown, Failure, WeftError
from weft.core.events import NodeFinished, NodeStarted, Outcome
from weft.core.ids import NodeId
from weft.core.values import constructor
from weft.engine.graph.graph import Graph, RunOptions
from weft.engine.graph.join import Verdict
from weft.engine.graph.node import AskHuman
from weft.engine.graph.slices import UNLIMITED
from weft.engine.scheduler.admission import NodeAdmission
from weft.engine.scheduler.commands import ClearTimers, Command, Stop
from weft.engine.scheduler.effects import EffectLedger, ended_unsettled, is_unknown, refusal
from weft.engine.scheduler.frontier import Frontier, needed
from weft.engine.scheduler.partial_end import LIMITS, end_order, finished_part
from weft.engine.scheduler.resume_state import ResumeState
from weft.engine.scheduler.state import NodePhase, NodeState
from weft.engine.scheduler.thinking_time import SuspendedTimeouts

_node_finished = constructor(NodeFinished)
_TIMED = frozenset((NodePhase.BACKOFF, NodePhase.ASKING))
_JOINING = frozenset((NodePhase.PENDING, NodePhase.WAITING))


class NodeTermination(ABC):
    """Ends the nodes of one run. The scheduler sets `now` before each call.

    `run_ended`: all nodes are being cancelled; nothing starts or expands any more. `quiet`: no
    events of nodes that are appended, start and end, except for the end of an observed node.
    `_left`: the nodes that may still be ended, passed on and taken in within this step.
    """

    def __init__(
        self, graph: Graph, options: RunOptions, recall: ResumeState | None, effects: EffectLedger
    ) -> None:
        self.now = 0.0
        self.open = len(graph.nodes)
        self.out: list[Command] = []
        self.questions: dict[NodeId, AskHuman] = {}
        self.run_ended = False
        self.quiet = False
        self.frontier = Frontier(recall, self._decide)
        self.states = self.frontier.states
        self._effects = effects
        self._graph = graph
        self._admission = NodeAdmission(options)
        self._suspended = SuspendedTimeouts()
        self._ended: deque[NodeState] = deque()
        self._to_cancel: tuple[Iterator[NodeState], Failure] | None = None
        self._left = UNLIMITED

    @abstractmethod
    def _decide(self, state: NodeState, verdict: Verdict) -> None:
        """Start or end a node whose inputs are decided."""

    def cancel(
        self, states: Iterable[NodeState], failure: Failure, *, by_name: bool = False
    ) -> None:
        """End `states`, which include what is inside them, as cancelled."""
        for state in states:
            if state.phase is NodePhase.ENDED:
                continue
            state.by_name = by_name
            self._admission.give(state)
            self.stop(state)
            end = Outcome("cancelled", None, failure, state.attempt)
            ended = self.run_ended
            event = NodeFinished(state.node.id, end, self.now, run_ended=ended, by_name=by_name)
            self._finish(state, end, event)

    def stop(self, state: NodeState) -> None:
        """Stop the node function of `state`, if it runs."""
        if state.phase is NodePhase.RUNNING:
            self.out.append(Stop(state))

    def _cancel_unneeded(self, decided: NodeState) -> None:
        """Cancel the branches that neither `decided` nor another node needs."""
        failure = Cancelled(f"{decided.node.id} was decided without it").failure()
        doubtful = self.frontier.sources(decided)
        while doubtful:
            state = doubtful.pop()
            if state.phase is NodePhase.ENDED or state.node.id in self._graph.keep:
                continue
            if not needed(state, besides=decided):
                state.tolerated = True
                self.cancel([*state.inside(), state], failure)
                doubtful += self.frontier.sources(state)

    def end_all(self, failure: Failure) -> None:
        """End every node that has not ended, by `end_some`.

        A budget or a deadline leaves best-effort joins the branches that have finished.
        """
        self.run_ended = True
        states = list(self.states.values())
        keeps = failure.error in LIMITS
        order = end_order(states, self.frontier.sources) if keeps else reversed(states)
        self._to_cancel = order, failure
        self._admission.close()

    def end_some(self) -> None:
        """End as many of the nodes as this step allows."""
        assert self._to_cancel is not None
        states, failure = self._to_cancel
        while self._left > 0 and (state := next(states, None)) is not None:
            if failure.error not in LIMITS or not self._keep_finished(state, failure):
                self.cancel((state,), failure)
            self._left -= 1
        self._ended.clear()  # none waits for them: all end

    def end_limited(self, state: NodeState, failure: Failure) -> bool:
        """End `state`, whose budget or time is over, with what is finished; False: it has nothing.

        Everything inside it ends in any case.
        """
        if state.phase is not NodePhase.WAITING or state.growth is None:
            return False
        if state.growth.grow.join.mode != "best_effort" or state.growth.grow.then is not None:
            return False
        for inner in end_order(reversed(state.inside()), self.frontier.sources):
            if not self._keep_finished(inner, failure):
                self.cancel((inner,), failure)
        return self._keep_finished(state, failure)

    def _keep_finished(self, state: NodeState, failure: Failure) -> bool:
        """End `state` with its finished branches. False: it has none to keep."""
        if state.phase not in _JOINING:
            return False
        outcome = finished_part(state, self.states, failure)
        if outcome is None:
            return False
        for child in state.growth.grow.nodes if state.growth is not None else ():
            if (inner := self.states.get(child.id)) is not None:
                inner.tolerated = True
        state.pending_end = None
        if not state.attempt:
            state.attempt = 1
            self.out.append(NodeStarted(state.node.id, 1, self.now))
        end = NodeFinished(state.node.id, outcome, self.now, run_ended=self.run_ended)
        self._finish(state, outcome, end)
        return True

    def _finish(self, state: NodeState, outcome: Outcome, end: NodeFinished | None = None) -> None:
        policy, phase = state.node.policy, state.phase
        if policy.timeout_s is not None or policy.limit is not None or phase in _TIMED:
            self._clear(state)
        state.phase = NodePhase.ENDED
        state.epoch += 1
        state.outcome = outcome
        self.open -= 1
        if end is not None or state.observed or not self.quiet:
            self.out.append(end or _node_finished(state.node.id, outcome, self.now))
        self._ended.append(state)

    def _clear(self, state: NodeState) -> None:
        policy = state.node.policy
        timed = policy.timeout_s is not None or policy.limit is not None
        if timed or state.phase is NodePhase.BACKOFF:
            self.out.append(ClearTimers(state))
            state.due_s = None  # what replaces the attempt has its own time
        if state.phase is NodePhase.ASKING:
            self.questions.pop(state.node.id, None)
            self._continue_timeouts(state)

    def _suspend(self, state: NodeState) -> None:
        """Stop the timeouts around `state`, which asks a person."""
        for command in self._suspended.asked(state, self.now):
            self.out.append(command)
            self._watch_again(command)

    def _continue_timeouts(self, state: NodeState) -> None:
        """Continue the timeouts around `state`, whose question is over."""
        self.out.extend(self._suspended.ended(state, self.now))

    @abstractmethod
    def _watch_again(self, command: Command) -> None:
        """Set the timer of a budget that `command` has cleared."""

    def _judged(self, state: NodeState, error: WeftError) -> WeftError:
        """`error`, or the refusal to try `state` again after a call in it that may have acted.

        A person always has to judge a node's own call. A call inside the node needs that where
        something could run again, or ran in its place.
        """
        made = list(self._effects.within(state, self.states))
        if isinstance(error, EffectUnknown):
            if not made:  # the node's own code raised it
                self._effects.open(state.node.id, state.node.kind)
            return error
        policy, chooses = state.node.policy, self._effects.is_decider(state.node.id)
        again = chooses or policy.retry is not None or policy.fallback is not None
        own = next((call for call, maker in made if again or maker is state), None)
        return error if own is None else refusal(own, error.failure())

    def _unknown_inside(self, state: NodeState) -> EffectUnknown | None:
        """The reason why `state` may start nothing more: an unsettled call of an ended node."""
        call = ended_unsettled(self._effects.within(state, self.states))
        if call is None:
            return None
        outcome = self.states[call.node].outcome
        failure = None if outcome is None else outcome.failure
        if failure is not None and is_unknown(failure):
            return EffectUnknown(failure.message, hint=failure.hint)
        return refusal(call, failure)

    def _idle(self, state: NodeState) -> list[NodeState]:
        """The nodes inside `state` without a call under way, of theirs or inside them."""
        made = self._effects.within(state, self.states)
        acting = {scope for _, maker in made for scope in maker.scopes()}
        return [inside for inside in state.inside() if inside not in acting]
