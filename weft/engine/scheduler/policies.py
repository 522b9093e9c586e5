"""Decisions of a node's policies: retry delay, fallback or default, and which budget pays. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

from weft.core.error_names import is_any_of
from weft.core.errors import BudgetExceeded, EffectUnknown, Failure, WeftError
from weft.core.events import Outcome
from weft.core.ids import NodeId, inside
from weft.core.values import Usage
from weft.engine.graph.node import MISSING, BudgetLimit, Node, Retry
from weft.engine.scheduler.effects import is_unknown
from weft.engine.scheduler.state import Account, NodeState


class UsageLedger:
    """Charges consumption to a node, its scopes and the run; returns the limits that it reached.

    `reached`: whether any limit has been.
    """

    def __init__(self, limit: BudgetLimit | None, now_s: float) -> None:
        self.reached = False
        self.run = Account(limit, None, now_s) if limit is not None else None
        self.total = Usage()

    def open(self, state: NodeState, now_s: float) -> Account | None:
        """Open the account of a node with its own limit, the first time it starts."""
        limit = state.node.policy.limit
        if limit is None or state.account is not None:
            return None
        state.account = Account(limit, state, now_s)
        return state.account

    def charge(self, state: NodeState, usage: Usage, now_s: float) -> list[Account]:
        """Add `usage` to all accounts; return those whose limit it reached."""
        self.total += usage
        reached = []
        for account in self.accounts(state):
            account.spent += usage
            if account.reached is None:
                account.reached = account.budget.exceeded(account.spent, now_s - account.since_s)
                if account.reached is not None:
                    self.reached = True
                    reached.append(account)
        return reached

    def time_up(self, account: Account) -> None:
        """Mark an account of seconds as spent when its timer fires, despite rounding."""
        account.reached = account.budget.exceeded(account.spent, account.budget.seconds or 0.0)
        self.reached = True

    def closed(self, state: NodeState) -> Account | None:
        """The innermost account of `state` whose limit is reached, if any."""
        if state.parent is None and state.account is None:  # by far the most common case
            return self.run if self.run is not None and self.run.reached is not None else None
        return next((a for a in self.accounts(state) if a.reached is not None), None)

    def tokens_left(self, state: NodeState) -> int | None:
        """The smallest token allowance left for `state`; None when there is no limit."""
        left = [
            max(0, a.budget.tokens - a.spent.tokens)
            for a in self.accounts(state)
            if a.budget.tokens is not None
        ]
        return min(left, default=None)

    def accounts(self, state: NodeState) -> Iterator[Account]:
        """The accounts that `state` is charged to, innermost first."""
        scope: NodeState | None = state
        while scope is not None:
            if scope.account is not None:
                yield scope.account
            scope = scope.parent
        if self.run is not None:
            yield self.run


def for_failure(state: NodeState, failure: Failure) -> Node | Outcome:
    """The node to run instead of `state`, or its outcome.

    Nothing replaces a call that may have been carried out: it would act a second time.
    """
    policy = state.node.policy
    if policy.fallback is not None and not state.via and not is_unknown(failure):
        return _placed(state, policy.fallback)
    if policy.default is not MISSING:
        return Outcome("succeeded", policy.default, failure, state.attempt, "default")
    return Outcome("failed", None, failure, state.attempt, state.via)


def for_budget(state: NodeState, failure: Failure, degrade: Node | None) -> Node | Outcome:
    """`degrade` instead of `state`, or its outcome, when its budget is spent."""
    policy = state.node.policy
    if degrade is not None:
        return _placed(state, degrade)
    if policy.default is not MISSING:
        return Outcome("succeeded", policy.default, failure, state.attempt, "default")
    return Outcome("skipped", None, failure, state.attempt)


def spent(account: Account) -> Failure:
    """The failure of a node that `account` can no longer pay for."""
    return BudgetExceeded(f"budget reached: {account.reached}").failure()


def _placed(state: NodeState, template: Node) -> Node:
    return replace(template, id=inside(state.node.id, template.id))


def is_retried(retry: Retry, error: WeftError) -> bool:
    """Whether `retry` repeats a node after `error`: never after a call with an unknown end."""
    if isinstance(error, EffectUnknown):
        return False
    if retry.only:
        return error.retryable and is_any_of(error, retry.only)
    return error.retryable or (bool(retry.on) and is_any_of(error, retry.on))


def delay_s(retry: Retry, attempt: int, node: NodeId, error: WeftError, seed: int) -> float:
    """Seconds to wait after attempt `attempt` (from 1) failed with `error`.

    Never less than the error's `retry_after_s`. The same arguments give the same delay.
    """
    try:
        delay = min(retry.delay_s * retry.factor ** (attempt - 1), retry.max_delay_s)
    except OverflowError:
        delay = retry.max_delay_s
    draw = Random(f"{seed}:{node}:{attempt}").random()  # noqa: S311 - jitter, not a secret
    delay *= 1 + retry.jitter * (2 * draw - 1)
    least_s = getattr(error, "retry_after_s", None)
    return max(delay, least_s) if isinstance(least_s, int | float) else delay
