"""A person's typed words as the value that a question's JSON Schema asks for. Prompts nobody."""

from __future__ import annotations

import json
from collections.abc import Mapping

from weft.cli.text import one_line
from weft.cli.values import Json
from weft.core.errors import InputError

_YES = frozenset(("y", "yes", "true", "1"))
_NO = frozenset(("n", "no", "false", "0"))


def parse_answer(text: str, schema: Mapping[str, object]) -> Json:
    """The value. Text stays text; a choice may be given by its number; lists and objects are JSON.

    Raises: `InputError` when it does not fit the schema.
    """
    value = _read(text.strip(), schema)
    _check(value, schema)
    return value


def expected(schema: Mapping[str, object]) -> str:
    """What to type, in a few words; empty when any text will do."""
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return "one of " + ", ".join(f"{n}: {_shown(c)}" for n, c in enumerate(choices, 1))
    words = {
        "boolean": "y or n",
        "integer": "a whole number",
        "number": "a number",
        "array": "a JSON list",
        "object": "a JSON object",
    }
    return words.get(str(schema.get("type")), "")


def _read(text: str, schema: Mapping[str, object]) -> Json:
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return _chosen(text, choices)
    kind = schema.get("type")
    if kind == "boolean" and text.lower() in _YES | _NO:
        return text.lower() in _YES
    if kind in ("integer", "number", "array", "object", "null", "boolean"):
        return _json(text, schema)
    return text


def _chosen(text: str, choices: list[Json]) -> Json:
    by_text = {_shown(choice): choice for choice in choices}
    if text in by_text:
        return by_text[text]
    if text.isdecimal() and 0 < int(text) <= len(choices):
        return choices[int(text) - 1]
    raise InputError(f"{one_line(text, 60)!r} is none of the choices: {', '.join(by_text)}")


def _shown(choice: Json) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice)


def _json(text: str, schema: Mapping[str, object]) -> Json:
    try:
        found: Json = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        wanted = expected(schema) or "JSON"
        raise InputError(f"expected {wanted}, got {one_line(text, 60)!r}") from None
    return found


def _check(value: Json, schema: Mapping[str, object]) -> None:
    from weft.workflow.values import violation

    if why := violation(value, schema):
        raise InputError(f"the answer does not fit: {one_line(why, 200)}")
