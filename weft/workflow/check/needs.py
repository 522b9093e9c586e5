"""Who waits for whom in one scope, and that nobody waits for himself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError as Cycle
from graphlib import TopologicalSorter
from typing import NoReturn

from weft.core.errors import CycleError
from weft.workflow.source import Path
from weft.workflow.unit import Unit, node_name


@dataclass(frozen=True, slots=True)
class Need:
    """A place that uses the name `name`: a path, and line and word inside the text there."""

    name: str
    path: Path
    line: int = 1


Needs = dict[str, Need]
"""What a node uses, itself and inside its bodies: the first place for each name."""


def check_order(unit: Unit, needs: Mapping[str, Needs]) -> None:
    """Check that the nodes of one scope can run in some order.

    Raises: `CycleError`, at a place where a node of the cycle refers to the next.
    """
    graph = {name: [other for other in own if other in needs] for name, own in needs.items()}
    for name, others in graph.items():
        if name in others:
            need = needs[name][name]
            user = (node_name(need.path) or name).partition("/")[0]
            through = "" if user == name else f" through `{user}`, which stands in for it"
            _refuse(unit, need, f"`{name}` needs itself{through}")
    try:
        TopologicalSorter(graph).prepare()
    except Cycle as cycle:
        ring = list(reversed(cycle.args[1][1:]))  # each now needs the one after it
        start = min(range(len(ring)), key=lambda i: list(needs).index(ring[i]))
        ring = ring[start:] + ring[:start]
        said = ", which needs ".join(f"`{name}`" for name in [*ring[1:], ring[0]])
        _refuse(unit, needs[ring[0]][ring[1]], f"`{ring[0]}` needs {said}")


def with_stand_ins(
    needs: Mapping[str, Needs], stand_ins: Mapping[str, set[str]]
) -> dict[str, Needs]:
    """`needs`, where a node also needs what its fallback and degrade nodes need."""
    return {name: _all(name, needs, stand_ins) for name in needs}


def _all(name: str, needs: Mapping[str, Needs], stand_ins: Mapping[str, set[str]]) -> Needs:
    found: Needs = {}
    for member in _chain(name, stand_ins):
        for other, need in needs[member].items():
            found.setdefault(other, need)
    return found


def _chain(name: str, stand_ins: Mapping[str, set[str]]) -> Iterator[str]:
    seen, todo = set(), [name]
    while todo:
        member = todo.pop()
        if member not in seen:
            seen.add(member)
            yield member
            todo.extend(sorted(stand_ins.get(member, ())))


def _refuse(unit: Unit, need: Need, message: str) -> NoReturn:
    error = CycleError(message, hint="break the circle, or use a `loop` node to repeat")
    unit.fail(error, need.path, line=need.line, word=need.name)
