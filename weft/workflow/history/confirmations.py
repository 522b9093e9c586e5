"""What people say of calls that must not be repeated, bound to the calls that wait for it.

A confirmation holds for no call that has not begun.
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
    """`node` and what it is inside, innermost first."""
    scope: NodeId | None = node
    while scope is not None:
        yield scope
        scope = parent_of(scope)


def built_on(
    node: NodeId, needs: Mapping[str, frozenset[str]], worked: Collection[NodeId]
) -> NodeId | None:
    """The first of the nodes that `worked` and took in what `node` came to; None: there is none.

    `needs`: of each node as it is written, those whose values it takes. For a node that is not
    written there, such as an agent's call, nobody can tell: it is the node itself.
    """
    if stem(node) not in needs:
        return node
    for scope in scopes_of(in_any_attempt(node)):
        used = next((w for w in worked if _takes(in_any_attempt(w), scope, needs)), None)
        if used is not None:
            return used
    return None


def _takes(worked: NodeId, scope: NodeId, needs: Mapping[str, frozenset[str]]) -> bool:
    """Whether `worked` takes in what `scope` came to, beside it."""
    parent = parent_of(scope)
    if parent is not None and scope[len(parent)] == "#":  # a loop: what comes later
        number, _, _ = worked[len(parent) + 1 :].partition("/")
        later = number.isdecimal() and int(number) > int(scope[len(parent) + 1 :])
        return worked.startswith(f"{parent}#") and later
    if parent is not None and scope[len(parent)] == "[":
        return False  # items know nothing of one another
    label = stem(scope)
    beside = parent is None or worked.startswith(f"{parent}/")
    inside = stem(worked).startswith(f"{label}/")
    return beside and not inside and stem(worked) in downstream(needs, {label}) - {label}


def confirmations_of(
    letters: Sequence[Letter],
    story: RunHistory,
    differences: WorkflowDiff,
    effects: Sequence[UnsettledCall],
    confirmed: Mapping[str, Confirmation],
) -> dict[str, Confirmation]:
    """What people say of calls that wait for it, here and in letters, by the place of each."""
    found: dict[str, Confirmation] = {}
    calls = unsettled_calls(story.records)
    for letter in letters:
        if letter.kind == "confirm" and letter.node not in confirmed:
            found |= confirmation_in(letter, calls)
    if not confirmed:
        return found
    waiting = [*calls, *_repeated(story, differences, effects)]
    moved, unsure = _moved(differences), story.losses.unsure
    for where, said in confirmed.items():
        meant = {call.where: said for call in waiting if call.is_at(where)}
        if "*" not in where:
            meant = meant or _corrected(where, said, story, differences, effects)
        # Else it is about a call that is known by its node only: one that was moved, or lost.
        if not meant and (_label(where) in moved or (unsure and "*" not in where)):
            meant = {where: said}
        if not meant:
            raise _needless(where, (*_places(waiting), *moved), unsure)
        found |= meant
    return found


def _corrected(
    where: str,
    said: Confirmation,
    story: RunHistory,
    differences: WorkflowDiff,
    effects: Sequence[UnsettledCall],
) -> dict[str, Confirmation]:
    """A word in the place of an earlier one. Raises: `InputError` when it comes too late."""
    worked = [*finished_counts(story), *(call.node for call in effects)]
    found = [call for call in confirmed_calls(story.records) if call.is_at(where)]
    for call in found:
        user = built_on(call.node, differences.needs, worked)
        if user is not None:
            raise _too_late(where, user)
    return {call.where: replace(said, corrects=True) for call in found}


def corrected_nodes(story: RunHistory, words: Mapping[str, Confirmation]) -> frozenset[NodeId]:
    """The nodes that ended by a word which is corrected now, and what they are inside."""
    nodes = [
        c.node
        for c in confirmed_calls(story.records)
        if c.where in words and words[c.where].corrects
    ]
    places = {scope for node in nodes for scope in scopes_of(in_any_attempt(node))}
    return frozenset(node for node in story.outcomes if in_any_attempt(node) in places)


def _label(where: str) -> str:
    return stem(NodeId(where.replace("*", "0")))


def _too_late(where: str, user: NodeId) -> InputError:
    hint = f"{user} has gone on with what was said; begin a new run to have it otherwise"
    return InputError(f"what was said of the call at {where!r} cannot be changed", hint=hint)


def _needless(where: str, waited_for: Iterable[str], unsure: bool) -> InputError:
    """The error for a word on no call that is known to wait for one."""
    places = ", ".join(dict.fromkeys(waited_for))
    hint = f"a confirmation is waited for at {places}" if places else "every call's end is known"
    if unsure:
        hint = "a pattern speaks for calls that the record has, and this record has lost calls: "
        hint += "name each node for itself, once you know whether it made its call"
    return InputError(f"no call at {where!r} needs a confirmation", hint=hint)


def _places(calls: Iterable[UnsettledCall]) -> Iterable[str]:
    """The nodes of `calls`, several instances of one as a pattern."""
    alike: dict[str, set[str]] = {}
    for call in calls:
        alike.setdefault(pattern_of(call.node), set()).add(in_any_attempt(call.node))
    return (next(iter(nodes)) if len(nodes) == 1 else name for name, nodes in alike.items())


def _repeated(
    story: RunHistory, differences: WorkflowDiff, effects: Sequence[UnsettledCall]
) -> Iterable[UnsettledCall]:
    """The calls with a known end that the run may come to once more, with other arguments."""
    at_risk = {node.node for node in differences.nodes if node.may_act_twice}
    refused = {
        in_any_attempt(node)
        for node, outcome in story.outcomes.items()
        if outcome.failure is not None and is_unknown(outcome.failure)
    }
    return (c for c in effects if stem(c.node) in at_risk or in_any_attempt(c.node) in refused)


def _moved(differences: WorkflowDiff) -> tuple[str, ...]:
    """Nodes that may make a call which a node made that is gone."""
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


def finished_counts(story: RunHistory) -> Counter[NodeId]:
    """How many ends of each node were good ones."""
    return Counter({node: 1 for node, outcome in story.outcomes.items() if outcome.ok})


def check_results(
    unit: Unit, records: Iterable[NumberedRecord], words: Mapping[str, Confirmation]
) -> None:
    """Raises: `InputError` where a tool of the workflow cannot have returned what a word says."""
    for call in acted_calls(records):
        said, made = words.get(call.where), call.called.record
        if said is None or said.kind == "repeat" or not isinstance(made, ToolCalled):
            continue
        if said.value is None and not call.is_open:
            continue  # what was done is kept, with its result
        schemas = list(_results(unit, made.tool))
        reasons = [misfit(said.value, schema) for schema in schemas]
        if reasons and all(reasons):
            raise InputError(
                f"{made.tool} cannot have returned what was said of its call: {reasons[0]}",
                hint=f"say --confirm {word_for(call.node, 'done:JSON')}, "
                f"what it returned as JSON{described(schemas[0])}",
            )


def _results(unit: Unit, name: str) -> Iterator[JsonSchema]:
    """What the tools of this name say of their results, where that is known without a server."""
    for included in unit.everything():
        steps = (step for _, step in walk(included.document.nodes))
        used = [step.tool for step in steps if isinstance(step, ToolNode)]
        for text in dict.fromkeys((*included.document.tools, *used)):
            if text.rpartition(":")[2] != name or source_of(included, text) is not None:
                continue
            try:
                result = tool_of(included, text).spec.result
            except WeftError:
                continue  # its node says so
            if result is not None:
                yield result
