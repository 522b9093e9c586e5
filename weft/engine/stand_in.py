"""What takes the place of a node that failed, or that a budget no longer pays for. Pure."""

from __future__ import annotations

from dataclasses import replace

from weft.core.errors import BudgetExceeded, Failure
from weft.core.events import Outcome
from weft.core.ids import inside
from weft.engine.effects import is_unknown
from weft.engine.node import MISSING, Node
from weft.engine.state import Account, NodeState


def for_failure(state: NodeState, failure: Failure) -> Node | Outcome:
    """What is to run instead of `state`, or how it ends.

    Nothing runs instead of a call that may have been carried out: it would act a second time.
    """
    policy = state.node.policy
    if policy.fallback is not None and not state.via and not is_unknown(failure):
        return _placed(state, policy.fallback)
    if policy.default is not MISSING:
        return Outcome("succeeded", policy.default, failure, state.attempt, "default")
    return Outcome("failed", None, failure, state.attempt, state.via)


def for_budget(state: NodeState, failure: Failure, degrade: Node | None) -> Node | Outcome:
    """`degrade` instead of `state`, or how it ends, since nothing pays for it."""
    policy = state.node.policy
    if degrade is not None:
        return _placed(state, degrade)
    if policy.default is not MISSING:
        return Outcome("succeeded", policy.default, failure, state.attempt, "default")
    return Outcome("skipped", None, failure, state.attempt)


def spent(account: Account) -> Failure:
    """Why nothing that `account` pays for starts any more."""
    return BudgetExceeded(f"budget reached: {account.reached}").failure()


def _placed(state: NodeState, template: Node) -> Node:
    return replace(template, id=inside(state.node.id, template.id))
