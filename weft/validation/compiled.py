"""Bounded and compiled schemas; the `regex` crate matches their patterns in linear time.

Look-around and back references need backtracking, and are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from jsonschema_rs import Draft202012Validator, RegexOptions
from jsonschema_rs import ValidationError as LibraryError

from weft.core.compute_thread import run_in_compute_thread
from weft.core.values import JsonSchema
from weft.validation.bounds import (
    MAX_EXPANSION,
    MAX_PATTERN_BYTES,
    MAX_PATTERNS,
    MAX_SCHEMA_CHARS,
    NotJson,
    SchemaRefused,
    TooMuchToCheck,
    ValueSize,
    parts_of,
    plain,
    size_of,
)
from weft.validation.message import error_text
from weft.validation.process import check_apart, check_apart_async
from weft.validation.schema_cost import (
    REFUSED,
    EndlessSchema,
    SchemaCost,
    reference_target,
    subschemas,
)

LINEAR: Final = RegexOptions(size_limit=MAX_PATTERN_BYTES)
_SMALL: Final = RegexOptions(size_limit=4 * 1024)
_LARGE_WEIGHT: Final = 32
_SHOWN_PATTERN: Final = 80
_BACKTRACKING: Final = re.compile(r"\(\?<?[=!]|\\[1-9]|\\k<|\(\?>|[*+?}]\+")


def pattern_error(pattern: str) -> str | None:
    """Why `pattern` cannot be used, or None when it can."""
    if _compiles(pattern, LINEAR):
        return None
    shown = pattern if len(pattern) <= _SHOWN_PATTERN else f"{pattern[:_SHOWN_PATTERN]}..."
    if _BACKTRACKING.search(pattern):
        return (
            f"the pattern {shown!r} cannot be matched in linear time:"
            " look-around, back references and possessive repetition are not supported"
        )
    return f"the pattern {shown!r} is no regular expression, or too large"


def pattern_weight(pattern: str) -> int:
    """The worst cost of matching one character, relative to a small pattern."""
    return 1 if _compiles(pattern, _SMALL) else _LARGE_WEIGHT


def _compiles(pattern: str, options: RegexOptions) -> bool:
    try:
        Draft202012Validator({"pattern": pattern}, pattern_options=options, offline=True)
    except (LibraryError, ValueError):
        return False
    return True


_FEW_PARTS: Final = 200
_MOST_STEPS: Final = 500_000  # of some 20 ns each
_MOST_MATCHED_CHARS: Final = 100_000  # of some 300 ns each, in a small pattern
_MOST_READ_CHARS: Final = 50_000_000  # of some 1 ns each, as for a length
_MOST_ERROR_CHARS: Final = 4_000_000  # an error contains the value
_SHOWN: Final = 100


class CompiledSchema:
    """A compiled schema. Immutable and thread-safe. Made by `compile_schema`."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        _check_parts(schema)
        try:
            self._expansion = SchemaCost(schema, lru_cache(pattern_weight))
        except EndlessSchema as error:
            raise SchemaRefused(str(error)) from error
        except RecursionError:
            raise SchemaRefused("its references follow one another too deeply") from None
        if self._expansion.largest.parts > MAX_EXPANSION:
            raise SchemaRefused(f"a part of a schema that expands to over {MAX_EXPANSION:,} parts")
        try:
            self._validator = Draft202012Validator(
                schema, pattern_options=LINEAR, offline=True, validate_formats=False
            )
        except LibraryError as error:
            raise SchemaRefused(
                f"not a JSON Schema: {error_text(error)}", error.instance_path, error.instance
            ) from None
        except ValueError as error:
            raise SchemaRefused(f"not a JSON Schema: {str(error)[:200]}") from None

    def misfit(self, value: object) -> str | None:
        """Why `value` does not fit, in words, or None. May block for `WAIT_LIMIT_S`.

        Raises: `TooMuchToCheck`, `MachineBusy`.
        """
        try:
            quick, why = self._at_once(value)
            return why if quick else check_apart(self._schema, value)
        except NotJson as error:
            return str(error)

    async def misfit_async(self, value: object) -> str | None:
        """As `misfit`, without blocking the event loop."""
        try:
            quick, why = self._at_once(value)
            return why if quick else await check_apart_async(self._schema, value)
        except NotJson as error:
            return str(error)

    def _at_once(self, value: object) -> tuple[bool, str | None]:
        """Whether the check is quick enough for this thread, and then why `value` does not fit."""
        size = size_of(value)
        if not self._is_quick(size):
            return False, None
        checked = plain(value)
        if size.chars * self._expansion.most_work(size.depth).parts <= _MOST_ERROR_CHARS:
            return True, self._check(checked)
        return self._validator.is_valid(checked), None

    def _check(self, value: object) -> str | None:
        if self._validator.is_valid(value):
            return None
        try:
            self._validator.validate(value)
        except LibraryError as error:
            return error_text(error)
        raise AssertionError("an invalid value has an error")

    def _is_quick(self, size: ValueSize) -> bool:
        work = self._expansion.most_work(size.depth)
        return (
            size.counted
            and size.values * work.parts <= _MOST_STEPS
            and size.chars * work.pattern_weight <= _MOST_MATCHED_CHARS
            and size.chars * work.parts <= _MOST_READ_CHARS
        )


def compile_schema(schema: object) -> CompiledSchema:
    """`schema`, bounded and compiled. Raises: `SchemaRefused`."""
    if not isinstance(schema, (Mapping, bool)):
        raise SchemaRefused(f"a schema must be an object, not {type(schema).__name__}")
    for _ in parts_of(schema):  # checks the bounds before any recursion
        pass
    try:
        text = json.dumps(plain(schema))
    except NotJson as error:
        raise SchemaRefused(f"not a JSON Schema: {error}") from None
    if len(text) > MAX_SCHEMA_CHARS:
        raise SchemaRefused(f"a schema of more than {MAX_SCHEMA_CHARS:,} characters")
    return _compiled(text)


async def compile_schema_async(schema: object) -> CompiledSchema:
    """As `compile_schema`; a large schema does not block the event loop."""
    if isinstance(schema, Mapping) and any(n > _FEW_PARTS for n, _ in enumerate(parts_of(schema))):
        return await run_in_compute_thread(compile_schema, schema)
    return compile_schema(schema)


def misfit(value: object, schema: JsonSchema) -> str | None:
    """Why `value` does not fit `schema`, in words, or None. May block for `WAIT_LIMIT_S`.

    Raises: `SchemaRefused`, `TooMuchToCheck`, `MachineBusy`.
    """
    return compile_schema(schema).misfit(value)


async def misfit_async(value: object, schema: JsonSchema) -> str | None:
    """As `misfit`, without blocking the event loop."""
    return await (await compile_schema_async(schema)).misfit_async(value)


def violation(value: object, schema: JsonSchema) -> str | None:
    """As `misfit`, but failure to check the schema or the value is a reason too.

    Raises: `MachineBusy`.
    """
    try:
        return misfit(value, schema)
    except (SchemaRefused, TooMuchToCheck) as error:
        return str(error)


async def violation_async(value: object, schema: JsonSchema) -> str | None:
    """As `violation`, without blocking the event loop."""
    try:
        return await misfit_async(value, schema)
    except (SchemaRefused, TooMuchToCheck) as error:
        return str(error)


@lru_cache(maxsize=256)
def _compiled(text: str) -> CompiledSchema:
    schema = json.loads(text)
    return CompiledSchema({} if schema is True else {"not": {}} if schema is False else schema)


def _check_parts(schema: dict[str, Any]) -> None:
    """Raises: `SchemaRefused` for references and patterns that cannot be used."""
    patterns = 0
    todo: list[object] = [schema]
    while todo:
        part = todo.pop()
        if not isinstance(part, Mapping):
            continue
        _check_references(part, schema)
        for pattern in _patterns(part):
            patterns += 1
            if patterns > MAX_PATTERNS:
                raise SchemaRefused(f"a schema of more than {MAX_PATTERNS} patterns")
            if why := pattern_error(pattern):
                raise SchemaRefused(why)
        todo.extend(inner for _, inner in subschemas(part))


def _check_references(part: Mapping[str, Any], root: dict[str, Any]) -> None:
    for keyword in part.keys() & REFUSED:
        raise SchemaRefused(f"{keyword} is not supported: use $ref with #/$defs/...")
    if "$id" in part and part is not root:
        raise SchemaRefused("$id inside a schema is not supported: use $ref with #/$defs/...")
    reference = part.get("$ref")
    if isinstance(reference, str) and reference_target(reference, root) is None:
        shown = reference if len(reference) <= _SHOWN else f"{reference[:_SHOWN]}..."
        raise SchemaRefused(f"$ref {shown!r} leads nowhere in the schema")


def _patterns(part: Mapping[str, Any]) -> list[str]:
    patterns = [part["pattern"]] if isinstance(part.get("pattern"), str) else []
    keys = part.get("patternProperties")
    return patterns + (list(keys) if isinstance(keys, Mapping) else [])
