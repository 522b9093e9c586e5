"""JSON by a schema, filled from a text that holds all of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from evals.speculative.cases.prompt import Prompt, conversation
from evals.speculative.cases.words import Visit, visits
from weft.core.values import JsonSchema

_TEXT: Final = {"type": "string", "maxLength": 60}
_COUNT: Final = {"type": "integer", "minimum": 0, "maximum": 9999}
SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "technician": _TEXT,
        "town": _TEXT,
        "machine": _TEXT,
        "fault": _TEXT,
        "repair": _TEXT,
        "day": {"enum": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]},
        "minutes": _COUNT,
        "euros": _COUNT,
    },
    "required": ["technician", "town", "machine", "fault", "repair", "day", "minutes", "euros"],
    "additionalProperties": False,
}


def prompts(count: int) -> Sequence[Prompt]:
    """`count` prompts, each with one filled form before it."""
    return [_prompt(number) for number in range(count)]


def _prompt(number: int) -> Prompt:
    (shown,), (asked,) = visits(f"shown form {number}", 1), visits(f"asked form {number}", 1)
    turns = _asked(shown), json.dumps(_filled(shown)), _asked(asked)
    return Prompt(f"agent_json-{number}", conversation(*turns), schema=SCHEMA)


def _asked(record: Visit) -> str:
    return f"Fill the form from the report. Answer with JSON.\n\n{record.sentence}"


def _filled(record: Visit) -> dict[str, str | int]:
    return {
        "technician": record.name,
        "town": record.town,
        "machine": record.thing,
        "fault": record.fault,
        "repair": record.repair,
        "day": record.day,
        "minutes": record.minutes,
        "euros": record.euros,
    }
