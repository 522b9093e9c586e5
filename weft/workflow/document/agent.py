"""How a model is to act with tools, as a document declares it: an agent and its caps.

Runs none.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from weft.workflow.document.part import Part
from weft.workflow.document.settings import Positive

Loop = Literal["compiler", "divide", "react", "parallel-react"]


class AgentSpec(Part):
    """An agent: it has the model call tools, and conclude, until the question is answered."""

    loop: Loop = Field(
        description="compiler: a plan of calls that refer to one another; divide: rounds of "
        "independent calls; react: one call at a time; parallel-react: the model's own calls."
    )
    rounds: Positive | None = Field(default=None, description="At most so many plans; 4.")
    calls: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="At most so many calls of tools; 64."
    )
    constrain: Literal["auto", "line", "plan", "never"] | None = Field(
        default=None, description="How firmly a plan is held to its grammar; auto."
    )


def _expand(value: object) -> object:
    return {"loop": value} if isinstance(value, str) else value


def _shorten(spec: AgentSpec) -> object:
    fields: dict[str, Any] = spec.model_dump(exclude_unset=True)
    return fields["loop"] if list(fields) == ["loop"] else fields


Agentic = Annotated[
    AgentSpec,
    BeforeValidator(_expand, json_schema_input_type=Loop | AgentSpec),
    PlainSerializer(_shorten),
]
"""`agent: compiler`, or a mapping."""
