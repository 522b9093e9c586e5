"""What a flow declares, as values, text and drawings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from weft.core.errors import BuildError
from weft.workflow.document import NodeSpec, WorkflowDocument
from weft.workflow.document.inputs import coerce_inputs
from weft.workflow.document.spec.declarations import InputSpec
from weft.workflow.document.spec.document import walk
from weft.workflow.document.spec.nodes import ToolNode
from weft.workflow.document.state_order import STATE
from weft.workflow.document.unit import node_name
from weft.workflow.document.writer import check_portable, to_yaml
from weft.workflow.flow.builder import FlowBuilder
from weft.workflow.flow.handle import NodeHandle

if TYPE_CHECKING:
    from weft.workflow.document.graph_view import GraphView


class FlowViews(FlowBuilder):
    """Views of the document of a flow."""

    _name: str
    _description: str | None
    _state: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self._name

    @property
    def description(self) -> str:
        """One sentence for people."""
        return self._description or ""

    @property
    def state(self) -> Any:
        """The handle of the state, for nodes and outputs: `flow.state.notes`.

        Raises: `BuildError` for a flow without one.
        """
        if not self._state:
            hint = 'Flow(name, state={"notes": {"type": list[str], "reduce": "append"}})'
            raise BuildError("the flow has no state", hint=hint)
        return NodeHandle(STATE, self)

    @property
    def inputs(self) -> Mapping[str, InputSpec]:
        """The inputs, by name."""
        return self.document.inputs

    @property
    def nodes(self) -> Mapping[str, NodeSpec]:
        """The nodes at the top, by name."""
        return self.document.nodes

    @property
    def alternatives(self) -> Mapping[str, Sequence[str]]:
        """The alternative tools of nodes, by the path of the node."""
        steps = ((node_name(path), step) for path, step in walk(self.document.nodes))
        return {
            str(name): [other.tool for other in step.alternatives]
            for name, step in steps
            if isinstance(step, ToolNode) and step.alternatives
        }

    @property
    def outputs(self) -> Mapping[str, Any]:
        """The outputs, by name: values with templates."""
        return self.document.outputs

    @property
    def document(self) -> WorkflowDocument:
        """The whole workflow as one frozen value. Raises: `BuildError` when it is not complete."""
        return self.unit.document

    def coerce_inputs(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Texts, as from a command line, converted to the types that the inputs declare.

        Raises: `InputError` with every text that cannot be read.
        """
        return coerce_inputs(self.document, given)

    def to_yaml(self) -> str:
        """The workflow as a file, which `weft.loads` reads back as an equal workflow.

        Raises: `BuildError` when it uses functions or clients that no file can name.
        """
        check_portable(self.unit)
        return to_yaml(self.document)

    def graph_view(self) -> GraphView:
        """The graph for drawing: nodes and edges, with bodies as groups inside nodes."""
        from weft.workflow.document.graph_view import graph_view

        return graph_view(self.document)

    def mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        from weft.workflow.document.graph_view import mermaid

        return mermaid(self.graph_view())
