"""Facts in a document, checked where they are written: `at(kitchen)`, `not holding(*)`."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from weft.core.errors import BuildError
from weft.core.facts import parse_pattern


def _check_fact(text: str) -> str:
    try:
        parse_pattern(text)
    except BuildError as error:
        context = {"why": error.message, "hint": error.hint or ""}
        raise PydanticCustomError("fact", "{why}", context) from None
    return text


Facts = list[Annotated[str, AfterValidator(_check_fact)]]
"""A list of facts, or of patterns of facts."""
