"""How nodes end: with an outcome of their own, or cancelled, one by one or all with the run.

Commands and events pile up in `out`. Knows neither how nodes start nor who waits for them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator

from weft.core.errors import Cancelled, EffectUnknown, Failure, WeftError
from weft.core.events import NodeFinished, Outcome
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
from weft.engine.scheduler.resume_state import ResumeState
from weft.engine.scheduler.state import NodePhase, NodeState

_node_finished = constructor(NodeFinished)
_TIMED = frozenset((NodePhase.BACKOFF, NodePhase.ASKING))


class NodeTermination(ABC):
    """The nodes of one run, as far as they end. `now` is set before each call.

    `run_ended`: all that has not ended is to be cancelled, nothing starts or expands any more.
    `quiet`: nobody is told when nodes are appended, start and end, but who waits for a node.
    `_left`: so many nodes may still be ended, told of and taken in within this step.
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
        self._ended: deque[NodeState] = deque()
        self._doomed: tuple[Iterator[NodeState], Failure] | None = None
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
            told = NodeFinished(state.node.id, end, self.now, run_ended=ended, by_name=by_name)
            self._finish(state, end, told)

    def stop(self, state: NodeState) -> None:
        """Stop the work of `state`, if it runs."""
        if state.phase is NodePhase.RUNNING:
            self.out.append(Stop(state))

    def _let_go(self, decided: NodeState) -> None:
        """Cancel the branches that `decided` no longer waits for and nobody else needs."""
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
        """Cancel every node that has not ended, by `end_some`."""
        self.run_ended = True
        self._doomed = reversed(list(self.states.values())), failure
        self._admission.close()

    def end_some(self) -> None:
        """Cancel as many of the nodes as this step allows."""
        assert self._doomed is not None
        states, failure = self._doomed
        while self._left > 0 and (state := next(states, None)) is not None:
            self.cancel((state,), failure)
            self._left -= 1
        self._ended.clear()  # nobody is told: all end

    def _finish(self, state: NodeState, outcome: Outcome, told: NodeFinished | None = None) -> None:
        policy, phase = state.node.policy, state.phase
        if policy.timeout_s is not None or policy.limit is not None or phase in _TIMED:
            self._clear(state)
        state.phase = NodePhase.ENDED
        state.epoch += 1
        state.outcome = outcome
        self.open -= 1
        if told is not None or state.heard or not self.quiet:
            self.out.append(told or _node_finished(state.node.id, outcome, self.now))
        self._ended.append(state)

    def _clear(self, state: NodeState) -> None:
        policy = state.node.policy
        timed = policy.timeout_s is not None or policy.limit is not None
        if timed or state.phase is NodePhase.BACKOFF:
            self.out.append(ClearTimers(state))
        if state.phase is NodePhase.ASKING:
            self.questions.pop(state.node.id, None)

    def _judged(self, state: NodeState, error: WeftError) -> WeftError:
        """`error`, or why `state` may not be tried again where a call in it may have acted.

        What a node's own call did is always for a person to judge. What happened inside it is so
        where something could run again, or ran in its place.
        """
        made = list(self._effects.within(state, self.states))
        if isinstance(error, EffectUnknown):
            if not made:  # the node's code knows it from elsewhere
                self._effects.open(state.node.id, state.node.kind)
            return error
        policy, chooses = state.node.policy, self._effects.is_decider(state.node.id)
        again = chooses or policy.retry is not None or policy.fallback is not None
        own = next((call for call, maker in made if again or maker is state), None)
        return error if own is None else refusal(own, error.failure())

    def _unknown_inside(self, state: NodeState) -> EffectUnknown | None:
        """Why `state` may start nothing more: a call of a node inside it, which has ended."""
        call = ended_unsettled(self._effects.within(state, self.states))
        if call is None:
            return None
        outcome = self.states[call.node].outcome
        failure = None if outcome is None else outcome.failure
        if failure is not None and is_unknown(failure):
            return EffectUnknown(failure.message, hint=failure.hint)
        return refusal(call, failure)

    def _idle(self, state: NodeState) -> list[NodeState]:
        """What is inside `state` and has no call under way, nor holds one, that may act."""
        made = self._effects.within(state, self.states)
        acting = {scope for _, maker in made for scope in maker.scopes()}
        return [inside for inside in state.inside() if inside not in acting]
