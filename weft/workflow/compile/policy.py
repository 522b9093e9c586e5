"""What a node says about failure, time and money, as the engine's policy."""

from __future__ import annotations

from collections.abc import Callable

from weft.core.budget import Budget
from weft.engine.node import MISSING, Cache, Limit, Node, Policy, Retry
from weft.workflow.compile.names import Names
from weft.workflow.document.leaves import ModelNode, ToolNode
from weft.workflow.document.settings import BudgetSpec, RetrySpec
from weft.workflow.document.step import Step
from weft.workflow.expressions import value_template


def policy_of(
    step: Step,
    names: Names,
    resource: str | None,
    cache: Cache | None,
    stand_in: Callable[[str], Node],
) -> Policy:
    """The policy of one node. `stand_in` makes the node that replaces it, by name.

    The calls of a node that samples, thinks, acts, or chooses among tools are nodes with policies
    of their own; what thinks or acts is repeated as a whole.
    """
    samples = isinstance(step, ModelNode) and step.samples is not None
    thinks = isinstance(step, ModelNode) and bool(step.think or step.agent)
    choices = isinstance(step, ToolNode) and bool(step.alternatives)
    return Policy(
        timeout_s=None if choices else step.timeout,
        retry=None if samples or choices else retry_of(step.retry),
        fallback=stand_in(step.fallback) if step.fallback else None,
        default=value_template(step.default).render(names.inputs) if step.has_default else MISSING,
        on_failure=step.on_failure,
        resource=None if samples or thinks or choices else resource,
        cache=cache,
        limit=limit_of(step.budget),
        spends=isinstance(step, ModelNode),
        degrade=stand_in(step.degrade) if step.degrade else None,
        weight=step.weight,
    )


def retry_of(retry: RetrySpec | None) -> Retry | None:
    """The engine's retry."""
    if retry is None:
        return None
    return Retry(retry.attempts, retry.delay, retry.factor, retry.max_delay, retry.jitter)


def limit_of(budget: BudgetSpec | None) -> Limit | None:
    """The engine's limit."""
    if budget is None:
        return None
    return Limit(Budget(budget.tokens, budget.time, budget.money), budget.on_reached)
