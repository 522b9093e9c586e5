"""Answers that a person types: as values that fit the question's schema, and what to type."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from weft.core.errors import InputError
from weft.core.questions import approval_parameters

_YES = frozenset(("y", "yes", "true", "1"))
_NO = frozenset(("n", "no", "false", "0"))
_DECISION = re.compile(r"(?P<word>[A-Za-z0-9]+)\s*(?P<colon>:?)\s*(?P<rest>.*)", re.DOTALL)
_ARGUMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)=")
_NEXT = re.compile(r"\s+(?=[A-Za-z_]\w*=)")
_MARK = "[secret:"
Json = Any
_APPROVAL = "y, y ARGUMENT=VALUE, n: reason"
_DECODER = json.JSONDecoder()
_SHOWN = 60


def parse_answer(
    text: str, schema: Mapping[str, object], arguments: Mapping[str, object] | None = None
) -> Json:
    """The value of an answer: text, or the number of a choice; lists and objects as JSON.

    An approval is `yes`, `no: reason`, or `yes NAME=VALUE` with values in place of those of
    `arguments`, the call's own. Raises: `InputError` when it does not fit the schema.
    """
    text = text.strip()
    decision = approval_parameters(schema)
    if decision is None:
        value = _read(text, schema)
    elif text.startswith("{"):
        value = _approval_object(text)
    else:
        value = _approval(text, decision, arguments or {})
    _check(value, schema)
    return value


def expected(schema: Mapping[str, object]) -> str:
    """What to type, in a few words; empty if any text will do."""
    if approval_parameters(schema) is not None:
        return _APPROVAL
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


def _approval(text: str, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Json:
    match = _DECISION.fullmatch(text)
    word = "" if match is None else match["word"].lower()
    if match is None or word not in _YES | _NO:
        raise InputError(f"expected {_APPROVAL}, or JSON; got {text[:_SHOWN]!r}")
    rest = match["rest"].strip()
    if word in _NO:
        return {"approve": False, "reason": rest} if rest else False
    if not rest:
        return True
    changed = {**arguments, **_changes(rest, schema)}
    if _MARK in json.dumps({name: changed[name] for name in changed}, default=str):
        hint = 'give all arguments: {"approve": true, "arguments": {...}}'
        raise InputError("an argument of the call is a secret, which is not known here", hint=hint)
    return {"approve": True, "arguments": changed}


def _approval_object(text: str) -> Json:
    """An approval written as JSON, in which no name may come twice."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (json.JSONDecodeError, RecursionError):
        hint = 'such as {"approve": true, "arguments": {...}}'
        raise InputError(
            f"expected {_APPROVAL}, or JSON; got {text[:_SHOWN]!r}", hint=hint
        ) from None


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name, value in pairs:
        if name in found:
            raise InputError(f"{name} is given twice")
        found[name] = value
    return found


def _changes(text: str, schema: Mapping[str, Any]) -> dict[str, Json]:
    """The arguments of `NAME=VALUE NAME=VALUE`; a value is JSON, or text up to the next name."""
    known = schema.get("properties") or {}
    found: dict[str, Json] = {}
    while text:
        match = _ARGUMENT.match(text)
        if match is None:
            raise InputError(f"expected NAME=VALUE after yes, got {text[:_SHOWN]!r}")
        name = match["name"]
        if known and name not in known and schema.get("additionalProperties") is not True:
            hint = f"it takes {', '.join(known)}"
            raise InputError(f"the tool has no argument {name!r}", hint=hint)
        if name in found:
            raise InputError(
                f"{name} is given twice", hint=f'quote a value with a name in it: "{name}=..."'
            )
        found[name], text = _value(text[match.end() :], known.get(name, {}))
    return found


def _value(text: str, schema: Mapping[str, Any]) -> tuple[Json, str]:
    """The first value in `text`, and what comes after it."""
    if text[:1] in ('"', "[", "{"):
        try:
            value, end = _DECODER.raw_decode(text)
        except (json.JSONDecodeError, RecursionError):
            pass
        else:
            if not text[end:] or text[end].isspace():
                return value, text[end:].strip()
    parts = _NEXT.split(text, maxsplit=1)
    word, rest = parts[0].strip(), parts[1] if len(parts) > 1 else ""
    return _json_or_text(word, schema), rest


def _json_or_text(text: str, schema: Mapping[str, Any]) -> Json:
    """The text itself where the schema takes it as it is, else as JSON."""
    from weft.validation import violation

    if schema.get("type") == "boolean" and text.lower() in _YES | _NO:
        return text.lower() in _YES
    if schema.get("type") == "string":
        return text
    try:
        value: Json = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return text
    local = "$ref" not in json.dumps(schema, default=str)  # definitions are not at hand
    return value if not local or violation(value, schema) is None else text


def _read(text: str, schema: Mapping[str, object]) -> Json:
    choices = schema.get("enum")
    if isinstance(choices, list) and choices:
        return _chosen(text, choices)
    kind = schema.get("type")
    if kind == "boolean" and text.lower() in _YES | _NO:
        return text.lower() in _YES
    if kind in ("integer", "number", "array", "object", "null", "boolean"):
        return _json(text, schema)
    if kind is None and ("anyOf" in schema or "oneOf" in schema):
        return _json_or_text(text, schema)
    return text


def _chosen(text: str, choices: list[Json]) -> Json:
    by_text = {_shown(choice): choice for choice in choices}
    if text in by_text:
        return by_text[text]
    if text.isdecimal() and 0 < int(text) <= len(choices):
        return choices[int(text) - 1]
    raise InputError(f"{text[:_SHOWN]!r} is none of the choices: {', '.join(by_text)}")


def _shown(choice: Json) -> str:
    return choice if isinstance(choice, str) else json.dumps(choice)


def _json(text: str, schema: Mapping[str, object]) -> Json:
    try:
        value: Json = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        wanted = expected(schema) or "JSON"
        raise InputError(f"expected {wanted}, got {text[:_SHOWN]!r}") from None
    return value


def _check(value: Json, schema: Mapping[str, object]) -> None:
    from weft.validation import answer_violation

    if why := answer_violation(value, schema):
        raise InputError(f"the answer does not fit: {why}")
