"""A whole workflow as one frozen value. Runs and resolves nothing."""

from __future__ import annotations

from pydantic import Field

from weft.workflow.document.declarations import InputSpec, Model, Tool
from weft.workflow.document.nodes import NodeSpec
from weft.workflow.document.part import Name, Part, Value
from weft.workflow.document.settings import RunSpec


class Document(Part):
    """A workflow: what goes in, what it uses, what it does, what comes out."""

    name: str = Field(
        description="What the workflow is called.", pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
    )
    description: str | None = Field(default=None, description="One sentence for people.")
    inputs: dict[Name, InputSpec] = Field(
        default_factory=dict,
        description="What a run is given: `string`, `integer`, `[string]`, ... or a JSON Schema.",
    )
    models: dict[Name, Model] = Field(
        default_factory=dict, description="The language models, by a name of your own."
    )
    tools: dict[Name, Tool] = Field(
        default_factory=dict, description="The tools, by a name of your own."
    )
    run: RunSpec = Field(default_factory=RunSpec, description="Limits of a whole run.")
    nodes: dict[Name, NodeSpec] = Field(
        description="What there is to do. A node starts as soon as the values it uses are there.",
        min_length=1,
    )
    outputs: dict[Name, Value] = Field(
        description="What comes out, usually `{{ a_node }}`.", min_length=1
    )


class ToolDocument(Document):
    """A workflow file of which only the tools are wanted: it may have nothing to do."""

    name: str = "tools"
    nodes: dict[Name, NodeSpec] = Field(default_factory=dict)
    outputs: dict[Name, Value] = Field(default_factory=dict)
