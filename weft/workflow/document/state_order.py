"""The order of writes and reads of a workflow's state at one level of nodes. Pure.

A node that reads a field waits for the nodes written before it that write the field, and sees what
these and its other ancestors write, folded in the order of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from weft.workflow.document.breaks import breaks_before
from weft.workflow.document.expressions import BadExpression
from weft.workflow.document.source import KeyPath
from weft.workflow.document.spec.document import bodies, walk
from weft.workflow.document.spec.nodes import BaseNode, Block, NodeSpec
from weft.workflow.document.spec.state import StateField
from weft.workflow.document.templates import TemplateUse, all_names, template_uses, uses_of

STATE = "state"
"""The name of the state in expressions; of no node of a workflow that declares one."""
Fields = Mapping[str, StateField]


def reads_in(use: TemplateUse, fields: Fields) -> frozenset[str]:
    """The fields that one template reads: all, where it uses the whole state."""
    found: set[str] = set()
    for reference in use.template.references:
        if reference.name == STATE and STATE not in use.bound:
            found |= {str(reference.path[0])} if reference.path else fields.keys()
    return frozenset(found & fields.keys())


def uses_in(step: BaseNode) -> Iterator[tuple[KeyPath, TemplateUse]]:
    """All templates of a node and of its bodies, with the paths of their nodes below `step`."""
    for path, inner in walk({"": step}):
        for use in template_uses(inner):
            yield path[2:], use
        for inside in bodies(inner):
            if isinstance(inside.body, Block):
                for use in uses_of(inside.body.result, "result"):
                    yield (*path[2:], *inside.path), use


def read_fields(step: BaseNode, fields: Fields) -> frozenset[str]:
    """The fields that a node, or a node in its bodies, reads."""
    return frozenset().union(*(reads_in(use, fields) for _, use in uses_in(step)))


def written_fields(step: BaseNode, fields: Fields) -> frozenset[str]:
    """The fields that a node, or a node in its bodies, writes."""
    return frozenset().union(*(inner.writes for _, inner in walk({"": step}))) & fields.keys()


def writes_inside(step: BaseNode) -> bool:
    """Whether a node in the bodies of `step` writes."""
    return any(inner.writes for path, inner in walk({"": step}) if len(path) > 2)


def replaced_nodes(nodes: Mapping[str, BaseNode]) -> dict[str, str]:
    """The owner of each node that only replaces another."""
    return {
        other: name
        for name, step in nodes.items()
        for other in (step.fallback, step.degrade)
        if other is not None
    }


@dataclass(frozen=True)
class StateOrder:
    """Who writes and reads the state at one level, `nodes`, and in what order.

    `writers`: the fields that each node writes, in declared order; of a container what its bodies
    write too. `readers`: the fields that each node reads.
    """

    nodes: Mapping[str, NodeSpec]
    writers: Mapping[str, frozenset[str]]
    readers: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, nodes: Mapping[str, NodeSpec], fields: Fields) -> StateOrder:
        """The order at the level `nodes`."""
        writers = {name: written_fields(step, fields) for name, step in nodes.items()}
        readers = {name: read_fields(step, fields) for name, step in nodes.items()}
        return cls(
            nodes,
            {name: written for name, written in writers.items() if written},
            {name: read for name, read in readers.items() if read},
        )

    @cached_property
    def needs(self) -> Mapping[str, frozenset[str]]:
        """For each node those that it waits for; without what a replacement waits for."""
        waits = breaks_before(self.nodes)
        explicit = {
            name: all_names(step).union({waits[name]} if name in waits else ()) & self.nodes.keys()
            for name, step in self.nodes.items()
        }
        return {name: explicit[name] | self.waits(name) for name in self.nodes}

    def waits(self, reader: str) -> frozenset[str]:
        """The writers, declared before `reader`, for which it waits because of what it reads."""
        found = set()
        owner = replaced_nodes(self.nodes).get(reader)
        for name in self.nodes:
            if name == reader:
                break
            both = self.writers.get(name, frozenset()) & self.readers.get(reader, frozenset())
            if both and name != owner:
                found.add(name)
        return frozenset(found)

    @cached_property
    def ancestors(self) -> Mapping[str, frozenset[str]]:
        """For each node all that have ended when it starts; a replacement's count for its owner."""
        direct = {name: set(needed) for name, needed in self.needs.items()}
        for other, owner in replaced_nodes(self.nodes).items():
            if owner in direct and other in direct:
                direct[owner] |= direct[other] - {owner}
        found: dict[str, frozenset[str]] = {}
        for name in direct:
            reached: set[str] = set()
            todo = list(direct[name])
            while todo:
                if (other := todo.pop()) not in reached:
                    reached.add(other)
                    todo += found.get(other, direct[other])
            found[name] = frozenset(reached)
        return found

    def seen(self, reader: str) -> tuple[str, ...]:
        """The writers whose writes `reader` sees, in declared order."""
        fields, before = self.readers.get(reader, frozenset()), self.ancestors[reader]
        return tuple(
            name for name in self.writers if name in before and self.writers[name] & fields
        )

    def ordered(self, one: str, other: str) -> bool:
        """Whether one of both nodes has ended when the other starts."""
        return one in self.ancestors[other] or other in self.ancestors[one]


def state_waits(nodes: Mapping[str, NodeSpec], fields: Fields) -> Iterator[tuple[str, str]]:
    """Each reader of a level, with each writer that it waits for; none of wrong templates."""
    if not fields:
        return
    try:
        order = StateOrder.of(nodes, fields)
    except BadExpression:
        return  # the check of references reports it
    for reader in order.readers:
        for writer in order.waits(reader):
            yield reader, writer
