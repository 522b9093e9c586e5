"""What a workflow is for: its inputs, its outputs and their context, as a typed form (Opus)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, cast, get_args

from weft.core.errors import BuildError
from weft.core.ids import is_name
from weft.validation import violation
from weft.workflow.author.text_limits import fits_text
from weft.workflow.document.spec.fields import RESERVED

ValueType = Literal[
    "string",
    "integer",
    "number",
    "boolean",
    "object",
    "list of strings",
    "list of numbers",
    "list of objects",
]
VALUE_TYPES: Final = get_args(ValueType)
NAME: Final = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]{0,59}$"}
"""The JSON Schema of names that a model invents."""


def declared_type(name: str) -> Any:
    """A type as `inputs` of a file and the `schema` of a model node declare it."""
    item = name.removeprefix("list of ")
    return name if item == name else [item.removesuffix("s")]


@dataclass(frozen=True, slots=True)
class IntentionField:
    """One input or output of a workflow."""

    name: str
    type: ValueType = "string"
    description: str = ""


@dataclass(frozen=True, slots=True)
class Intention:
    """The form from which a workflow is written. `context`: what else the author should know."""

    input: tuple[IntentionField, ...]
    output: tuple[IntentionField, ...]
    context: str = ""

    def plain(self) -> dict[str, Any]:
        """As JSON data, which `read_intention` reads."""
        return cast(dict[str, Any], json.loads(json.dumps(asdict(self))))


def intention_schema() -> dict[str, Any]:
    """The JSON Schema of an intention."""
    one = {
        "type": "object",
        "properties": {
            "name": NAME,
            "type": {"enum": list(VALUE_TYPES)},
            "description": {"type": "string", "maxLength": 300},
        },
        "required": ["name", "type"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "input": {"type": "array", "items": one, "maxItems": 12},
            "output": {"type": "array", "items": one, "minItems": 1, "maxItems": 12},
            "context": {"type": "string", "maxLength": 2000},
        },
        "required": ["input", "output"],
        "additionalProperties": False,
    }


def read_intention(raw: object, source: str = "the intention") -> Intention:
    """The intention in plain data. Raises: `BuildError`, which names `source`."""
    why = violation(raw, intention_schema())
    if why is None and not fits_text(raw):
        why = "it has characters that no file can hold"
    if why is not None:
        hint = 'write {"input": [{"name", "type", "description"}], "output": [...], "context": ""}'
        raise BuildError(f"{source} does not fit: {why}", hint=hint)
    assert isinstance(raw, Mapping)
    made = Intention(_fields(raw["input"]), _fields(raw["output"]), raw.get("context", ""))
    for part in (made.input, made.output):
        names = [field.name for field in part]
        wrong = [n for n in names if n in RESERVED or not is_name(n) or names.count(n) > 1]
        if wrong:
            hint = "use another name, and each one once"
            raise BuildError(f"{source}: `{wrong[0]}` cannot be a name here", hint=hint)
    return made


def _fields(raw: list[dict[str, Any]]) -> tuple[IntentionField, ...]:
    return tuple(IntentionField(**each) for each in raw)
