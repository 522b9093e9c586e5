"""Other tools for what a tool node does. Calls nothing."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainSerializer

from weft.workflow.document.part import Part, Value


class AlternativeSpec(Part):
    """A tool that may be called instead."""

    tool: str = Field(description="A name under `tools`, or `./file.py:name`.", min_length=1)
    arguments: dict[str, Value] | None = Field(
        default=None, alias="with", description="Its arguments, by name; else those of the node."
    )
    cost: float | None = Field(
        default=None,
        gt=0,
        description="What a call costs, in any unit; the node's own tool costs 1. The cheapest "
        "that works goes first. Without it: 2 for the first alternative, 3 for the second, ...",
    )


def _expand(value: object) -> object:
    return {"tool": value} if isinstance(value, str) else value


def _shorten(alternative: AlternativeSpec) -> object:
    fields: dict[str, Any] = alternative.model_dump(by_alias=True, exclude_unset=True)
    return fields["tool"] if list(fields) == ["tool"] else fields


Alternative = Annotated[
    AlternativeSpec,
    BeforeValidator(_expand, json_schema_input_type=str | AlternativeSpec),
    PlainSerializer(_shorten),
]
"""`other_tool`, or a mapping with arguments of its own."""
