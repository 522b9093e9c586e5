"""Who pays for what: the run's limit and those of its scopes, and what was charged to them."""

from __future__ import annotations

from collections.abc import Iterator

from weft.core.values import Usage
from weft.engine.node import Limit
from weft.engine.state import Account, NodeState


class Ledger:
    """Charges consumption to a node, its scopes and the run; says which limit that reached.

    `reached`: whether any limit has been.
    """

    def __init__(self, limit: Limit | None, now_s: float) -> None:
        self.reached = False
        self.run = Account(limit, None, now_s) if limit is not None else None
        self.total = Usage()

    def open(self, state: NodeState, now_s: float) -> Account | None:
        """Open the account of a node with a limit of its own, the first time it starts."""
        limit = state.node.policy.limit
        if limit is None or state.account is not None:
            return None
        state.account = Account(limit, state, now_s)
        return state.account

    def charge(self, state: NodeState, usage: Usage, now_s: float) -> list[Account]:
        """Add `usage` everywhere it counts; the accounts whose limit that has just reached."""
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
        """The account's seconds have passed: its timer says so, whatever rounding makes of it."""
        account.reached = account.budget.exceeded(account.spent, account.budget.seconds or 0.0)
        self.reached = True

    def closed(self, state: NodeState) -> Account | None:
        """The innermost account of `state` whose limit is reached, if any."""
        if state.parent is None and state.account is None:  # by far the most common case
            return self.run if self.run is not None and self.run.reached is not None else None
        return next((a for a in self.accounts(state) if a.reached is not None), None)

    def tokens_left(self, state: NodeState) -> int | None:
        """The smallest allowance of tokens left for `state`; None when there is no limit."""
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
