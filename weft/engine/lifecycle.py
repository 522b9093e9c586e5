"""What becomes of one node: ready, started, growing, asking, joined, failed, cancelled, ended.

Every transition of a node's state is made here; commands and events pile up until `settle` hands
them over. Knows no signals, timers or budgets beyond what a single node has.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weft.core.errors import BudgetExceeded, Cancelled, Failure, WeftError, convert
from weft.core.events import (
    GraphGrew,
    HumanAsked,
    NodeFinished,
    NodeLogged,
    NodeRerouted,
    NodeRetrying,
    NodeStarted,
    NodeWaiting,
    Outcome,
)
from weft.core.ids import NodeId, inside
from weft.engine.backoff import delay_s
from weft.engine.checks import check, check_growth
from weft.engine.commands import ClearTimers, Command, SetTimer, Start, Stop
from weft.engine.delivery import inputs, joined
from weft.engine.frontier import Decided, Frontier, needed
from weft.engine.graph import Graph, info, ranks
from weft.engine.join import Verdict
from weft.engine.ledger import Ledger
from weft.engine.node import MISSING, Ask, Grow, Node, Skip
from weft.engine.options import RunOptions
from weft.engine.slots import Slots
from weft.engine.state import Account, Growth, NodeState, Phase

_REQUESTS = frozenset((Grow, Ask, Skip))
_DECIDED_EARLY = frozenset(("any", "quorum", "first_valid"))


class Lifecycle:
    """The nodes of one run. `now` is set by the scheduler before each call."""

    def __init__(self, graph: Graph, options: RunOptions) -> None:
        self.now = 0.0
        self.open = len(graph.nodes)
        self.out: list[Command] = []
        self.questions: dict[NodeId, Ask] = {}
        self.ledger = Ledger(options.limit, 0.0)
        self._graph = graph
        self._seed = options.seed
        self.frontier = Frontier()
        self._slots = Slots(options.max_concurrency, options.limits)
        self._ready: deque[NodeState] = deque()
        self._ended: deque[NodeState] = deque()

    @property
    def states(self) -> dict[NodeId, NodeState]:
        """Every node of the run; read only."""
        return self.frontier.states

    def begin(self) -> None:
        """Take in the nodes of the graph."""
        self._decide(self.frontier.add(self._graph.nodes, self._graph.ranks, None))

    def settle(self) -> list[Command]:
        """Start whoever may start, until nothing moves; hand over the commands."""
        while True:
            self.tell()
            state = self._ready.popleft() if self._ready else self._slots.admit()
            if state is None:
                break
            self._start(state)
        commands, self.out = self.out, []
        return commands

    def tell(self) -> None:
        """Tell everybody who waits about the nodes that have just ended."""
        while self._ended:
            state = self._ended.popleft()
            self._decide(self.frontier.ended(state))
            if state.parent is not None:
                self._child_ended(state.parent, state)

    # -- nodes become ready ------------------------------------------------------------------

    def add(self, parent: NodeState, nodes: Sequence[Node]) -> None:
        """Append `nodes` to `parent`. Raises `BuildError`, and adds none then."""
        self._append(parent, nodes, self._checked(parent, nodes))

    def _checked(self, parent: NodeState, nodes: Sequence[Node]) -> dict[NodeId, float]:
        """The ranks of `nodes`, if they can be appended to `parent`; changes nothing."""
        order = check(nodes, self.states)
        self.frontier.refuse_deadlock(nodes, parent)
        return ranks(nodes, order, parent.rank)

    def _append(
        self, parent: NodeState, nodes: Sequence[Node], longest: Mapping[NodeId, float]
    ) -> None:
        scope = parent.node.id
        self.out.append(GraphGrew(scope, tuple(info(n, scope) for n in nodes), self.now))
        self.open += len(nodes)
        self._decide(self.frontier.add(nodes, longest, parent))

    def _decide(self, decided: Iterable[Decided]) -> None:
        for state, verdict in decided:
            if verdict.failure is None and not verdict.left_out:
                state.winners = verdict.winners if state.count is not None else None
                self._enqueue(state)
            elif verdict.left_out or state.count is None:
                self._finish(state, Outcome("skipped", None, verdict.failure, 0))
            else:
                self._give_up(state, verdict.error().failure())
            if state.node.join.cancel_rest:
                self._let_go(state)

    def _enqueue(self, state: NodeState) -> None:
        gate = state.parent.growth if state.parent is not None else None
        if gate is not None and state.node.id in gate.count.sources:
            if gate.free == 0:
                state.phase = Phase.QUEUED
                gate.queue.append(state)
                return
            gate.free -= 1
            state.gate = gate
        self.line_up(state)

    def line_up(self, state: NodeState) -> None:
        """Start `state` as soon as there is a slot."""
        state.phase = Phase.QUEUED
        if self._slots.take(state):
            self._ready.append(state)

    # -- works start and come back -----------------------------------------------------------

    def _start(self, state: NodeState) -> None:
        if state.phase is not Phase.QUEUED:
            self._slots.give(state)
            return
        policy = state.node.policy
        if policy.spends and (closed := self.ledger.closed(state)) is not None:
            self._slots.give(state)
            self._degrade(state, closed)
            return
        if policy.limit is not None and (account := self.ledger.open(state, self.now)):
            self.watch_seconds(account)
        state.attempt += 1
        if policy.timeout_s is not None:
            state.due_s = self.now + policy.timeout_s
            self.out.append(SetTimer(state, state.attempt, "timeout", policy.timeout_s))
        self.out.append(NodeStarted(state.node.id, state.attempt, self.now))
        self._run(state, state.node.work, inputs(state, self.states))

    def _run(self, state: NodeState, work: Any, argument: Any) -> None:
        state.phase = Phase.RUNNING
        state.epoch += 1
        self.out.append(Start(state, state.epoch, work, argument))

    def returned(self, state: NodeState, value: Any, cached: bool) -> None:
        """The work of `state` came back with a value, or with a request."""
        self._slots.give(state)
        if cached:
            state.via = "cache"
        if type(value) not in _REQUESTS:
            self._hold(state, value, None)
        elif type(value) is Grow:
            self._grow(state, value)
        elif type(value) is Ask:
            self._ask(state, value)
        else:
            if value.reason:
                self.out.append(NodeLogged(state.node.id, f"left out: {value.reason}", self.now))
            self._hold(state, value, None)

    def _grow(self, state: NodeState, grow: Grow) -> None:
        self._pause(state, Phase.WAITING)
        self.out.append(NodeWaiting(state.node.id, self.now))
        try:
            longest = self._checked(state, grow.nodes)
            check_growth(grow, state.node.id)
            growth = Growth(grow)
        except Exception as error:  # noqa: BLE001 - what a work returns may be anything
            self.attempt_failed(state, convert(error, state.node.id))
            return
        state.growth = growth
        self._append(state, grow.nodes, longest)
        self._decide(self.frontier.grew(state))
        verdict = growth.count.start()
        if verdict is not None:
            self._joined(state, growth, verdict)

    def _ask(self, state: NodeState, ask: Ask) -> None:
        self._pause(state, Phase.ASKING)
        state.resume = ask.then
        self.questions[state.node.id] = ask
        self.out.append(HumanAsked(state.node.id, ask.question, ask.schema, self.now))

    def _pause(self, state: NodeState, phase: Phase) -> None:
        state.phase = phase
        state.epoch += 1

    # -- children end ------------------------------------------------------------------------

    def _child_ended(self, parent: NodeState, child: NodeState) -> None:
        parent.open -= 1
        if parent.phase is Phase.ENDED or child.born != parent.attempt:
            return
        growth = parent.growth
        if growth is not None:
            if child.gate is growth:
                self._open_gate(growth)
            if not growth.decided and child.node.id in growth.count.sources:
                assert child.outcome is not None
                verdict = growth.count.arrive(child.node.id, child.outcome)
                if verdict is not None:
                    self._joined(parent, growth, verdict)
        if parent.open == 0 and parent.held is not None:
            self._release(parent, *parent.held)

    def _open_gate(self, growth: Growth) -> None:
        growth.free += 1
        while growth.queue and growth.free:
            following = growth.queue.popleft()
            if following.phase is Phase.QUEUED:
                growth.free -= 1
                following.gate = growth
                self.line_up(following)

    def _joined(self, state: NodeState, growth: Growth, verdict: Verdict) -> None:
        """The children of `state` are enough, or can never be."""
        growth.decided = True
        join = growth.grow.join
        if join.mode != "all" and verdict.failure is None:
            for child in growth.grow.nodes:
                self.states[child.id].tolerated = True
        if join.mode in _DECIDED_EARLY and state.open:
            reason = f"the join {join.mode!r} of {state.node.id} was decided without it"
            self.cancel(state.inside(), Cancelled(reason).failure())
        if verdict.left_out:
            self._finish(state, Outcome("skipped", attempts=state.attempt))
        elif verdict.failure is not None:
            self._hold(state, None, verdict.error())
        else:
            values = joined(verdict.winners, join, self.states)
            if growth.grow.then is None:
                self._hold(state, values, None)
            else:
                self._run(state, growth.grow.then, values)

    def _hold(self, state: NodeState, value: Any, error: WeftError | None) -> None:
        """End `state` so, but not before its children have ended."""
        if state.open:
            if state.phase is not Phase.WAITING:
                self.out.append(NodeWaiting(state.node.id, self.now))
            self._pause(state, Phase.WAITING)
            state.held = (value, error)
        else:
            self._release(state, value, error)

    def _release(self, state: NodeState, value: Any, error: WeftError | None) -> None:
        state.held = None
        if error is not None:
            self.attempt_failed(state, error)
        elif type(value) is Skip:
            self._finish(state, Outcome("skipped", attempts=state.attempt))
        else:
            end = Outcome("succeeded", value, state.cause, state.attempt, state.via)
            self._finish(state, end)

    def rest(self, state: NodeState, until: NodeState) -> None:
        """The work of `state` waits for the end of `until`, and holds no slot any more."""
        self.frontier.refuse_waiting(state, [until])
        before = [other for other in state.awaited or () if other.phase is not Phase.ENDED]
        state.awaited = [*before, until]
        self._slots.give(state)
        self.out.append(NodeWaiting(state.node.id, self.now))

    # -- nodes end ---------------------------------------------------------------------------

    def attempt_failed(self, state: NodeState, error: WeftError) -> None:
        """One attempt failed: try again, let something stand in, or give up."""
        self._slots.give(state)
        self.cancel(state.inside(), error.failure())
        self._clear(state)
        if state.account is not None:
            self.watch_seconds(state.account)
        state.growth = state.held = state.awaited = None
        retry = state.node.policy.retry
        if retry and error.retryable and not state.via and state.attempt < retry.attempts:
            delay = delay_s(retry, state.attempt, state.node.id, error, self._seed)
            self._pause(state, Phase.BACKOFF)
            failure = error.failure()
            self.out.append(NodeRetrying(state.node.id, state.attempt, delay, failure, self.now))
            self.out.append(SetTimer(state, state.epoch, "retry", delay))
        else:
            self._give_up(state, error.failure())

    def _give_up(self, state: NodeState, failure: Failure) -> None:
        policy = state.node.policy
        if policy.fallback is not None and not state.via:
            self._replace(state, policy.fallback, failure)
        elif policy.default is not MISSING:
            end = Outcome("succeeded", policy.default, failure, state.attempt, "default")
            self._finish(state, end)
        else:
            self._finish(state, Outcome("failed", None, failure, state.attempt, state.via))

    def _degrade(self, state: NodeState, account: Account) -> None:
        policy = state.node.policy
        failure = BudgetExceeded(f"budget reached: {account.reached}").failure()
        if policy.degrade is not None:
            self._replace(state, policy.degrade, failure)
        elif policy.default is not MISSING:
            end = Outcome("succeeded", policy.default, failure, state.attempt, "default")
            self._finish(state, end)
        else:
            self._finish(state, Outcome("skipped", None, failure, state.attempt))

    def _replace(self, state: NodeState, template: Node, failure: Failure) -> None:
        """Run `template` in the place of `state`, as its child."""
        stand_in = replace(template, id=inside(state.node.id, template.id))
        state.via = "fallback"
        state.cause = failure
        self.out.append(NodeRerouted(state.node.id, stand_in.id, failure, self.now))
        self._grow(state, Grow((stand_in,), (stand_in.id,), then=_only))

    def _finish(self, state: NodeState, outcome: Outcome) -> None:
        self._clear(state)
        state.phase = Phase.ENDED
        state.epoch += 1
        state.outcome = outcome
        self.open -= 1
        self.out.append(NodeFinished(state.node.id, outcome, self.now))
        self._ended.append(state)

    def _clear(self, state: NodeState) -> None:
        policy = state.node.policy
        timed = policy.timeout_s is not None or policy.limit is not None
        if timed or state.phase is Phase.BACKOFF:
            self.out.append(ClearTimers(state))
        if state.phase is Phase.ASKING:
            self.questions.pop(state.node.id, None)

    def answered(self, state: NodeState, answer: Any) -> None:
        """A person answered the question of `state`."""
        del self.questions[state.node.id]
        if state.resume is None:
            self._hold(state, answer, None)
        else:
            self._run(state, state.resume, answer)

    def watch_seconds(self, account: Account) -> None:
        """Set the timer of a budget of seconds, for what is left of them."""
        if account.budget.seconds is not None and account.reached is None:
            left = account.since_s + account.budget.seconds - self.now
            self.out.append(SetTimer(account.scope, 0, "budget", left))

    # -- nodes are cancelled -----------------------------------------------------------------

    def cancel(self, states: Iterable[NodeState], failure: Failure) -> None:
        """End `states`, which include what is inside them, as cancelled."""
        for state in states:
            if state.phase is Phase.ENDED:
                continue
            self._slots.give(state)
            self.stop(state)
            self._finish(state, Outcome("cancelled", None, failure, state.attempt))

    def stop(self, state: NodeState) -> None:
        """Stop the work of `state`, if it runs."""
        if state.phase is Phase.RUNNING:
            self.out.append(Stop(state))

    def _let_go(self, decided: NodeState) -> None:
        """Cancel the branches that `decided` no longer waits for and nobody else needs."""
        failure = Cancelled(f"{decided.node.id} was decided without it").failure()
        doubtful = self.frontier.sources(decided)
        while doubtful:
            state = doubtful.pop()
            if state.phase is Phase.ENDED or state.node.id in self._graph.keep:
                continue
            if not needed(state, besides=decided):
                state.tolerated = True
                self.cancel([*state.inside(), state], failure)
                doubtful += self.frontier.sources(state)

    def end_all(self, failure: Failure) -> None:
        """Cancel every node that has not ended."""
        self.cancel(reversed(list(self.states.values())), failure)
        self._ended.clear()
        self._ready.clear()


async def _only(_: Any, values: list[Any]) -> Any:
    return values[0] if values else Skip("what stands in for it was left out")
