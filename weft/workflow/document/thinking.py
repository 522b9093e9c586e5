"""How a model is to think, as a document declares it: a strategy and its caps. Thinks nothing."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from weft.workflow.document.part import Part, Value
from weft.workflow.document.quantity import Tokens
from weft.workflow.document.settings import Positive
from weft.workflow.document.shorthand import expands, shortens


class ThinkSpec(Part):
    """A strategy that spends more than one model call on a question, and what it may spend."""

    strategy: str = Field(
        description="`sample`, `parathinker`, ...: `weft think --list` tells them.", min_length=1
    )
    width: Positive | None = Field(
        default=None, description="At most so many threads or samples side by side; 8."
    )
    budget: Annotated[Tokens, Field(ge=1)] | None = Field(
        default=None,
        description="At most so many generated tokens in all, such as 20000tok; else "
        "width * max_tokens * rounds.",
    )
    path_tokens: Annotated[Tokens, Field(ge=1)] | None = Field(
        default=None,
        description="At most so many generated tokens on the critical path: a thread's own, and of "
        "each fork those of its longest child; else no cap.",
    )
    depth: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="How deep forks may nest; 2."
    )
    rounds: Positive | None = Field(
        default=None, description="How often one thread may fork, or how many rounds there are; 8."
    )
    max_tokens: Positive | None = Field(
        default=None, description="The longest thread or sample; 1024."
    )
    answer_tokens: Positive | None = Field(
        default=None, description="How much of the budget is kept back for the answer; 512."
    )
    temperature: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="0: always the likeliest token; 0.7."
    )
    top_p: float | None = Field(default=None, gt=0, le=1, description="Nucleus sampling.")
    seed: int | None = Field(
        default=None, ge=0, description="Makes sampling repeatable; else that of the run."
    )
    settings: dict[str, JsonValue] = Field(
        default_factory=dict, description="What only this strategy knows."
    )


class NodeThinkSpec(ThinkSpec):
    """How the model of one node thinks, and about which documents."""

    documents: Value = Field(
        default=None,
        description="Texts that the question is about: a list of texts or of {name, text}, or a "
        "mapping of names to texts.",
    )


Think = Annotated[ThinkSpec, expands("strategy", str | ThinkSpec), shortens("strategy")]
"""`think: sample`, or a mapping."""

NodeThink = Annotated[NodeThinkSpec, expands("strategy", str | NodeThinkSpec), shortens("strategy")]
"""`think: sample`, or a mapping that may also hold `documents`."""
