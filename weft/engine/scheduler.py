"""Decides what happens next in a run: (state, signals, time) -> commands. No clock, I/O or tasks.

Signals of one turn are taken in the order given. The scheduler alone writes node states.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from weft.core.errors import (
    BudgetExceeded,
    Cancelled,
    DeadlineExceeded,
    Failure,
    JoinUnsatisfied,
    NodeTimeout,
    WeftError,
)
from weft.core.events import (
    BudgetReached,
    GraphGrew,
    HumanAnswered,
    HumanAsked,
    NodeFinished,
    NodeRerouted,
    NodeRetrying,
    NodeSpent,
    NodeStarted,
    NodeWaiting,
    Outcome,
)
from weft.core.ids import NodeId, inside
from weft.core.values import Usage
from weft.engine.backoff import delay_s
from weft.engine.checks import check, check_join
from weft.engine.commands import (
    Answered,
    CancelRequested,
    ClearTimers,
    Command,
    Fired,
    Raised,
    Returned,
    SetTimer,
    Signal,
    Start,
    Stop,
)
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
_UNDER_WAY = frozenset((Phase.RUNNING, Phase.WAITING, Phase.ASKING))


class Scheduler:
    """One run's decisions: note what happened, tell who waited for it, start whoever may start."""

    def __init__(self, graph: Graph, options: RunOptions) -> None:
        self.questions: dict[NodeId, Ask] = {}
        self.ended_by: Failure | None = None
        self.reasons: list[str] = []
        self.ledger = Ledger(options.limit, 0.0)
        self._graph = graph
        self._options = options
        self._frontier = Frontier()
        self._slots = Slots(options.max_concurrency, options.limits)
        self._open = 0
        self._now = 0.0
        self._out: list[Command] = []
        self._ready: deque[NodeState] = deque()
        self._ended: deque[NodeState] = deque()

    @property
    def states(self) -> dict[NodeId, NodeState]:
        """Every node of the run; read only."""
        return self._frontier.states

    @property
    def done(self) -> bool:
        """True once every node has its outcome."""
        return not self._open

    def begin(self) -> list[Command]:
        """The first commands of the run, at time 0."""
        if self._options.deadline_s is not None:
            self._out.append(SetTimer(None, 0, "deadline", self._options.deadline_s))
        if self.ledger.run is not None:
            self._watch_seconds(self.ledger.run)
        self._open = len(self._graph.nodes)
        self._decide(self._frontier.add(self._graph.nodes, self._graph.ranks, None))
        return self._settle()

    def advance(self, signals: Sequence[Signal], now_s: float) -> list[Command]:
        """Take note of `signals` in order; return what to do now."""
        self._now = now_s
        for signal in signals:
            if type(signal) is Returned:
                if signal.epoch == signal.state.epoch:
                    self._returned(signal.state, signal.value, signal.cached)
            elif type(signal) is Raised:
                if signal.epoch == signal.state.epoch:
                    self._attempt_failed(signal.state, signal.error)
            else:
                self._other(signal)
            self._tell()
        return self._settle()

    def append(self, parent: NodeState, nodes: Sequence[Node], now_s: float) -> list[Command]:
        """`parent`, which is running, adds `nodes`. Raises `BuildError`, and adds none then."""
        self._now = now_s
        self._add(parent, nodes)
        return self._settle()

    def spend(self, state: NodeState, usage: Usage, now_s: float) -> list[Command]:
        """`state` consumed `usage`."""
        self._now = now_s
        self._out.append(NodeSpent(state.node.id, usage, now_s))
        for account in self.ledger.charge(state, usage, now_s):
            self._budget_reached(account)
        return self._settle()

    def _settle(self) -> list[Command]:
        """Start whoever may start, until nothing moves; hand over the commands."""
        while True:
            self._tell()
            state = self._ready.popleft() if self._ready else self._slots.admit()
            if state is None:
                break
            self._start(state)
        commands, self._out = self._out, []
        return commands

    def _tell(self) -> None:
        """Tell everybody who waits about the nodes that have just ended."""
        while self._ended:
            state = self._ended.popleft()
            self._decide(self._frontier.ended(state))
            if state.parent is not None:
                self._child_ended(state.parent, state)

    # -- nodes become ready ------------------------------------------------------------------

    def _add(self, parent: NodeState, nodes: Sequence[Node]) -> None:
        order = check(nodes, self.states)
        scope = parent.node.id
        self._out.append(GraphGrew(scope, tuple(info(n, scope) for n in nodes), self._now))
        self._open += len(nodes)
        self._decide(self._frontier.add(nodes, ranks(nodes, order, parent.rank), parent))

    def _decide(self, decided: Iterable[Decided]) -> None:
        for state, verdict in decided:
            if verdict.failure is None and not verdict.left_out:
                state.winners = verdict.winners if state.count is not None else None
                self._enqueue(state)
            elif verdict.left_out or state.count is None:
                self._finish(state, Outcome("skipped", None, verdict.failure, 0))
            else:
                self._give_up(state, _unsatisfied(verdict).failure())
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
        self._line_up(state)

    def _line_up(self, state: NodeState) -> None:
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
        if policy.limit is not None and (account := self.ledger.open(state, self._now)):
            self._watch_seconds(account)
        state.attempt += 1
        if policy.timeout_s is not None:
            self._out.append(SetTimer(state, state.attempt, "timeout", policy.timeout_s))
        self._out.append(NodeStarted(state.node.id, state.attempt, self._now))
        self._run(state, state.node.work, inputs(state, self.states))

    def _run(self, state: NodeState, work: Any, argument: Any) -> None:
        state.phase = Phase.RUNNING
        state.epoch += 1
        self._out.append(Start(state, state.epoch, work, argument))

    def _returned(self, state: NodeState, value: Any, cached: bool) -> None:
        self._slots.give(state)
        if cached:
            state.via = "cache"
        if type(value) not in _REQUESTS:
            self._succeed(state, value)
        elif type(value) is Grow:
            self._grow(state, value)
        elif type(value) is Ask:
            self._ask(state, value)
        else:
            self._finish(state, Outcome("skipped", attempts=state.attempt))

    def _grow(self, state: NodeState, grow: Grow) -> None:
        self._pause(state, Phase.WAITING)
        self._out.append(NodeWaiting(state.node.id, self._now))
        try:
            check_join(grow.join, len(grow.results), state.node.id)
            growth = state.growth = Growth(grow)
            self._add(state, grow.nodes)
        except WeftError as error:
            self._attempt_failed(state, error)
            return
        self._decide(self._frontier.grew(state))
        verdict = growth.count.start()
        if verdict is not None:
            self._joined(state, growth, verdict)

    def _ask(self, state: NodeState, ask: Ask) -> None:
        self._pause(state, Phase.ASKING)
        state.resume = ask.then
        self.questions[state.node.id] = ask
        self._out.append(HumanAsked(state.node.id, ask.question, ask.schema, self._now))

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
                self._line_up(following)

    def _joined(self, state: NodeState, growth: Growth, verdict: Verdict) -> None:
        """The children of `state` are enough, or can never be."""
        growth.decided = True
        join = growth.grow.join
        if join.mode in _DECIDED_EARLY and state.open:
            reason = f"the join {join.mode!r} of {state.node.id} was decided without it"
            self._cancel(state.inside(), Cancelled(reason).failure())
        if verdict.left_out:
            self._finish(state, Outcome("skipped", attempts=state.attempt))
        elif verdict.failure is not None:
            self._hold(state, None, _unsatisfied(verdict))
        else:
            values = joined(verdict.winners, join, self.states)
            if growth.grow.then is None:
                self._succeed(state, values)
            else:
                self._run(state, growth.grow.then, values)

    def _hold(self, state: NodeState, value: Any, error: WeftError | None) -> None:
        """End `state` so, but not before its children have ended."""
        if state.open:
            self._pause(state, Phase.WAITING)
            state.held = (value, error)
        else:
            self._release(state, value, error)

    def _release(self, state: NodeState, value: Any, error: WeftError | None) -> None:
        state.held = None
        if error is not None:
            self._attempt_failed(state, error)
        else:
            end = Outcome("succeeded", value, state.cause, state.attempt, state.via)
            self._finish(state, end)

    # -- nodes end ---------------------------------------------------------------------------

    def _succeed(self, state: NodeState, value: Any) -> None:
        self._hold(state, value, None)

    def _attempt_failed(self, state: NodeState, error: WeftError) -> None:
        self._slots.give(state)
        self._cancel(state.inside(), error.failure())
        self._clear(state)
        state.growth = None
        retry = state.node.policy.retry
        if retry and error.retryable and not state.via and state.attempt < retry.attempts:
            delay = delay_s(retry, state.attempt, state.node.id, error, self._options.seed)
            self._pause(state, Phase.BACKOFF)
            failure = error.failure()
            self._out.append(NodeRetrying(state.node.id, state.attempt, delay, failure, self._now))
            self._out.append(SetTimer(state, state.epoch, "retry", delay))
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
            self._finish(state, Outcome("succeeded", policy.default, failure, 0, "default"))
        else:
            self._finish(state, Outcome("skipped", None, failure, 0))

    def _replace(self, state: NodeState, template: Node, failure: Failure) -> None:
        """Run `template` in the place of `state`, as its child."""
        stand_in = replace(template, id=inside(state.node.id, template.id))
        state.via = "fallback"
        state.cause = failure
        self._out.append(NodeRerouted(state.node.id, stand_in.id, failure, self._now))
        self._grow(state, Grow((stand_in,), (stand_in.id,), then=_only))

    def _finish(self, state: NodeState, outcome: Outcome) -> None:
        self._clear(state)
        state.phase = Phase.ENDED
        state.epoch += 1
        state.outcome = outcome
        self._open -= 1
        self._out.append(NodeFinished(state.node.id, outcome, self._now))
        self._ended.append(state)

    def _clear(self, state: NodeState) -> None:
        if state.node.policy.timeout_s is not None or state.phase is Phase.BACKOFF:
            self._out.append(ClearTimers(state))
        if state.phase is Phase.ASKING:
            self.questions.pop(state.node.id, None)

    # -- nodes are cancelled -----------------------------------------------------------------

    def _cancel(self, states: Iterable[NodeState], failure: Failure) -> None:
        for state in states:
            if state.phase is Phase.ENDED:
                continue
            self._slots.give(state)
            self._stop(state)
            self._finish(state, Outcome("cancelled", None, failure, state.attempt))

    def _stop(self, state: NodeState) -> None:
        if state.phase is Phase.RUNNING:
            self._out.append(Stop(state))

    def _let_go(self, decided: NodeState) -> None:
        """Cancel the branches that `decided` no longer waits for and nobody else needs."""
        failure = Cancelled(f"{decided.node.id} was decided without it").failure()
        doubtful = self._frontier.sources(decided)
        while doubtful:
            state = doubtful.pop()
            if state.phase is Phase.ENDED or state.node.id in self._graph.keep:
                continue
            if not needed(state, besides=decided):
                self._cancel([*state.inside(), state], failure)
                doubtful += self._frontier.sources(state)

    def _end_run(self, failure: Failure) -> None:
        self.ended_by = self.ended_by or failure
        self._cancel(reversed(list(self.states.values())), failure)
        self._ended.clear()
        self._ready.clear()

    # -- timers, budgets and people ----------------------------------------------------------

    def _other(self, signal: Signal) -> None:
        match signal:
            case Fired(state=None, kind="deadline"):
                passed = f"the deadline of {self._options.deadline_s:g} s passed"
                self._end_run(DeadlineExceeded(passed).failure())
            case Fired(state=None) if self.ledger.run is not None:
                self._seconds_up(self.ledger.run)
            case Fired(state=state, epoch=epoch, kind=kind) if state is not None:
                self._timer(state, epoch, kind)
            case CancelRequested(reason=reason, node=None):
                self._end_run(Cancelled(reason).failure())
            case CancelRequested(reason=reason, node=node) if node in self.states:
                state = self.states[node]
                self._cancel([*state.inside(), state], Cancelled(reason).failure())
            case Answered(node=node, value=value) if node in self.questions:
                self._answered(self.states[node], value)

    def _timer(self, state: NodeState, epoch: int, kind: str) -> None:
        if kind == "retry" and epoch == state.epoch:
            self._line_up(state)
        elif kind == "timeout" and epoch == state.attempt and state.phase in _UNDER_WAY:
            self._stop(state)
            limit = f"no result within {state.node.policy.timeout_s:g} s"
            self._attempt_failed(state, NodeTimeout(limit))
        elif kind == "budget" and state.account is not None and state.phase is not Phase.ENDED:
            self._seconds_up(state.account)

    def _watch_seconds(self, account: Account) -> None:
        if account.budget.seconds is not None:
            self._out.append(SetTimer(account.scope, 0, "budget", account.budget.seconds))

    def _seconds_up(self, account: Account) -> None:
        if account.reached is None and self.ledger.settle(account, self._now):
            self._budget_reached(account)

    def _budget_reached(self, account: Account) -> None:
        degrade = account.limit.on_reached == "degrade"
        scope, reason = account.scope, account.reached or "spent"
        owner = scope.node.id if scope is not None else None
        self.reasons.append(f"the budget of {owner or 'the run'} is reached: {reason}")
        self._out.append(BudgetReached(owner, reason, degrade, self._now))
        if degrade:
            return
        error = BudgetExceeded(f"budget reached: {reason}", node=owner)
        if scope is None:
            self._end_run(error.failure())
        elif scope.phase in _UNDER_WAY:
            self._stop(scope)
            self._attempt_failed(scope, error)

    def _answered(self, state: NodeState, value: Any) -> None:
        del self.questions[state.node.id]
        self._out.append(HumanAnswered(state.node.id, self._now))
        if state.resume is None:
            self._succeed(state, value)
        else:
            self._run(state, state.resume, value)


async def _only(_: Any, values: list[Any]) -> Any:
    return values[0]


def _unsatisfied(verdict: Verdict) -> JoinUnsatisfied:
    assert verdict.failure is not None
    return JoinUnsatisfied(verdict.failure.message, retryable=verdict.failure.retryable)
