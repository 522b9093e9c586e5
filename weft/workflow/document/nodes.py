"""The kinds of nodes that hold others, and the union of all kinds. Nothing runs here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field
from pydantic import Tag as PydanticTag

from weft.workflow.document.leaves import (
    AskNode,
    CallNode,
    JoinMode,
    JoinNode,
    ModelNode,
    ReduceNode,
    ToolNode,
    ValueNode,
    WorkflowNode,
)
from weft.workflow.document.part import Name, Part, Template, Value
from weft.workflow.document.settings import Positive
from weft.workflow.document.step import Step


class Block(Part):
    """Several nodes with a result."""

    nodes: dict[Name, NodeSpec] = Field(description="The nodes, by name.", min_length=1)
    result: Value = Field(description="What they make together, usually `{{ a_node }}`.")


class MapNode(Step):
    """Do the same for every item of a list, in parallel. The value is the list of results.

    Inside, the item has the name that `as` gives it, and `index` counts from 0.
    """

    kind: ClassVar[str] = "map"

    over: Value = Field(alias="map", description="The list.")
    item: Name = Field(default="item", alias="as", description="What an item is called inside.")
    width: Positive | None = Field(default=None, description="At most so many items at once.")
    mode: JoinMode = Field(default="all", description="How many items must succeed.")
    k: Positive | None = Field(default=None, description="How many, when the mode is quorum.")
    valid: Template | None = Field(
        default=None, description="What `value` must satisfy, when the mode is first_valid."
    )
    otherwise: Value = Field(
        default=None,
        description="What stands in for a failed item when the mode is best_effort. Without it "
        "items that failed are dropped, and the result is partial.",
    )
    do: Body = Field(description="What to do with an item: a node, or `nodes` with a `result`.")


class BranchNode(Step):
    """Go one of several ways. The value is that of the way taken."""

    kind: ClassVar[str] = "branch"

    branch: Value = Field(description="Its text picks the case: `true` and `false` for tests.")
    cases: Annotated[
        dict[str, Body],
        Field(
            min_length=1,
            description="The ways, by text. `default` is taken when no other fits; without it "
            "the node is left out then.",
        ),
    ]


class LoopNode(Step):
    """Repeat until a condition holds. The value is that of the last iteration.

    Inside and in `until` the last value is called what `as` says; `iteration` counts from 1.
    """

    kind: ClassVar[str] = "loop"

    loop: Body = Field(description="What to repeat: a node, or `nodes` with a `result`.")
    item: Name = Field(
        default="value", alias="as", description="The last value, inside and in `until`."
    )
    start: Value = Field(default=None, description="Its value in the first iteration.")
    until: Template = Field(description="Ends the loop when true; sees the new value.")
    max: Positive = Field(description="At most so many iterations.")
    on_limit: Literal["last", "fail"] = Field(
        default="last", description="After the last iteration: take its value, or fail."
    )


KINDS: tuple[type[Step], ...] = (
    ToolNode,
    CallNode,
    ModelNode,
    MapNode,
    ReduceNode,
    JoinNode,
    BranchNode,
    LoopNode,
    WorkflowNode,
    AskNode,
    ValueNode,
)
KIND_NAMES = tuple(kind.kind for kind in KINDS)


def tag(kind: str) -> str:
    """How the union marks the member `kind`; never equal to a key of a document."""
    return f"<{kind}>"


def _kind(value: Any) -> str | None:
    if isinstance(value, Step):
        return tag(value.kind)
    if not isinstance(value, Mapping):
        return None
    return next((tag(kind) for kind in KIND_NAMES if kind in value), None)


def _body_kind(value: Any) -> str | None:
    if isinstance(value, Block) or (isinstance(value, Mapping) and "nodes" in value):
        return tag("block")
    return tag("node")


NodeSpec = Annotated[
    Annotated[ToolNode, PydanticTag(tag("tool"))]
    | Annotated[CallNode, PydanticTag(tag("call"))]
    | Annotated[ModelNode, PydanticTag(tag("model"))]
    | Annotated[MapNode, PydanticTag(tag("map"))]
    | Annotated[ReduceNode, PydanticTag(tag("reduce"))]
    | Annotated[JoinNode, PydanticTag(tag("join"))]
    | Annotated[BranchNode, PydanticTag(tag("branch"))]
    | Annotated[LoopNode, PydanticTag(tag("loop"))]
    | Annotated[WorkflowNode, PydanticTag(tag("workflow"))]
    | Annotated[AskNode, PydanticTag(tag("ask"))]
    | Annotated[ValueNode, PydanticTag(tag("value"))],
    Discriminator(_kind),
]
"""One node; its kind is the key that is among `KIND_NAMES`."""

Body = Annotated[
    Annotated[NodeSpec, PydanticTag(tag("node"))] | Annotated[Block, PydanticTag(tag("block"))],
    Discriminator(_body_kind),
]
"""The inside of a map, a loop or a case: one node, or a block of several."""
