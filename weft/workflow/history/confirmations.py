"""Confirmations of calls that must not be repeated, matched to the calls that need them.

A confirmation never applies to a call that has not begun.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from weft.core.calls import ToolCalled
from weft.core.errors import InputError, WeftError
from weft.core.ids import NodeId, in_any_attempt, parent_of, pattern_of, stem
from weft.core.ports.journal import Letter, NumberedRecord
from weft.core.values import JsonSchema
from weft.durability.calls import Confirmation
from weft.durability.calls.once import described
from weft.engine.scheduler.effects import is_unknown, word_for
from weft.validation import misfit
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import ToolNode
from weft.workflow.document.tool_servers import source_of
from weft.workflow.document.unit import Unit
from weft.workflow.history.run_history import RunHistory
from weft.workflow.history.unsettled_calls import (
    UnsettledCall,
    acted_calls,
    confirmation_in,
    confirmed_calls,
    unsettled_calls,
)
from weft.workflow.history.workflow_diff import WorkflowDiff, downstream
from weft.workflow.runtime.tools.functions import tool_of


def scopes_of(node: NodeId) -> Iterator[NodeId]:
    """`node` and the scopes around it, innermost first."""
    scope: NodeId | None = node
    while scope is not None:
        yield scope
        scope = parent_of(scope)


def built_on(
    node: NodeId, needs: Mapping[str, frozenset[str]], executed: Collection[NodeId]
) -> NodeId | None:
    """The first node in `executed` that used the value of `node`; None if there is none.

    `needs`: for each declared node the nodes whose values it takes. For an undeclared node,
    such as an agent's call, the answer is unknown, and the result is the node itself.
    """
    if stem(node) not in needs:
        return node
    for scope in scopes_of(in_any_attempt(node)):
        used = next((w for w in executed if _takes(in_any_attempt(w), scope, needs)), None)
        if used is not None:
            return used
    return None


def _takes(executed: NodeId, scope: NodeId, needs: Mapping[str, frozenset[str]]) -> bool:
    """Whether `executed` used the value of `scope`, and lies outside of it."""
    parent = parent_of(scope)
    if parent is not None and scope[len(parent)] == "#":  # a loop: later iterations
        number, _, _ = executed[len(parent) + 1 :].partition("/")
        later = number.isdecimal() and int(number) > int(scope[len(parent) + 1 :])
        return executed.startswith(f"{parent}#") and later
    if parent is not None and scope[len(parent)] == "[":
        return False  # items do not depend on one another
    label = stem(scope)
    outside = parent is None or executed.startswith(f"{parent}/")
    inside = stem(executed).startswith(f"{label}/")
    return outside and not inside and stem(executed) in downstream(needs, {label}) - {label}


def confirmations_of(
    signals: Sequence[Letter],
    history: RunHistory,
    differences: WorkflowDiff,
    effects: Sequence[UnsettledCall],
    confirmed: Mapping[str, Confirmation],
) -> dict[str, Confirmation]:
    """Confirmations of calls that need them, from `confirmed` and from signals, by place."""
    confirmations: dict[str, Confirmation] = {}
    calls = unsettled_calls(history.records)
    for signal in signals:
        if signal.kind == "confirm" and signal.node not in confirmed:
            confirmations |= confirmation_in(signal, calls)
    if not confirmed:
        return confirmations
    waiting = [*calls, *_repeated(history, differences, effects)]
    moved, unsure = _moved(differences), history.losses.unsure
    for where, confirmation in confirmed.items():
        matching = {call.where: confirmation for call in waiting if call.is_at(where)}
        if "*" not in where:
            matching = matching or _corrected(where, confirmation, history, differences, effects)
        # Else it is about a call that is known by its node only: one that was moved, or lost.
        if not matching and (
            stem(NodeId(where.replace("*", "0"))) in moved or (unsure and "*" not in where)
        ):
            matching = {where: confirmation}
        if not matching:
            raise _needless(where, (*_places(waiting), *moved), unsure)
        confirmations |= matching
    return confirmations


def _corrected(
    where: str,
    confirmation: Confirmation,
    history: RunHistory,
    differences: WorkflowDiff,
    effects: Sequence[UnsettledCall],
) -> dict[str, Confirmation]:
    """A confirmation that replaces an earlier one. Raises: `InputError` when it is too late."""
    executed = [*finished_counts(history), *(call.node for call in effects)]
    calls = [call for call in confirmed_calls(history.records) if call.is_at(where)]
    for call in calls:
        user = built_on(call.node, differences.needs, executed)
        if user is not None:
            hint = f"{user} has gone on with what was said; begin a new run to have it otherwise"
            message = f"what was said of the call at {where!r} cannot be changed"
            raise InputError(message, hint=hint)
    return {call.where: replace(confirmation, corrects=True) for call in calls}


def corrected_nodes(
    history: RunHistory, confirmed: Mapping[str, Confirmation]
) -> frozenset[NodeId]:
    """The nodes that ended by a confirmation that is corrected now, and the scopes around them."""
    nodes = [
        c.node
        for c in confirmed_calls(history.records)
        if c.where in confirmed and confirmed[c.where].corrects
    ]
    places = {scope for node in nodes for scope in scopes_of(in_any_attempt(node))}
    return frozenset(node for node in history.outcomes if in_any_attempt(node) in places)


def _needless(where: str, waiting: Iterable[str], unsure: bool) -> InputError:
    """The error for a confirmation that no call is known to need."""
    places = ", ".join(dict.fromkeys(waiting))
    hint = f"a confirmation is waited for at {places}" if places else "every call's end is known"
    if unsure:
        hint = "a pattern speaks for calls that the record has, and this record has lost calls: "
        hint += "name each node for itself, once you know whether it made its call"
    return InputError(f"no call at {where!r} needs a confirmation", hint=hint)


def _places(calls: Iterable[UnsettledCall]) -> Iterable[str]:
    """The nodes of `calls`; several instances of one node as a pattern."""
    alike: dict[str, set[str]] = {}
    for call in calls:
        alike.setdefault(pattern_of(call.node), set()).add(in_any_attempt(call.node))
    return (next(iter(nodes)) if len(nodes) == 1 else name for name, nodes in alike.items())


def _repeated(
    history: RunHistory, differences: WorkflowDiff, effects: Sequence[UnsettledCall]
) -> Iterable[UnsettledCall]:
    """Calls with a known end that the run may make again, with other arguments."""
    at_risk = {node.node for node in differences.nodes if node.may_act_twice}
    refused = {
        in_any_attempt(node)
        for node, outcome in history.outcomes.items()
        if outcome.failure is not None and is_unknown(outcome.failure)
    }
    return (c for c in effects if stem(c.node) in at_risk or in_any_attempt(c.node) in refused)


def _moved(differences: WorkflowDiff) -> tuple[str, ...]:
    """Nodes that may repeat a call of a node that is gone."""
    if not any(node.acted for node in differences.nodes if node.verdict == "gone"):
        return ()
    return tuple(node.node for node in differences.nodes if node.verdict in ("new", "changed"))


def parse_confirmation(text: str) -> Confirmation | None:
    """`done`, `done:JSON` with what was returned, or `repeat`; None for any other text."""
    word, colon, value = text.partition(":")
    if text == "repeat":
        return Confirmation("repeat")
    if word != "done":
        return None
    try:
        return Confirmation("done", json.loads(value) if colon else None)
    except (ValueError, RecursionError):
        return None


def finished_counts(history: RunHistory) -> Counter[NodeId]:
    """The number of successful ends of each node."""
    return Counter({node: 1 for node, outcome in history.outcomes.items() if outcome.ok})


def check_results(
    unit: Unit, records: Iterable[NumberedRecord], confirmed: Mapping[str, Confirmation]
) -> None:
    """Raises: `InputError` where a confirmed value does not fit the tool's result type."""
    for call in acted_calls(records):
        confirmation, made = confirmed.get(call.where), call.called.record
        if confirmation is None or confirmation.kind == "repeat":
            continue
        if not isinstance(made, ToolCalled) or (confirmation.value is None and not call.is_open):
            continue  # a finished call keeps its result
        schemas = list(_results(unit, made.tool))
        reasons = [misfit(confirmation.value, schema) for schema in schemas]
        if reasons and all(reasons):
            raise InputError(
                f"{made.tool} cannot have returned what was said of its call: {reasons[0]}",
                hint=f"say --confirm {word_for(call.node, 'done:JSON')}, "
                f"what it returned as JSON{described(schemas[0])}",
            )


def _results(unit: Unit, name: str) -> Iterator[JsonSchema]:
    """The result types of the tools of this name, as far as known without a server."""
    for included in unit.everything():
        steps = (step for _, step in walk(included.document.nodes))
        used = [step.tool for step in steps if isinstance(step, ToolNode)]
        for text in dict.fromkeys((*included.document.tools, *used)):
            if text.rpartition(":")[2] != name or source_of(included, text) is not None:
                continue
            try:
                result = tool_of(included, text).spec.result
            except WeftError:
                continue  # the node's own check reports it
            if result is not None:
                yield result
