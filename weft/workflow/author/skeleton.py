"""The skeleton of a workflow: nodes with kinds and edges, without expressions and prompts.

Written by a model under `skeleton_schema`, and refused with reasons where it cannot be laid out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from weft.core.suggestion import closest
from weft.validation import violation
from weft.workflow.author.intention import NAME, VALUE_TYPES, Intention
from weft.workflow.author.text_limits import fits_text
from weft.workflow.document.spec.fields import RESERVED

KINDS: Final = ("tool", "model", "map", "branch", "loop", "value", "ask")
CONTAINERS: Final = ("map", "branch", "loop")
MOST_NODES: Final = 100
_MOST_LEVELS: Final = 8
_CASE: Final = {"type": "string", "pattern": "^[^<\\n][^\\n]{0,59}$"}
_BOUND: Final = {"map": "index", "loop": "iteration"}


@dataclass(frozen=True, slots=True)
class SkeletonNode:
    """One node. `inside`: the container around it, for a branch as `NAME/CASE`; empty: none.

    `needs`: the names of the nodes, inputs and items whose values it uses. `tool` is that of a tool
    node, `answer` the type of a model's answer, `item` the name inside a map or loop, `cases` the
    cases of a branch.
    """

    id: str
    kind: str
    inside: str = ""
    needs: tuple[str, ...] = ()
    does: str = ""
    tool: str = ""
    answer: str = "string"
    item: str = ""
    cases: tuple[str, ...] = ()

    @property
    def container(self) -> str:
        """The id of the container around it."""
        return self.inside.partition("/")[0]

    def bodies(self) -> tuple[str, ...]:
        """The values of `inside` of the nodes in its bodies."""
        if self.kind == "branch":
            return tuple(f"{self.id}/{case}" for case in self.cases)
        return (self.id,) if self.kind in CONTAINERS else ()


def node_of(raw: Mapping[str, Any]) -> SkeletonNode:
    """The node in plain data whose shape was checked."""
    given: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in raw.items()}
    return SkeletonNode(**given)


@dataclass(frozen=True, slots=True)
class WorkflowSkeleton:
    """All nodes, and the node behind each output."""

    nodes: tuple[SkeletonNode, ...]
    outputs: Mapping[str, str] = field(default_factory=dict)

    def inside(self, place: str) -> list[SkeletonNode]:
        """The nodes of one body, in order."""
        return [node for node in self.nodes if node.inside == place]

    def node(self, name: str) -> SkeletonNode:
        """The node of that id."""
        return next(node for node in self.nodes if node.id == name)

    def around(self, node: SkeletonNode) -> Iterator[SkeletonNode]:
        """The containers around a node, innermost first."""
        while node.inside:
            node = self.node(node.container)
            yield node

    def visible(self, node: SkeletonNode) -> list[str]:
        """The names of nodes and items that a node may use, besides inputs."""
        names = [other.id for other in self.inside(node.inside) if other.id != node.id]
        for outer in self.around(node):
            names += [name for name in (outer.item, _BOUND.get(outer.kind, "")) if name]
            names += [each.id for each in self.inside(outer.inside) if each.id != outer.id]
        return names


def skeleton_schema(tools: Sequence[str]) -> dict[str, Any]:
    """The JSON Schema of a skeleton over tools of these names."""
    kinds: dict[str, dict[str, Any]] = {
        "tool": {"tool": {"enum": list(tools)}},
        "model": {"answer": {"enum": list(VALUE_TYPES)}},
        "map": {"item": NAME},
        "branch": {"cases": {"type": "array", "items": _CASE, "minItems": 1, "maxItems": 40}},
        "loop": {"item": NAME},
        "value": {},
        "ask": {},
    }
    if not tools:
        del kinds["tool"]
    nodes = [_node_schema(kind, own) for kind, own in kinds.items()]
    output = {
        "type": "object",
        "properties": {"output": NAME, "node": NAME},
        "required": ["output", "node"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "nodes": {
                "type": "array",
                "items": {"anyOf": nodes},
                "minItems": 1,
                "maxItems": MOST_NODES,
            },
            "outputs": {"type": "array", "items": output, "minItems": 1, "maxItems": 12},
        },
        "required": ["nodes", "outputs"],
        "additionalProperties": False,
    }


def _node_schema(kind: str, own: Mapping[str, Any]) -> dict[str, Any]:
    properties = {
        "id": NAME,
        "kind": {"const": kind},
        **own,
        "inside": {"type": "string", "maxLength": 130},
        "needs": {"type": "array", "items": NAME, "maxItems": 60},
        "does": {"type": "string", "maxLength": 300},
    }
    required = [name for name in properties if name not in ("inside", "does")]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def read_skeleton(
    raw: object, intention: Intention, tools: Sequence[str]
) -> tuple[WorkflowSkeleton | None, list[str]]:
    """The skeleton in a model's answer, and what is wrong with it; one that is wrong is None."""
    why = violation(raw, skeleton_schema(tools))
    if why is not None:
        return None, [f"the skeleton does not fit: {why}"]
    if not fits_text(raw):
        return None, ["the skeleton has characters that no file can hold"]
    assert isinstance(raw, Mapping)
    nodes = tuple(map(node_of, raw["nodes"]))
    outputs = {each["output"]: each["node"] for each in raw["outputs"]}
    made = WorkflowSkeleton(nodes, outputs)
    inputs = [each.name for each in intention.input]
    problems = _names(made, inputs) or [*_places(made)] or [*_edges(made, inputs)]
    problems += [] if problems else [*_outputs(made, inputs, intention)]
    return (None if problems else made), problems


def _names(skeleton: WorkflowSkeleton, inputs: Iterable[str]) -> list[str]:
    taken = dict.fromkeys(inputs, "an input")
    problems = []
    for node in skeleton.nodes:
        for name, what in ((node.id, "a node"), (node.item, "an item")):
            if name in RESERVED:
                problems.append(f"`{name}` is a word of expressions: use another name")
            elif name and name in taken:
                problems.append(f"`{name}` is already {taken[name]}: use another name")
            elif name:
                taken[name] = what
    return problems


def _places(skeleton: WorkflowSkeleton) -> Iterator[str]:
    places: dict[str, int] = {"": 0}
    for node in skeleton.nodes:
        if node.inside not in places:
            near = closest(node.inside, places)
            meant = f": did you mean `{near}`?" if near else ""
            yield f"`{node.id}`: nothing before it is called `{node.inside}`{meant}"
            return
        level = places[node.inside] + 1
        if level > _MOST_LEVELS:
            yield f"`{node.id}` lies more than {_MOST_LEVELS} levels deep"
        places |= dict.fromkeys(node.bodies(), level)
        if len(set(node.cases)) < len(node.cases):
            yield f"`{node.id}` has a case twice"
    used = {node.inside for node in skeleton.nodes}
    for place in places:
        if place and place not in used:
            yield f"nothing is inside `{place}`: add a node there"


def _edges(skeleton: WorkflowSkeleton, inputs: Sequence[str]) -> Iterator[str]:
    levels: dict[str, dict[str, set[str]]] = {}
    for node in skeleton.nodes:
        visible = [*skeleton.visible(node), *inputs]
        levels.setdefault(node.inside, {})[node.id] = set()
        for name in node.needs:
            if name not in visible:
                near = closest(name, visible)
                meant = f": did you mean `{near}`?" if near else ""
                yield f"`{node.id}` needs `{name}`, which it cannot see{meant}"
                continue
            for outer in (node, *skeleton.around(node)):
                if any(other.id == name for other in skeleton.inside(outer.inside)):
                    levels[outer.inside][outer.id].add(name)
    for graph in levels.values():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as cycle:
            ring = " needs ".join(f"`{name}`" for name in reversed(cycle.args[1]))
            yield f"these nodes wait for each other: {ring}"


def _outputs(
    skeleton: WorkflowSkeleton, inputs: Sequence[str], intention: Intention
) -> Iterator[str]:
    top = [*(node.id for node in skeleton.inside("")), *inputs]
    for field_ in intention.output:
        if field_.name not in skeleton.outputs:
            yield f"no node is behind the output `{field_.name}`"
    for name, node in skeleton.outputs.items():
        if node not in top:
            yield f"the output `{name}` comes from `{node}`, which is no node at the top"
        if name not in {each.name for each in intention.output}:
            yield f"nobody asked for the output `{name}`: leave it out"
