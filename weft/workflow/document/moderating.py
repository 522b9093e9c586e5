"""Who reads what a model writes before it is shown, as a document declares it. Reads nothing."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from weft.workflow.document.part import Name, Part
from weft.workflow.document.settings import Positive
from weft.workflow.document.shorthand import expands, shortens


class ModeratorSpec(Part):
    """A check of prompt and answer as one text, before the answer, or a piece of it, is shown."""

    call: str | None = Field(
        default=None,
        description="A function of the text, `./file.py:name`: what it says against it, or None.",
        min_length=1,
    )
    model: Name | None = Field(
        default=None, description="Another model of the file, which is asked for a verdict."
    )
    rules: str | None = Field(
        default=None, description="What that model is told to look for.", min_length=1
    )
    every: Positive | None = Field(
        default=None,
        description="So many tokens wait for one check; else a block of a diffusion model in this "
        "process, and of other models the whole answer.",
    )

    @model_validator(mode="after")
    def _one_judge(self) -> ModeratorSpec:
        if (self.call is None) == (self.model is None):
            hint = "write `moderator: ./guard.py:name`, or `{model: NAME}`"
            why = "needs `call` or `model`" if self.call is None else "has `call` and `model`"
            raise PydanticCustomError("origin", "the moderator {why}", {"why": why, "hint": hint})
        if self.rules is not None and self.model is None:
            context = {"where": ["rules"], "hint": "the function has its own"}
            raise PydanticCustomError("origin", "`rules` are for a `model`", context)
        return self


Moderator = Annotated[ModeratorSpec, expands("call", str | ModeratorSpec), shortens("call")]
"""`moderator: ./guard.py:name`, or a mapping."""
