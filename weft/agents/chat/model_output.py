"""Parses a model's output as JSON or text of a schema, with errors that the model can act on.

Models write JSON in code fences, with raw newlines and with text around it. Nothing is evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final, NoReturn

from weft.core.errors import BuildError, ModelOutputError
from weft.core.events import jsonable
from weft.core.generated_json import NoJson, read_generated_json
from weft.core.generated_text import is_blank, without_thought
from weft.core.values import JsonSchema
from weft.validation import SchemaRefused, compile_schema, read_answer, violation


def text_of(value: Any) -> str:
    """`value` as JSON; a text unchanged."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=jsonable)
    except Exception:  # noqa: BLE001 - a foreign value may raise anything when it is looked at
        return f"a {type(value).__name__} that JSON cannot hold"


def excerpt(text: str, chars: int) -> str:
    """`text`, or its beginning and end, about `chars` long, with a note on the missing part.

    Lone surrogates become question marks.
    """
    if len(text) > chars:
        end = chars // 4
        missing = f" [... {len(text) - chars:,} of {len(text):,} characters left out ...] "
        text = text[: chars - end] + missing + text[len(text) - end :]
    return text.encode("utf-8", "replace").decode("utf-8")


_ATTEMPTS: Final = 20


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


_DECODER: Final = json.JSONDecoder(strict=False, parse_constant=_refuse)


def decode_json(text: str, what: str) -> Any:
    """The JSON value of `text`, perhaps fenced or with text around it.

    Raises: `ModelOutputError`; `what` names the text.
    """
    try:
        return read_generated_json(text)
    except NoJson as error:
        raise ModelOutputError(f"{what} is not JSON: {error}") from None


def first_json(text: str) -> Any:
    """The JSON value at the beginning of `text`. A model may append a result that it made up.

    Raises: `ModelOutputError`, also when another object follows.
    """
    plain = text.strip().removeprefix("```json").removeprefix("```").strip()
    try:
        value, end = _DECODER.raw_decode(plain)
    except (ValueError, RecursionError) as error:
        raise ModelOutputError(f"a call is not JSON: {error}") from None
    if plain[end:].lstrip(" \n,").startswith("{"):
        raise ModelOutputError("each call needs a line of its own that begins with `Call:`")
    return value


def find_object(keys: Collection[str], text: str) -> dict[str, Any] | None:
    """The first object in `text` that has one of `keys`, or None."""
    start = -1
    for _ in range(_ATTEMPTS):
        start = text.find("{", start + 1)
        if start < 0:
            return None
        try:
            value, _end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if any(key in value for key in keys):
            return dict(value)
    return None


def check_schema(schema: JsonSchema) -> None:
    """Raises: `BuildError` when `schema` cannot be used to check answers."""
    try:
        compile_schema(schema)
    except SchemaRefused as error:
        raise BuildError(
            f"the answer's schema is wrong: {error}", hint="give a JSON Schema of draft 2020-12"
        ) from None


def fit_answer(written: Any, schema: JsonSchema | None) -> Any:
    """The answer from `written`, text or JSON: a value of `schema`, or without one a text.

    A thought before the answer is not part of it. Raises: `ModelOutputError` when it does not fit,
    or is empty.
    """
    if schema is None:
        whole = text_of(written)
        text = without_thought(whole).strip()
        if is_blank(text):
            thought = "" if is_blank(whole) else ": nothing comes after its thought"
            raise ModelOutputError(f"the answer is empty{thought}")
        return text
    wrong = violation(written, schema)
    if wrong is not None and isinstance(written, str):
        try:
            return read_answer(written, schema)
        except ModelOutputError as error:
            raise ModelOutputError(error.message) from None  # its hint is not for the model
    if wrong is not None:
        raise ModelOutputError(f"the answer does not fit its schema: {wrong}")
    return written
