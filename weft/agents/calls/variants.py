"""The same tool under another schema: renamed, with enums, lists, defaults and more parameters.

A caller that only knows one style of declaration learns that style. Split the tools first: a
variant belongs to the part of its original.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.calls.catalogue import CallTool
from weft.agents.calls.kinds import examples, kind_of, words_of
from weft.agents.calls.purpose import LOOKUP, purpose_of

_EXTRAS: Final[Mapping[str, Mapping[str, Any]]] = {
    "limit": {"type": "integer", "description": "The maximum number of results. Default is 10."},
    "max_results": {"type": "integer", "description": "How many results to return at most."},
    "page": {"type": "integer", "description": "The page of the results. Default is 1."},
    "unit": {
        "type": "string",
        "enum": ["metric", "imperial"],
        "description": "The system of units. Default is 'metric'.",
    },
    "output_format": {
        "type": "string",
        "enum": ["json", "csv", "table", "text"],
        "description": "The format of the output (default: json).",
    },
    "sort_order": {
        "type": "string",
        "enum": ["ascending", "descending"],
        "description": "The order of the results. Optional.",
    },
    "sort_by": {
        "type": "string",
        "enum": ["date", "relevance", "popularity", "price", "rating"],
        "description": "What to sort the results by.",
    },
    "language": {"type": "string", "description": "Language of the answer. Default is 'English'."},
    "include_details": {"type": "boolean", "description": "Whether to include details. Optional."},
    "include_history": {"type": "boolean", "description": "Include past values (default: false)."},
    "include_images": {"type": "boolean", "description": "Whether images are included."},
    "detailed": {"type": "boolean", "description": "If true, a detailed report is returned."},
    "precision": {"type": "integer", "description": "Number of decimal places. Default is 2."},
    "timeout_seconds": {"type": "integer", "description": "Seconds to wait. Optional."},
    "currency": {"type": "string", "description": "Currency of amounts, e.g. USD, EUR, GBP."},
    "year": {"type": "integer", "description": "The year to look at. Defaults to the current one."},
    "as_of_date": {"type": "string", "description": "The date in the format yyyy-mm-dd. Optional."},
    "tags": {"type": "array", "items": {"type": "string"}, "description": "Keywords to filter by."},
    "fields": {
        "type": "array",
        "items": {"type": "string", "enum": ["name", "date", "price", "status", "owner", "size"]},
        "description": "The fields to return. All by default.",
    },
    "notify": {"type": "boolean", "description": "Whether to notify the owner."},
    "min_rating": {"type": "number", "description": "The lowest rating to accept, from 1 to 5."},
    "region": {
        "type": "string",
        "description": "The region (optional), e.g. Europe, Asia, Africa.",
    },
    "priority": {"type": "string", "enum": ["low", "medium", "high"], "description": "Priority."},
}
_OPENINGS: Final = (
    "Get",
    "Fetch",
    "Find",
    "Look up",
    "Return",
    "Provides",
    "Retrieves",
    "Retrieve",
)


@dataclass(frozen=True, slots=True)
class ToolVariant:
    """`tool` as it is shown; `sources`: by shown parameter, the name and schema to draw from."""

    tool: CallTool
    sources: Mapping[str, tuple[str, Mapping[str, Any]]]


def as_is(tool: CallTool) -> ToolVariant:
    """The tool itself."""
    return ToolVariant(tool, {name: (name, schema) for name, schema in tool.properties.items()})


def vary(tool: CallTool, rng: random.Random) -> ToolVariant:
    """The tool under a drawn schema that accepts the same requests."""
    camel = rng.random() < 0.2
    shown: dict[str, Any] = {}
    sources: dict[str, tuple[str, Mapping[str, Any]]] = {}
    required = []
    for name, schema in tool.properties.items():
        varied, drawn = _parameter(name, dict(schema), name in tool.required, rng)
        label = name + "s" if varied.get("type") == "array" and not name.endswith("s") else name
        label = _camel(label) if camel else label
        shown[label], sources[label] = varied, (name, drawn)
        if name in tool.required:
            required.append(label)
    for name in rng.sample(list(_EXTRAS), rng.choice((0, 0, 1, 1, 2))):
        label = _camel(name) if camel else name
        if not {words_of(label).split()[-1]} & {words_of(one).split()[-1] for one in shown}:
            shown[label] = dict(_EXTRAS[name])
            sources[label] = (name, _EXTRAS[name])
    parameters = {"type": "object", "properties": shown, "required": required}
    made = CallTool(_name(tool, rng), _description(tool, rng), parameters, tool.field)
    return ToolVariant(made, sources)


def _parameter(
    name: str, schema: dict[str, Any], required: bool, rng: random.Random
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The shown schema, and the one to draw from: they differ in what the description tells."""
    kind, given = kind_of(name, schema), examples(schema)
    shown = dict(schema)
    text = str(schema.get("description", ""))
    if schema.get("type") == "string" and kind in {"class", "other", "unit"} and len(given) > 1:
        if kind != "other" and rng.random() < 0.45:
            shown["enum"] = list(dict.fromkeys(given))
            text = _without_examples(text) if rng.random() < 0.7 else text
            return shown | {"description": text}, shown
        if rng.random() < 0.14:
            shown = {"type": "array", "items": {"type": "string"}}
            drawn = {"type": "array", "items": {"type": "string", "description": text}}
            return shown | {"description": _plural(text)}, drawn
    if (
        schema.get("type") in {"number", "integer"}
        and kind == "quantity"
        and (len(name) > 2 and rng.random() < 0.05)
    ):
        items = {"type": schema["type"]}
        return {"type": "array", "items": items, "description": _plural(text)}, {
            "type": "array",
            "items": items | {"description": text},
        }
    if given and rng.random() < 0.5:
        text = _without_examples(text)
    if not required and rng.random() < 0.3:
        text = rng.choice((f"{text}. Optional.", f"Optional. {text}", f"{text} (optional)"))
    elif not required and given and schema.get("type") == "string" and rng.random() < 0.3:
        text = f"{text.rstrip('. ')}. Default is '{given[0]}'."
    shown["description"] = text
    return shown, schema


def _name(tool: CallTool, rng: random.Random) -> str:
    words = words_of(tool.name).split()
    purpose = purpose_of(tool)
    if words[0] in LOOKUP and len(words) > 1:
        words[0] = rng.choice((words[0], "get", "fetch", "find", "retrieve", ""))
    elif words[0] == "calculate" and len(words) > 1:
        words[0] = rng.choice(("calculate", "compute", "calc", "calculate"))
    elif len(words) == 1 and purpose.verb.isalpha() and words[0] != purpose.verb:
        words = [purpose.verb, *words]
    words = [word for word in words if word]
    snake = "_".join(words)
    form = rng.random()
    if form < 0.5:
        return snake
    if form < 0.65:
        return _camel(snake)
    field = re.findall(r"[a-z]+", tool.field.lower()) or words
    prefix = rng.choice((field[0], words[-1], "_".join(words[1:]) or field[0]))
    rest = words if prefix == field[0] else words[:-1] if prefix == words[-1] else words[:1]
    rest = rest or words
    return f"{prefix}.{'_'.join(rest)}"


def _description(tool: CallTool, rng: random.Random) -> str:
    text = tool.description.strip()
    purpose = purpose_of(tool)
    if purpose.verb in {"retrieve", "get"} and rng.random() < 0.6:
        text = f"{rng.choice(_OPENINGS)} {purpose.rest}"
    return f"{text.rstrip('.')}." if rng.random() < 0.6 else text


def _without_examples(text: str) -> str:
    return re.sub(r"\s*\((?:e\.?g|for example|such as)[^()]*\)", "", text, flags=re.IGNORECASE)


def _plural(text: str) -> str:
    text = _without_examples(text)
    return f"A list. {text}" if text else "A list of values."


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
