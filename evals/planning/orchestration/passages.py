"""A canned search tool: text of a usual length about whatever was asked. Knows no facts itself."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from evals.planning.orchestration.task import Canned
from weft.core.values import ToolSpec

_SENTENCES = (
    "It is described at length in several works of reference.",
    "Its history has been told more than once, not always in the same way.",
    "Most sources agree about the dates, and few about what they mean.",
    "The name is also used for other things, which are listed elsewhere.",
    "Early reports were short and left out what later became important.",
    "Much of what is known comes from people who were there.",
)
_PARAMETERS = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
    "additionalProperties": False,
}


def passage(about: str) -> str:
    """Three to six sentences about `about`, the same each time."""
    draw = Random(about)
    chosen = draw.sample(_SENTENCES, draw.randint(2, 5))
    return " ".join([f"{about} has an article of its own.", *chosen])


def search(facts: Mapping[str, float] | None = None) -> Canned:
    """`search(query)`: `{"text"}`, and with `facts` (by query) `{"text", "value"}`."""
    properties: dict[str, Any] = {"text": {"type": "string"}}
    if facts is not None:
        properties["value"] = {"type": "number"}
    spec = ToolSpec(
        "search",
        "Looks the query up in an encyclopedia.",
        _PARAMETERS,
        {"type": "object", "properties": properties, "required": list(properties)},
        pure=True,
    )

    def found(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        query = str(arguments["query"])
        text = passage(query)
        return {"text": text} if facts is None else {"text": text, "value": facts[query]}

    return Canned(spec, found)
