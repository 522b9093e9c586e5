"""Other tools for what a tool node does. Calls nothing."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from weft.workflow.document.part import Part, Value
from weft.workflow.document.shorthand import expands, shortens


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


Alternative = Annotated[AlternativeSpec, expands("tool", str | AlternativeSpec), shortens("tool")]
"""`other_tool`, or a mapping with arguments of its own."""
