"""The transitions of a node: ready, started, expanding, asking, joined, failed, cancelled, ended.

Commands and events accumulate until `settle` returns them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from weft.core.errors import Cancelled, EffectUnknown, Failure, WeftError
from weft.core.events import (
    HumanAnswered,
    HumanAsked,
    JoinDecided,
    NodeFinished,
    NodeLogged,
    NodeRerouted,
    NodeRetrying,
    NodeStarted,
    NodeWaiting,
    Outcome,
)
from weft.core.ids import NodeId
from weft.core.values import Usage, constructor
from weft.engine.graph.graph import Graph, RunOptions
from weft.engine.graph.join import DECIDED_EARLY, Verdict
from weft.engine.graph.node import MISSING, AskHuman, Expand, Inputs, Join, Node, Partial, Skip
from weft.engine.graph.slices import SLICE, UNLIMITED
from weft.engine.scheduler import policies
from weft.engine.scheduler.commands import (
    ClearTimers,
    Command,
    Restore,
    RestoreResult,
    SetTimer,
    Start,
)
from weft.engine.scheduler.effects import EffectLedger
from weft.engine.scheduler.expansion import NodeExpansion
from weft.engine.scheduler.frontier import READY
from weft.engine.scheduler.inputs import digest, joined_values, node_inputs
from weft.engine.scheduler.policies import UsageLedger, delay_s, is_retried
from weft.engine.scheduler.resume_state import NO_HISTORY, ResumeState
from weft.engine.scheduler.state import Account, ExpandState, NodePhase, NodeState

_node_started, _outcome = constructor(NodeStarted), constructor(Outcome)
_REQUESTS = frozenset((Expand, AskHuman, Skip))
_QUEUED, _RUNNING = NodePhase.QUEUED, NodePhase.RUNNING


class NodeLifecycle(NodeExpansion):
    """The nodes of one run. The scheduler sets `now` before each call.

    With a `recall`, the history of each node is read before its first start. The next step does
    what one leaves, see `renew`; `busy` says, after `settle`, whether any work is left.
    """

    def __init__(
        self, graph: Graph, options: RunOptions, recall: ResumeState | None, effects: EffectLedger
    ) -> None:
        super().__init__(graph, options, recall, effects)
        self.ledger = UsageLedger(options.limit, 0.0)
        self._seed = options.seed
        self._deadline_s = options.deadline_s
        self._questions_asked: Counter[tuple[NodeId, int]] = Counter()
        self._starts_left = UNLIMITED
        self.busy = False

    def begin(self) -> None:
        """Take in the nodes of the graph."""
        self.frontier.add(self._graph.nodes, self._graph.ranks, None)
        self._cancel_early(self._graph.nodes)

    def renew(self, allowance: float = SLICE) -> None:
        """Begin a step: it may take in or end `allowance` nodes, and start as many."""
        self._left = self._starts_left = allowance

    def take(self) -> bool:
        """Propagate ended nodes, and count a signal. False when this step may do no more."""
        if (self._ended or self._expansions) and not self.propagate():
            return False
        self._left -= 1
        return self._left >= 0

    def settle(self) -> list[Command]:
        """Start the nodes that may start, until nothing changes; return the commands."""
        admission = self._admission
        ready, admit, limited = admission.ready, admission.admit, admission.limited
        cut_short = False
        if self.run_ended:
            self.end_some()
        while not self.run_ended:
            if self._ended or self._expansions:
                self.propagate()
            if self._starts_left <= 0:
                cut_short = True
                break
            if (state := ready.popleft() if ready else admit() if limited else None) is None:
                break
            self._starts_left -= 1
            if self._recall is None or state.attempt or state.phase is not _QUEUED:
                self._start(state)
            elif self._recall is NO_HISTORY:  # its digest is for the next part of the run
                argument = node_inputs(state, self.states)
                state.digest = digest(state, argument, self.states, self.texts)
                self._start(state, argument, state.digest)
            else:
                self.out.append(Restore(state, node_inputs(state, self.states)))
        left = cut_short or self._expansions or self._ended
        self.busy = bool(self.open if self.run_ended else left)
        commands, self.out = self.out, []
        return commands

    def propagate(self) -> bool:
        """Expand, and pass on the outcomes of ended nodes. Whether that is complete."""
        expansions, ended = self._expansions, self._ended
        while (expansions or ended) and self._left > 0:
            if expansions:
                self._expand_on()
                continue
            self._left -= 1
            state = ended.popleft()
            self.frontier.ended(state)
            if state.parent is not None:
                self._child_ended(state.parent, state)
        return not expansions and not ended

    # -- nodes become ready ------------------------------------------------------------------

    def _decide(self, state: NodeState, verdict: Verdict) -> None:
        if verdict is READY:  # by far the most
            self._admission.enqueue(state)
        elif verdict.failure is None and not verdict.left_out:
            if state.count is not None:
                state.winners = verdict.winners
                self._emit_winners(state, state.node.join, verdict)
            self._admission.enqueue(state)
        elif verdict.left_out or state.count is None:
            self._finish(state, Outcome("skipped", None, verdict.failure, 0))
        else:
            self._give_up(state, verdict.error().failure())
        if state.node.join.cancel_rest:
            self._cancel_unneeded(state)

    # -- node functions start and return -----------------------------------------------------

    def _emit_winners(self, state: NodeState, join: Join, verdict: Verdict) -> None:
        if join.mode in DECIDED_EARLY:
            self.out.append(JoinDecided(state.node.id, verdict.winners, self.now))

    def queue_for_slot(self, state: NodeState) -> None:
        """Start `state` as soon as there is a slot."""
        self._admission.queue_for_slot(state)

    def restored(self, result: RestoreResult) -> Usage | None:
        """Start a node, or end it by its history.

        Returns: the usage to charge for work that is not done again.
        """
        state, argument, digest, known = result
        if known is None or state.phase is not NodePhase.QUEUED:
            self._start(state, argument, digest)
            return None
        if known.outcome is not None and not known.whole and state.watchers:
            self._start(state, argument, digest)
            return None
        self.frontier.restore(known.inside)
        if known.outcome is not None:
            self._end_as_before(state, known.outcome, digest, by_name=known.by_name)
        elif known.gave_up is not None:
            state.attempt = known.failed_attempts
            self._admission.give(state)
            self._give_up(state, known.gave_up)
        else:
            state.attempt = known.failed_attempts
            self._start(state, argument, digest)
        return known.usage

    def _end_as_before(
        self, state: NodeState, outcome: Outcome, digest: str = "", *, by_name: bool
    ) -> None:
        """End `state` with its outcome in an earlier part."""
        self._admission.give(state)
        state.attempt, state.via, state.by_name = outcome.attempts, outcome.via, by_name
        # Other cancelled nodes are restored only where a join or a node did without them.
        state.tolerated = outcome.status == "cancelled" and not by_name
        node, now_s = state.node.id, self.now
        self._finish(
            state, outcome, NodeFinished(node, outcome, now_s, True, digest, by_name=by_name)
        )

    def _start(self, state: NodeState, argument: Inputs | None = None, digest: str = "") -> None:
        if state.phase is not _QUEUED:
            self._admission.give(state)
            return
        node = state.node
        policy = node.policy
        ledger = self.ledger
        if policy.spends and ledger.reached and (closed := ledger.closed(state)) is not None:
            self._admission.give(state)
            failure = policies.spent(closed)
            instead = None if self._effects.undecided_in(state.node.id) else policy.degrade
            self._settle_for(state, policies.for_budget(state, failure, instead), failure)
            return
        if policy.limit is not None and (account := ledger.open(state, self.now)):
            self.watch_seconds(account)
        state.attempt += 1
        if policy.timeout_s is not None:
            state.due_s = self.now + policy.timeout_s
            self.out.append(SetTimer(state, state.attempt, "timeout", policy.timeout_s))
        if not self.quiet:
            self.out.append(_node_started(node.id, state.attempt, self.now, digest))
        if argument is None:
            argument = node_inputs(state, self.states)
        self._run(state, node.work, argument)

    def _run(self, state: NodeState, work: Any, argument: Any) -> None:
        state.phase = _RUNNING
        state.epoch += 1
        self.out.append(Start(state, state.epoch, work, argument))

    def returned(self, state: NodeState, value: Any, cached: bool) -> None:
        """Continue `state` with what its node function returned: a value, or a request."""
        if state.slotted:
            self._admission.give(state)
        if cached:
            state.via = "cache"
        kind = type(value)
        if kind not in _REQUESTS:
            (self._end_after_children if state.open else self._end)(state, value, None)
        elif kind is Expand:
            self._wait_for_expansion(state, value)
        elif kind is AskHuman:
            self._ask(state, value)
        else:
            if value.reason:
                self.out.append(NodeLogged(state.node.id, f"left out: {value.reason}", self.now))
            self._end_after_children(state, value, None)

    def _wait_for_expansion(self, state: NodeState, grow: Expand) -> None:
        self._pause(state, NodePhase.WAITING)
        self.out.append(NodeWaiting(state.node.id, self.now))
        self._begin_expansion(state, grow)

    def _ask(self, state: NodeState, ask: AskHuman) -> None:
        self._pause(state, NodePhase.ASKING)
        state.resume = ask.then
        node = state.node.id
        self.questions[node] = ask
        recalled = False
        if self._recall is not None:
            number = self._questions_asked[node, state.attempt]
            self._questions_asked[node, state.attempt] += 1
            if (known := self._recall.answer(node, state.attempt, number)) is not None:
                self.answered(state, known.value, recalled=True)
                return
            which = (node, state.attempt, number)
            recalled = self._recall.asks(*which, ask.question, ask.schema)
        self._suspend(state)
        about = ask.tool, ask.arguments
        self.out.append(HumanAsked(node, ask.question, ask.schema, self.now, recalled, *about))

    def has_asked(self, node: NodeId, question: AskHuman) -> bool:
        """Whether the record has the question as the first of `node`, answered or open."""
        if self._recall is None:
            return False
        answered = self._recall.answer(node, 1, 0) is not None
        return answered or self._recall.asks(node, 1, 0, question.question, question.schema)

    def _pause(self, state: NodeState, phase: NodePhase) -> None:
        state.phase = phase
        state.epoch += 1

    # -- children end ------------------------------------------------------------------------

    def _child_ended(self, parent: NodeState, child: NodeState) -> None:
        parent.open -= 1
        if parent.phase is NodePhase.ENDED or child.born != parent.attempt:
            return
        growth = parent.growth
        if growth is not None:
            if child.gate is growth:
                self._admission.open_gate(growth)
            if not growth.decided and child.node.id in growth.count.sources:
                assert child.outcome is not None
                verdict = growth.count.arrive(child.node.id, child.outcome)
                if verdict is not None:
                    self._joined(parent, growth, verdict)
        if (
            parent.phase is NodePhase.RUNNING
            and (unknown := self._unknown_inside(parent)) is not None
        ):
            self._end_unknown(parent, unknown)
        if parent.open == 0 and parent.pending_end is not None:
            self._end(parent, *parent.pending_end)

    def _joined(self, state: NodeState, growth: ExpandState, verdict: Verdict) -> None:
        """Continue `state`: its children are enough, or can never be."""
        growth.decided = True
        join = growth.grow.join
        if verdict.winners:
            self._emit_winners(state, join, verdict)
        if join.mode != "all" and verdict.failure is None:
            for child in growth.grow.nodes:
                self.states[child.id].tolerated = True
        if join.mode in DECIDED_EARLY and state.open:
            reason = f"the join {join.mode!r} of {state.node.id} was decided without it"
            self.cancel(state.inside(), Cancelled(reason).failure())
        if verdict.left_out:
            self._finish(state, Outcome("skipped", attempts=state.attempt))
        elif verdict.failure is not None:
            self._end_after_children(state, None, verdict.error())
        else:
            values = joined_values(verdict.winners, join, self.states)
            if growth.grow.then is None:
                self._end_after_children(state, values, None)
            else:
                self._run(state, growth.grow.then, values)

    def _end_after_children(self, state: NodeState, value: Any, error: WeftError | None) -> None:
        """End `state` with `value` or `error`, once its children have ended."""
        if state.open:
            if state.phase is not NodePhase.WAITING:
                self.out.append(NodeWaiting(state.node.id, self.now))
            self._pause(state, NodePhase.WAITING)
            state.pending_end = (value, error)
        else:
            self._end(state, value, error)

    def _end(self, state: NodeState, value: Any, error: WeftError | None) -> None:
        state.pending_end = None
        if error is not None:
            self.attempt_failed(state, error)
        elif type(value) is Skip:
            self._finish(state, Outcome("skipped", attempts=state.attempt))
        else:
            missing, via = state.cause, state.via
            if type(value) is Partial:
                value, missing = value.value, state.cause or value.missing
            joins = state.count is not None or state.growth is not None
            if joins and missing is None and (lost := state.lost) is not None:
                missing, via = lost
            self._finish(state, _outcome("succeeded", value, missing, state.attempt, via))

    def wait_for(self, state: NodeState, until: NodeState) -> None:
        """Let the node function of `state` wait, without a slot, for the end of `until`."""
        self.frontier.refuse_waiting(state, [until])
        before = [other for other in state.awaited or () if other.phase is not NodePhase.ENDED]
        state.awaited = [*before, until]
        until.observed = True
        self._admission.give(state)
        self.out.append(NodeWaiting(state.node.id, self.now))

    # -- nodes end ---------------------------------------------------------------------------

    def limit_reached(self, state: NodeState, error: WeftError) -> None:
        """End an attempt whose budget or time is over: with what is finished, where nothing else
        is to follow, or as failed."""
        self.stop(state)
        policy = state.node.policy
        retry, last = policy.retry, policy.fallback is None and policy.default is MISSING
        last = last and (
            retry is None or state.attempt >= retry.attempts or not is_retried(retry, error)
        )
        if not last or not self.end_limited(state, error.failure()):
            self.attempt_failed(state, error)

    def attempt_failed(self, state: NodeState, error: WeftError) -> None:
        """End one attempt: retry, replace the node, or give up."""
        self._admission.give(state)
        error = self._judged(state, error)
        self.cancel(state.inside(), error.failure())
        self._clear(state)
        if state.account is not None:
            self.watch_seconds(state.account)
        state.growth = state.pending_end = state.awaited = None
        retry = state.node.policy.retry
        if (
            retry is None
            or state.via
            or state.attempt >= retry.attempts
            or not is_retried(retry, error)
        ):
            self._give_up(state, error.failure())
        elif self._too_late(
            state, delay := delay_s(retry, state.attempt, state.node.id, error, self._seed)
        ):
            text = f"not tried again: it would wait {delay:.3g} s, until after its time limit"
            self.out.append(NodeLogged(state.node.id, text, self.now))
            self._give_up(state, error.failure())
        else:
            self._pause(state, NodePhase.BACKOFF)
            failure = error.failure()
            self.out.append(NodeRetrying(state.node.id, state.attempt, delay, failure, self.now))
            self.out.append(SetTimer(state, state.epoch, "retry", delay))

    def _too_late(self, state: NodeState, delay: float) -> bool:
        """Whether the run, or a node around `state`, has its time limit before another attempt."""
        ends = [] if self._deadline_s is None else [self._deadline_s]
        scopes = () if state.parent is None else state.parent.scopes()
        ends += [scope.due_s for scope in scopes if scope.due_s is not None]
        return bool(ends) and self.now + delay >= min(ends)

    # -- effects -----------------------------------------------------------------------------

    def _end_unknown(self, state: NodeState, error: EffectUnknown) -> None:
        """End `state`, which decides what to call next, once its calls under way have ended."""
        self.stop(state)
        self._admission.give(state)
        self.cancel(self._idle(state), error.failure())
        self._end_after_children(state, None, error)

    def _give_up(self, state: NodeState, failure: Failure) -> None:
        self._settle_for(state, policies.for_failure(state, failure), failure)

    def _settle_for(self, state: NodeState, instead: Node | Outcome, failure: Failure) -> None:
        """End `state`, or run the node `instead` in its place, as its child."""
        if isinstance(instead, Outcome):
            self._finish(state, instead)
            return
        state.via = "fallback"
        state.cause = failure
        self.out.append(NodeRerouted(state.node.id, instead.id, failure, self.now, instead=True))
        self._wait_for_expansion(state, Expand((instead,), (instead.id,), then=_only))

    def answered(self, state: NodeState, answer: Any, *, recalled: bool = False) -> None:
        """Continue `state` with a person's answer."""
        del self.questions[state.node.id]
        self._continue_timeouts(state)
        self.out.append(HumanAnswered(state.node.id, self.now, answer, recalled))
        if state.resume is None:
            self._end_after_children(state, answer, None)
        else:
            self._run(state, state.resume, answer)

    def _watch_again(self, command: Command) -> None:
        if isinstance(command, ClearTimers) and command.state.account is not None:
            self.watch_seconds(command.state.account)

    def watch_seconds(self, account: Account) -> None:
        """Set the timer for the rest of a budget of seconds."""
        if account.budget.seconds is not None and account.reached is None:
            left = account.since_s + account.budget.seconds - self.now
            self.out.append(SetTimer(account.scope, 0, "budget", left))


async def _only(_: Any, values: list[Any]) -> Any:
    return values[0] if values else Skip("what stands in for it was left out")
