"""Checking values against schemas where either may be made to take for ever.

Knows schemas that `weft.agents.foreign.schema` has vetted: no regular expressions are left in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend
from referencing import Registry

from weft.agents.foreign.text import shown
from weft.core.values import JsonSchema

_STEPS: Final = 200_000
_REFERENCE: Final = 50  # steps: following one takes longer than comparing
_MOST_NESTED: Final = 150  # keywords; each takes three calls of Python's thousand
_MOST_ERRORS: Final = 50
_MOST_UNIQUE: Final = 1_000
_Keyword = Callable[[Any, Any, Any, Any], Any]


@dataclass(slots=True)
class _Work:
    left: int
    nested: int = 0


_work: ContextVar[_Work] = ContextVar("weft_schema_work")


class TooMuchToCheck(ValueError):
    """The value and the schema together ask for more work than anybody needs."""


def misfit(value: object, schema: JsonSchema, steps: int = _STEPS) -> str | None:
    """Why `value` does not fit `schema`, in words, or None when it fits.

    `steps` bounds the work, in comparisons with one keyword: about a microsecond or two each.

    Raises: `TooMuchToCheck`.
    """
    token = _work.set(_Work(steps))
    try:
        found = best_match(
            islice(_Counting(schema, registry=Registry()).iter_errors(value), _MOST_ERRORS)
        )
    except (RecursionError, ArithmeticError) as error:
        raise TooMuchToCheck("it, or its schema, goes on for ever") from error
    finally:
        _work.reset(token)
    return None if found is None else _said(found)


def _said(error: ValidationError) -> str:
    where = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path
    )
    message = shown(error.message, 300)
    return f"{shown(where.lstrip('.'), 100)}: {message}" if where else message


def _counted(keyword: _Keyword, cost: int) -> _Keyword:
    def check(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        work = _work.get()
        work.left -= cost
        if work.left < 0:
            raise TooMuchToCheck("it takes too many comparisons")
        if work.nested == _MOST_NESTED:
            raise TooMuchToCheck("it is nested too deeply")
        work.nested += 1
        try:
            yield from keyword(validator, value, instance, schema) or ()
        finally:
            work.nested -= 1

    return check


def _unique(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
    """Comparing all with all is left to short lists."""
    if isinstance(instance, list) and len(instance) > _MOST_UNIQUE:
        return ()
    return Draft202012Validator.VALIDATORS["uniqueItems"](validator, value, instance, schema)


_Counting: Final[Any] = extend(  # type: ignore[no-untyped-call] # theirs
    Draft202012Validator,
    {
        name: _counted(
            _unique if name == "uniqueItems" else keyword, _REFERENCE if name == "$ref" else 1
        )
        for name, keyword in Draft202012Validator.VALIDATORS.items()
    },
)
