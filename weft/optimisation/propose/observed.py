"""The nodes of one run as a proposer sees them: what each was given, and what it made."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from weft.core.errors import WeftError
from weft.core.events import Event, NodeFinished, Outcome
from weft.core.ids import NodeId
from weft.optimisation.candidate_flows import PLACE
from weft.optimisation.propose.context import ObservedNode
from weft.workflow.document import WorkflowDocument
from weft.workflow.document.expressions import value_template
from weft.workflow.document.spec.document import node_address, walk
from weft.workflow.document.spec.nodes import BaseNode, MapNode
from weft.workflow.document.templates import template_uses

_NUMBERS: Final = re.compile(r"[\[#~]\d+\]?")
_INDEX: Final = re.compile(r"\[(\d+)\]$")
_BODIES: Final = ("do", "loop")


@dataclass
class NodeObserver:
    """Reads the nodes of a run of `document` with these `inputs`.

    `prompt_of` and `seconds_of` a node, by its id in the run.
    """

    document: WorkflowDocument
    inputs: Mapping[str, Any]
    prompt_of: Callable[[NodeId], str]
    seconds_of: Callable[[NodeId], float]
    _steps: dict[str, BaseNode] = field(default_factory=dict)
    _outcomes: dict[str, Outcome] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._steps = {node_address(path[1:]): step for path, step in walk(self.document.nodes)}

    def nodes(self, events: list[Event]) -> Iterator[ObservedNode]:
        """In the order in which they ended."""
        ended = [
            event
            for event in events
            if isinstance(event, NodeFinished) and event.node.startswith(f"{PLACE}/")
        ]
        self._outcomes = {_own(event.node): event.outcome for event in ended}
        for event in ended:
            node, outcome = _own(event.node), event.outcome
            address = self.address(node)
            step = self._steps.get(address)
            if step is None or outcome.status in ("skipped", "cancelled"):
                continue  # inside a node, such as one of its samples
            given, needs = self._given(node, step)
            yield ObservedNode(
                address,
                step.kind,
                self.prompt_of(event.node),
                given,
                outcome.value,
                "" if outcome.failure is None else str(outcome.failure),
                self.seconds_of(event.node),
                needs,
            )

    def address(self, node: str) -> str:
        """The address in the document of a node of the run."""
        plain = _NUMBERS.sub("", node)
        if plain != node and _NUMBERS.search(node.rpartition("/")[2]):
            for body in _BODIES:
                if f"{plain}/{body}" in self._steps:
                    return f"{plain}/{body}"
        return plain

    def _given(self, node: str, step: BaseNode) -> tuple[dict[str, Any], tuple[str, ...]]:
        given: dict[str, Any] = {}
        needs: list[str] = []
        names = {name for use in template_uses(step) for name in use.template.names - use.bound}
        for name in sorted(names):
            place = next((p for p in _scopes(node, name) if p in self._outcomes), None)
            if place is not None:
                given[name] = self._outcomes[place].value
                needs.append(self.address(place))
            elif name in self.inputs:
                given[name] = self.inputs[name]
            else:
                given.update(self._item(node, name))
        return given, tuple(needs)

    def _item(self, node: str, name: str) -> dict[str, Any]:
        """The item of a map around the node, if `name` is one."""
        place = node
        while place:
            index, around = _INDEX.search(place), _INDEX.sub("", place)
            step = self._steps.get(_NUMBERS.sub("", around))
            if index is not None and isinstance(step, MapNode) and step.item == name:
                return {name: self._items(around, step, int(index[1]))}
            place = place.rpartition("/")[0]
        return {}

    def _items(self, node: str, step: MapNode, index: int) -> Any:
        values = {**self.inputs, **self._given(node, step)[0]}
        try:
            return value_template(step.over).render(values)[index]
        except (WeftError, LookupError, TypeError):
            return None


def _own(node: NodeId) -> str:
    return node.removeprefix(f"{PLACE}/")


def _scopes(node: str, name: str) -> Iterator[str]:
    """Where a node of this name may be, the innermost scope first."""
    around = node.rpartition("/")[0]
    while around:
        yield f"{around}/{name}"
        around = around.rpartition("/")[0]
    yield name
