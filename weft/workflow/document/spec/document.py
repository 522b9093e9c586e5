"""A whole workflow as one frozen value, its JSON Schema, and the walk over its nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import Field
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema

from weft.workflow.document.spec.declarations import InputSpec, Model, Tool
from weft.workflow.document.spec.evaluation import EvaluationSpec
from weft.workflow.document.spec.fields import Name, SpecPart, Value, optional, optional_mapping
from weft.workflow.document.spec.nodes import (
    BaseNode,
    Block,
    Body,
    BranchNode,
    LoopNode,
    MapNode,
    NodeSpec,
    WorkflowNode,
)
from weft.workflow.document.spec.optimise import OptimiseSpec
from weft.workflow.document.spec.settings import RunSpec, Schedules, ScheduleSpec
from weft.workflow.document.spec.state import StateFields

Path = tuple[str | int, ...]


class WorkflowDocument(SpecPart):
    """A workflow: inputs, models and tools, nodes, outputs."""

    name: str = Field(
        description="What the workflow is called.", pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
    )
    description: str | None = optional("One sentence for people.")
    inputs: dict[Name, InputSpec] = optional_mapping(
        "What a run is given: `string`, `integer`, `[string]`, ... or a JSON Schema."
    )
    models: dict[Name, Model] = optional_mapping("The language models, by a name of your own.")
    tools: dict[Name, Tool] = optional_mapping("The tools, by a name of your own.")
    state: dict[Name, StateFields] = optional_mapping(
        "What nodes write with `writes` and read as `{{ state.x }}`: fields with a type each."
    )
    optimise: OptimiseSpec | None = optional("What an optimiser may change.")
    run: RunSpec = Field(default_factory=RunSpec, description="Limits of a whole run.")
    schedule: Schedules | None = optional(
        "When workers run it: one schedule, or a list. `weft schedule apply` registers them."
    )
    nodes: dict[Name, NodeSpec] = Field(
        description="What there is to do. A node starts as soon as the values it uses are there.",
        min_length=1,
    )
    outputs: dict[Name, Value] = Field(
        description="What comes out, usually `{{ a_node }}`.", min_length=1
    )
    evaluation: EvaluationSpec | None = optional("How `weft eval` measures it.")

    @property
    def schedules(self) -> tuple[tuple[Path, ScheduleSpec], ...]:
        """The declared schedules, each with its path in the document."""
        if isinstance(self.schedule, list):
            return tuple((("schedule", at), one) for at, one in enumerate(self.schedule))
        return () if self.schedule is None else ((("schedule",), self.schedule),)


class ToolDocument(WorkflowDocument):
    """A workflow file that is read only for its tools; it may have no nodes."""

    name: str = "tools"
    nodes: dict[Name, NodeSpec] = Field(default_factory=dict)
    outputs: dict[Name, Value] = Field(default_factory=dict)


class _Generator(GenerateJsonSchema):
    """Pydantic's generator without its titles, which only repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - its signature
        return False

    def generate(self, schema: CoreSchema, mode: Any = "validation") -> dict[str, Any]:
        made = super().generate(schema, mode)
        for definition in made.get("$defs", {}).values():
            definition.pop("title", None)
        return made


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of workflow files, as far as structure goes."""
    made = WorkflowDocument.model_json_schema(by_alias=True, schema_generator=_Generator)
    return {"$schema": _Generator.schema_dialect, **made, "title": "weft workflow"}


@dataclass(frozen=True, slots=True)
class NodeBody:
    """A body of a node: its path in the node, and the names that exist only in it."""

    path: Path
    body: Body
    bound: tuple[str, ...] = ()


def bodies(step: BaseNode) -> tuple[NodeBody, ...]:
    """The bodies of a node, in order; none for most kinds."""
    match step:
        case MapNode():
            return (NodeBody(("do",), step.do, (step.item, "index")),)
        case LoopNode():
            return (NodeBody(("loop",), step.loop, (step.item, "iteration")),)
        case BranchNode():
            return tuple(NodeBody(("cases", key), case) for key, case in step.cases.items())
        case _:
            return ()


def walk(nodes: Mapping[str, BaseNode], path: Path = ("nodes",)) -> Iterator[tuple[Path, BaseNode]]:
    """Every node with its path, outer nodes before inner ones."""
    for name, step in nodes.items():
        yield from _walk(step, (*path, name))


def walk_placed(
    nodes: Mapping[str, BaseNode], on: str | None = None
) -> Iterator[tuple[Path, BaseNode, str | None]]:
    """As `walk`, each node with the innermost `on` of the nodes around it; `on`: of all nodes."""
    around: list[tuple[Path, str]] = []
    for path, step in walk(nodes):
        while around and path[: len(around[-1][0])] != around[-1][0]:
            around.pop()
        yield path, step, around[-1][1] if around else on
        if isinstance(step, MapNode | WorkflowNode) and step.on is not None:
            around.append((path, step.on))


def _walk(step: BaseNode, path: Path) -> Iterator[tuple[Path, BaseNode]]:
    yield path, step
    for inside in bodies(step):
        below = (*path, *inside.path)
        if isinstance(inside.body, Block):
            yield from walk(inside.body.nodes, (*below, "nodes"))
        else:
            yield from _walk(inside.body, below)


def node_address(path: Path) -> str:
    """The address of the node at a path of `walk`: `notes/draft`, `notes/do`, `route/CASE/a`."""
    found: list[str] = []
    rest = list(path)
    while rest:
        part = rest.pop(0)
        if part in ("nodes", "cases"):
            found.append(str(rest.pop(0)))
        elif rest[:1] != ["nodes"]:
            found.append(str(part))
    return "/".join(found)
