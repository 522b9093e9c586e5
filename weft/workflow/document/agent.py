"""How a model is to act with tools, as a document declares it: an agent and its caps.

Runs none.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from weft.workflow.document.part import Part
from weft.workflow.document.settings import Positive
from weft.workflow.document.shorthand import expands, shortens

Loop = Literal["compiler", "divide", "react", "parallel-react"]


Bound = Annotated[int, Field(ge=0)] | None


class GrammarSpec(Part):
    """How long the values of a plan may be where its model is held to a grammar."""

    chars: Bound = Field(default=None, description="Characters of a string; 4,000.")
    items: Bound = Field(default=None, description="Items of a list, free keys; 1,000.")
    depth: Bound = Field(default=None, description="Lists and objects in one another; 16.")
    digits: Bound = Field(default=None, description="Digits before the point; 309.")
    decimals: Bound = Field(default=None, description="Digits behind the point; 40.")


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
    grammar: GrammarSpec | None = Field(
        default=None, description="How long its values may be where it is held to one."
    )


Agentic = Annotated[AgentSpec, expands("loop", Loop | AgentSpec), shortens("loop")]
"""`agent: compiler`, or a mapping."""
