"""What people say of calls that must not be repeated, bound to the calls that wait for it.

A confirmation holds for no call that has not begun. Knows no journal.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from weft.core.errors import InputError
from weft.core.ids import NodeId, in_any_attempt, pattern_of, stem
from weft.core.ports.journal import Letter
from weft.engine.cassette import Confirmation
from weft.engine.effects import is_unknown
from weft.workflow.runs.built import built_on, scopes_of
from weft.workflow.runs.changed import Changes
from weft.workflow.runs.story import Story
from weft.workflow.runs.unsettled import Unsettled, bound, told, unsettled


def confirmations_of(
    letters: Sequence[Letter],
    story: Story,
    differences: Changes,
    effects: Sequence[Unsettled],
    confirmed: Mapping[str, Confirmation],
) -> dict[str, Confirmation]:
    """What people say of calls that wait for it, here and in letters, by the place of each."""
    found: dict[str, Confirmation] = {}
    calls = unsettled(story.records)
    for letter in letters:
        if letter.kind == "confirm" and letter.node not in confirmed:
            found |= bound(letter, calls)
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
    story: Story,
    differences: Changes,
    effects: Sequence[Unsettled],
) -> dict[str, Confirmation]:
    """A word in the place of an earlier one. Raises: `InputError` when it comes too late."""
    worked = [*finished(story), *(call.node for call in effects)]
    found = [call for call in told(story.records) if call.is_at(where)]
    for call in found:
        user = built_on(call.node, differences.needs, worked)
        if user is not None:
            raise _too_late(where, user)
    return {call.where: replace(said, corrects=True) for call in found}


def said_anew(story: Story, words: Mapping[str, Confirmation]) -> frozenset[NodeId]:
    """The nodes that ended by a word which is corrected now, and what they are inside."""
    nodes = [c.node for c in told(story.records) if c.where in words and words[c.where].corrects]
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


def _places(calls: Iterable[Unsettled]) -> Iterable[str]:
    """The nodes of `calls`, several instances of one as a pattern."""
    alike: dict[str, set[str]] = {}
    for call in calls:
        alike.setdefault(pattern_of(call.node), set()).add(in_any_attempt(call.node))
    return (next(iter(nodes)) if len(nodes) == 1 else name for name, nodes in alike.items())


def _repeated(
    story: Story, differences: Changes, effects: Sequence[Unsettled]
) -> Iterable[Unsettled]:
    """The calls with a known end that the run may come to once more, with other arguments."""
    at_risk = {node.node for node in differences.nodes if node.may_act_twice}
    refused = {
        in_any_attempt(node)
        for node, outcome in story.outcomes.items()
        if outcome.failure is not None and is_unknown(outcome.failure)
    }
    return (c for c in effects if stem(c.node) in at_risk or in_any_attempt(c.node) in refused)


def _moved(differences: Changes) -> tuple[str, ...]:
    """Nodes that may make a call which a node made that is gone."""
    if not any(node.acted for node in differences.nodes if node.verdict == "gone"):
        return ()
    return tuple(node.node for node in differences.nodes if node.verdict in ("new", "changed"))


def confirmation(text: str) -> Confirmation | None:
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


def finished(story: Story) -> Counter[NodeId]:
    """How many ends of each node were good ones."""
    return Counter({node: 1 for node, outcome in story.outcomes.items() if outcome.ok})
