"""Fork of a recorded run: a new run that reuses its results, except from one node on."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Mapping
from typing import Any

from weft.core.errors import InputError, UnknownReference
from weft.core.events import GraphGrew, NodeInfo, RunStarted
from weft.core.ids import NodeId, in_any_attempt, stem
from weft.core.ports.journal import Journal
from weft.durability.journal.resume_state import RecordedResumeState
from weft.workflow.compile.sources import digests_like
from weft.workflow.document.secrets import redactor_of
from weft.workflow.document.spec.defects import choice_hint
from weft.workflow.document.unit import Unit
from weft.workflow.history.recorded_workflow import notes_of
from weft.workflow.history.run_history import RunHistory
from weft.workflow.history.unsettled_calls import acted_calls
from weft.workflow.runtime.options import RunSettings, settings_of
from weft.workflow.runtime.recording import PriorRun
from weft.workflow.runtime.run import FlowRun


def fork_run(
    history: RunHistory,
    unit: Unit,
    node: str,
    journal: Journal | None,
    *,
    settings: Mapping[str, Any] | None = None,
    repeat: Collection[str] = (),
) -> FlowRun:
    """Prepare a run of `unit` with the inputs of a recorded one, in which `node` runs again.

    So does everything that depends on it. All other nodes keep their outcomes, where they and their
    inputs are unchanged. `node` may name all instances of a node, such as `notes/draft`. The new
    run is recorded in `journal`; `settings` are those that differ. `repeat`: nodes, or patterns of
    nodes, whose calls that must not be repeated may be made again.

    Raises: `UnknownReference` when the run had no such node, `InputError` where a call would be
    made again that must not be, `BuildError`, `StoreError`.
    """
    infos = {
        info.id: info
        for event in history.events
        if isinstance(event, (RunStarted, GraphGrew))
        for info in event.nodes
    }
    chosen = _chosen(node, infos)
    again = cone(chosen, infos.values())
    _check_effects(history, again, repeat)
    redactor = redactor_of(unit, history.header.secrets)
    recall = RecordedResumeState(history.records, part=1, skip=again, restore=redactor.restore)
    notes = {**notes_of(history.header), "forked": history.run, "from": node}
    past = PriorRun(recall, redactor, notes=notes, digests=digests_like(history.header))
    given = {key: value for key, value in (settings or {}).items() if value is not None}
    merged = RunSettings(**{**settings_of(history.header.settings), **given, "journal": journal})
    inputs: dict[str, Any] = redactor.restore(dict(history.header.inputs))
    return FlowRun(unit, inputs, merged, past)


def _check_effects(history: RunHistory, again: Container[NodeId], repeat: Collection[str]) -> None:
    """Raises `InputError` where a node in `again` made a call that `repeat` does not allow."""
    for call in acted_calls(history.records):
        if in_any_attempt(call.node) in again and not any(map(call.is_at, repeat)):
            place = in_any_attempt(call.node)
            raise InputError(
                f"{place} would make a call again that must not be repeated: the run made it, or"
                " may have made it",
                node=place,
                hint=f"--confirm {shlex.quote(f'{place}=repeat')} makes it once more",
            )


def cone(chosen: Iterable[NodeId], infos: Iterable[NodeInfo]) -> frozenset[NodeId]:
    """The nodes among `infos` whose outcome may depend on one of `chosen`, and those themselves.

    A node around one of them runs again, but not its other inner nodes.
    """
    by_id = {info.id: info for info in infos}
    users: defaultdict[NodeId, list[NodeId]] = defaultdict(list)
    inner: defaultdict[NodeId, list[NodeId]] = defaultdict(list)
    for info in by_id.values():
        for source in info.sources:
            users[source].append(info.id)
        if info.parent is not None:
            inner[info.parent].append(info.id)
    whole: set[NodeId] = set()
    around: set[NodeId] = set()
    waiting = [(node, True) for node in chosen]
    while waiting:
        node, with_inner = waiting.pop()
        if node in whole or (node in around and not with_inner):
            continue
        (whole if with_inner else around).add(node)
        waiting += [(user, True) for user in users[node]]
        waiting += [(child, True) for child in inner[node]] if with_inner else []
        parent = by_id[node].parent if node in by_id else None
        waiting += [(parent, False)] if parent is not None else []
    return frozenset(whole | around)


def _chosen(node: str, infos: Mapping[NodeId, NodeInfo]) -> list[NodeId]:
    if NodeId(node) in infos:
        return [NodeId(node)]
    instances = [each for each in infos if stem(each) == node]
    if not instances:
        hint = choice_hint(node, list(dict.fromkeys((*infos, *map(stem, infos)))))
        raise UnknownReference(f"the run had no node {node!r}", hint=hint)
    return instances
