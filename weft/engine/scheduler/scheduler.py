"""Decides what happens next in a run: (state, signals, time) -> commands. No clock, I/O or tasks.

Signals of one step are taken in the given order. With a slice, one call does a limited amount;
signals of the run itself, such as its deadline, go before the work that is left.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from itertools import islice

from weft.core.errors import (
    BudgetExceeded,
    Cancelled,
    DeadlineExceeded,
    Failure,
    NodeLimit,
    NodeTimeout,
)
from weft.core.events import BudgetReached, NodeSpent
from weft.core.ids import NodeId
from weft.core.values import Usage
from weft.engine.graph.graph import Graph, RunOptions
from weft.engine.graph.node import AskHuman, Node
from weft.engine.graph.slices import UNLIMITED
from weft.engine.scheduler.commands import (
    Answered,
    CancelRequested,
    Command,
    JournalLost,
    Raised,
    RestoreResult,
    Returned,
    SetTimer,
    Signal,
    TimerFired,
    declared_order,
)
from weft.engine.scheduler.effects import EffectLedger
from weft.engine.scheduler.frontier import Frontier
from weft.engine.scheduler.lifecycle import NodeLifecycle
from weft.engine.scheduler.policies import UsageLedger
from weft.engine.scheduler.resume_state import ResumeState
from weft.engine.scheduler.state import Account, NodePhase, NodeState


class CriticalPathEstimate:
    """The remaining critical path and work of one run. The run may grow between two calls."""

    def __init__(self, frontier: Frontier, ledger: UsageLedger) -> None:
        self._frontier = frontier
        self._states = frontier.states
        self._ledger = ledger
        self._longest: list[tuple[float, int, NodeState]] = []
        self._seen = 0

    def remaining(self) -> float:
        """The heaviest path from any node that has not ended to a sink, in weights."""
        longest, grown = self._longest, len(self._states) - self._seen
        if grown > 0:
            news = islice(reversed(self._states.values()), grown)
            added = [(-state.rank, state.order, state) for state in news]
            if grown < len(longest) // 8:  # a large map expands a few items at a time
                for each in added:
                    heappush(longest, each)
            else:
                longest += added
                heapify(longest)
            self._seen = len(self._states)
        while longest and longest[0][2].phase is NodePhase.ENDED:
            heappop(longest)
        return -longest[0][0] if longest else 0.0

    def work(self) -> float:
        """The weight of all spending nodes that have not ended, without future expansions."""
        return max(0.0, self._frontier.work)

    def time_left(self, state: NodeState, now_s: float, deadline_s: float | None) -> float | None:
        """Seconds until something ends `state`: a timeout, a budget or the run's deadline."""
        ends = [] if deadline_s is None else [deadline_s]
        ends += (scope.due_s for scope in state.scopes() if scope.due_s is not None)
        for account in self._ledger.accounts(state):
            seconds, degrades = account.budget.seconds, account.limit.on_reached == "degrade"
            if seconds is not None and not degrades:
                ends.append(account.since_s + seconds)
        return max(0.0, min(ends) - now_s) if ends else None


_NO_USAGE = Usage()
_UNDER_WAY = frozenset((NodePhase.RUNNING, NodePhase.WAITING, NodePhase.ASKING))


class Scheduler:
    """The decisions of one run: note what happened, pass it on, start the nodes that may start.

    `slice_nodes`: the most nodes that one step takes in or ends, and the most that it starts. While
    the scheduler is `busy`, `advance` continues with the rest, even without a signal.

    Raises: `NodeLimit` for a graph that has more nodes than a run may have.
    """

    def __init__(
        self,
        graph: Graph,
        options: RunOptions,
        recall: ResumeState | None = None,
        effects: EffectLedger | None = None,
        *,
        slice_nodes: float = UNLIMITED,
    ) -> None:
        self.ended_by: Failure | None = None
        self.reasons: list[str] = []
        if options.max_nodes is not None and len(graph.nodes) > options.max_nodes:
            few = f"{graph.name} has {len(graph.nodes):,} nodes, and a run {options.max_nodes:,}"
            raise NodeLimit(few, hint="raise the limit (run: {max_nodes: N})")
        self._options = options
        self._slice = slice_nodes
        self._signals: deque[Signal] = deque()
        self._nodes = NodeLifecycle(graph, options, recall, effects or EffectLedger())
        self._estimate = CriticalPathEstimate(self._nodes.frontier, self._nodes.ledger)

    @property
    def states(self) -> dict[NodeId, NodeState]:
        """Every node of the run; read only."""
        return self._nodes.states

    @property
    def questions(self) -> dict[NodeId, AskHuman]:
        """The nodes that wait for a person; read only."""
        return self._nodes.questions

    def has_asked(self, node: NodeId, question: AskHuman) -> bool:
        """Whether the record has the question as the first of `node`, answered or open."""
        return self._nodes.has_asked(node, question)

    @property
    def usage(self) -> Usage:
        """The consumption so far."""
        return self._nodes.ledger.total

    @property
    def done(self) -> bool:
        """True once every node has its outcome."""
        return not self._nodes.open

    @property
    def busy(self) -> bool:
        """True while `advance` has work left, even without a signal."""
        return bool(self._signals) or self._nodes.busy

    def begin(self, now_s: float = 0.0, *, quiet: bool = False) -> list[Command]:
        """The first commands of the run, or of the part that begins `now_s` into it.

        `quiet`: without `NodeStarted`, `GraphGrew` and `NodeFinished`, except for the end of a
        node that another waits for.
        """
        nodes = self._nodes
        nodes.now, nodes.quiet = now_s, quiet
        nodes.renew(self._slice)
        if self._options.deadline_s is not None:
            nodes.out.append(SetTimer(None, 0, "deadline", self._options.deadline_s - now_s))
        if nodes.ledger.run is not None:
            nodes.watch_seconds(nodes.ledger.run)
        nodes.begin()
        return nodes.settle()

    def advance(self, signals: Sequence[Signal], now_s: float) -> list[Command]:
        """Apply `signals` in order; return the commands that follow."""
        nodes = self._nodes
        nodes.now = now_s
        nodes.renew(self._slice)
        ahead = self._signals
        behind = bool(ahead) or nodes.busy
        for signal in signals:
            if type(signal) is Returned or (
                declared_order(signal) >= 0 and not (behind and _ends_waiting(signal))
            ):
                ahead.append(signal)
            elif not nodes.run_ended:
                self._interrupt(signal)
        while ahead and not nodes.run_ended and nodes.take():
            signal = ahead.popleft()
            if type(signal) is Returned:
                state = signal.state
                if signal.epoch == state.epoch:
                    nodes.returned(state, signal.value, signal.cached)
            elif type(signal) is Raised:
                if signal.epoch == signal.state.epoch:
                    nodes.attempt_failed(signal.state, signal.error)
            else:
                self._interrupt(signal)
        if nodes.run_ended:
            ahead.clear()
        return nodes.settle()

    def append(self, parent: NodeState, nodes: Sequence[Node], now_s: float) -> list[Command]:
        """Add `nodes` to `parent`, which is running.

        Raises: `BuildError` or `NodeLimit`, and then adds none.
        """
        self._nodes.now = now_s
        self._nodes.add(parent, nodes)
        return self._nodes.settle()

    def check_room(self, parent: NodeState, count: int) -> None:
        """Raise `NodeLimit` when `parent` may not append `count` nodes."""
        self._nodes.check_room(parent, count)

    def spend(self, state: NodeState, usage: Usage, now_s: float) -> list[Command]:
        """Charge `usage` to `state`."""
        nodes = self._nodes
        nodes.now = now_s
        nodes.out.append(NodeSpent(state.node.id, usage, now_s))
        self._charge(state, usage, now_s)
        return nodes.settle()

    def restored(self, results: Sequence[RestoreResult], now_s: float) -> list[Command]:
        """Start nodes, or end them by their history."""
        nodes = self._nodes
        nodes.now = now_s
        for each in results:
            if nodes.run_ended:
                break
            usage = nodes.restored(each)
            if usage is not None and usage != _NO_USAGE:
                nodes.out.append(NodeSpent(each.state.node.id, usage, now_s, recalled=True))
                self._charge(each.state, usage, now_s)
            nodes.propagate()
        return nodes.settle()

    def wait_for(self, state: NodeState, until: NodeState, now_s: float) -> list[Command]:
        """Let `state`, which is running, wait without a slot for the end of `until`.

        Raises: `CycleError` when `until` cannot end before `state`.
        """
        self._nodes.now = now_s
        self._nodes.wait_for(state, until)
        return self._nodes.settle()

    def tokens_left(self, state: NodeState) -> int | None:
        """The smallest token allowance left for `state`; None when there is no limit."""
        return self._nodes.ledger.tokens_left(state)

    def remaining(self) -> tuple[float, float]:
        """The run's remaining critical path, and the work left of spending nodes, in weights."""
        return self._estimate.remaining(), self._estimate.work()

    def time_left(self, state: NodeState, now_s: float) -> float | None:
        """Seconds until a timeout, a budget or the deadline ends `state`; None: nothing does."""
        return self._estimate.time_left(state, now_s, self._options.deadline_s)

    def _interrupt(self, signal: Signal) -> None:
        """Apply a timer, a cancellation or an answer."""
        match signal:
            case TimerFired(state=None, kind="deadline"):
                passed = f"the deadline of {self._options.deadline_s:g} s passed"
                self._end_run(DeadlineExceeded(passed).failure())
            case TimerFired(state=None) if self._nodes.ledger.run is not None:
                self._seconds_up(self._nodes.ledger.run)
            case TimerFired(state=state, epoch=epoch, kind=kind) if state is not None:
                self._timer(state, epoch, kind)
            case JournalLost(failure=failure):
                self._end_run(failure)
            case CancelRequested(reason=reason, node=None):
                self._end_run(Cancelled(reason).failure())
            case CancelRequested(reason=reason, node=node) if node in self.states:
                state = self.states[node]
                failure = Cancelled(reason).failure()
                # A tolerated node is cancelled by the node that appended it.
                by_name = not state.tolerated
                self._nodes.cancel([*state.inside(), state], failure, by_name=by_name)
            case Answered(node=node, value=value) if node in self.questions:
                self._nodes.answered(self.states[node], value)

    def _charge(self, state: NodeState, usage: Usage, now_s: float) -> None:
        for account in self._nodes.ledger.charge(state, usage, now_s):
            self._budget_reached(account)

    def _timer(self, state: NodeState, epoch: int, kind: str) -> None:
        if kind == "retry" and epoch == state.epoch:
            self._nodes.queue_for_slot(state)
        elif kind == "timeout" and epoch == state.attempt and _in_attempt(state):
            limit = f"no result within {state.node.policy.timeout_s:g} s"
            state.timed_out = state.attempt
            self._nodes.limit_reached(state, NodeTimeout(limit))
        elif kind == "budget" and state.account is not None and state.phase is not NodePhase.ENDED:
            self._seconds_up(state.account)

    def _seconds_up(self, account: Account) -> None:
        if account.reached is None:
            self._nodes.ledger.time_up(account)
            self._budget_reached(account)

    def _budget_reached(self, account: Account) -> None:
        degrade = account.limit.on_reached == "degrade"
        scope, reason = account.scope, account.reached or "spent"
        owner = scope.node.id if scope is not None else None
        self.reasons.append(f"the budget of {owner or 'the run'} is reached: {reason}")
        self._nodes.out.append(BudgetReached(owner, reason, degrade, self._nodes.now))
        if degrade or self._nodes.run_ended:
            return
        error = BudgetExceeded(f"budget reached: {reason}", node=owner)
        if scope is None:
            self._end_run(error.failure())
        elif scope.phase is not NodePhase.ENDED:
            self._nodes.limit_reached(scope, error)

    def _end_run(self, failure: Failure) -> None:
        if self.done or self._nodes.run_ended:
            return
        self.ended_by = self.ended_by or failure
        self._nodes.end_all(failure)


def _ends_waiting(signal: Signal) -> bool:
    """Whether that is a timer of a node that waits for nodes inside it."""
    return (
        isinstance(signal, TimerFired)
        and signal.state is not None
        and signal.state.phase is NodePhase.WAITING
    )


def _in_attempt(state: NodeState) -> bool:
    """Whether the node's own attempt is under way, and not a substitute."""
    return state.phase in _UNDER_WAY and not state.via
