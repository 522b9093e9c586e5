"""What names mean at the place where nodes are made: a value that is there, or a node's to come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from weft.core.frozen import constructor
from weft.core.ids import NodeId
from weft.engine.node import Edge


@dataclass(frozen=True, slots=True)
class Names:
    """`inputs` are the workflow's own; `values` those and the items around; `sources` the nodes.

    `settled`: edges show all that the nodes around are needed for, so that a join may cancel the
    branches that it does not need.
    """

    inputs: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, NodeId] = field(default_factory=dict)
    settled: bool = True

    @classmethod
    def of_inputs(cls, inputs: Mapping[str, Any]) -> Names:
        """The names at the top of a workflow."""
        return cls(inputs, inputs)

    def of_run(self, inputs: Mapping[str, Any]) -> Names:
        """The same names at the top, for a run with other inputs."""
        return Names(inputs, inputs, self.sources, self.settled)

    def bind(self, bindings: Mapping[str, Any]) -> Names:
        """With the names of a body: values, or `Edge`s to where the value is being computed."""
        edges = {name: edge.source for name, edge in bindings.items() if isinstance(edge, Edge)}
        values = {name: value for name, value in bindings.items() if name not in edges}
        sources = {**self.sources, **edges} if edges else self.sources
        return _names(self.inputs, {**self.values, **values}, sources, self.settled)

    def with_nodes(self, nodes: Mapping[str, NodeId], *, settled: bool) -> Names:
        """With the nodes of one more level."""
        settled = settled and self.settled
        return replace(self, sources={**self.sources, **nodes}, settled=settled)

    def is_node(self, name: str) -> bool:
        """True when the value of `name` comes from a node."""
        return name in self.sources and name not in self.values

    def edges(self, names: Iterable[str]) -> tuple[Edge, ...]:
        """An edge for each of `names` that is a node's."""
        return tuple(Edge(self.sources[name], name) for name in names if self.is_node(name))

    def given(self, names: Iterable[str]) -> dict[str, Any]:
        """The values of those of `names` that are there."""
        return {name: self.values[name] for name in names if name in self.values}


_names = constructor(Names)  # one for each item of a map
