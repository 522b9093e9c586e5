"""The result of a tool: its JSON Schema, and a returned value to plain data.

Knows the promised type, not who returned the value.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import to_json

from weft.agents.tools.problem import problems
from weft.agents.tools.schema import PlainSchema
from weft.core.errors import BuildError, ToolLimitError, ToolResultError
from weft.core.values import JsonSchema

_DATA: Final = frozenset((str, int, float, bool, type(None), list, dict, tuple))
_SHORT: Final = frozenset((float, bool, type(None)))
_SHORT_BYTES: Final = 32
_ESCAPE_BYTES: Final = 6  # as in \u001f


class Result:
    """What a tool promises to return. Without an annotation: anything that JSON can hold.

    A result leaves as plain data (dicts, lists, texts, numbers), a copy of its own, so that it can
    be shared by parallel readers, addressed by a path, cached and journalled.
    """

    def __init__(self, annotation: Any, description: str | None = None) -> None:
        promised = annotation is not inspect.Signature.empty
        try:
            self._adapter = _adapter(annotation if promised else Any)
            self.schema: JsonSchema | None = self._described(description) if promised else None
        except (PydanticUserError, NameError, TypeError) as error:
            raise BuildError(f"the result: {str(error).splitlines()[0]}") from error

    def _described(self, description: str | None) -> JsonSchema:
        schema = self._adapter.json_schema(schema_generator=PlainSchema, mode="serialization")
        return {"description": description, **schema} if description else schema

    def plain(self, tool: str, value: Any, max_bytes: int) -> Any:
        """`value`, checked strictly against what was promised, as plain data.

        Raises: `ToolResultError` for another type or what JSON cannot hold, `ToolLimitError` for
        more than `max_bytes` of JSON.
        """
        if type(value) not in _DATA and (isinstance(value, Iterator) or inspect.isawaitable(value)):
            raise _unfinished(tool, value)
        if isinstance(value, (str, bytes)):
            _check_size(tool, len(value), max_bytes)
        adapter = self._adapter
        try:
            checked = adapter.validator.validate_python(value, strict=True)
            data = adapter.serializer.to_python(checked, mode="json", warnings=False)
            size = _size(data, max_bytes)
        except ValidationError as error:
            raise ToolResultError(
                f"{tool} returned what it does not promise: {problems(error)}",
                hint="change the function or its return annotation",
            ) from error
        except ValueError as error:
            raise ToolResultError(
                f"{tool} returned what JSON cannot hold: {error}",
                hint="return plain data, dataclasses or pydantic models",
            ) from error
        _check_size(tool, size, max_bytes)
        return data


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    try:  # NaN and infinity stay what they are instead of turning into null
        return TypeAdapter(annotation, config=ConfigDict(ser_json_inf_nan="constants"))
    except PydanticUserError:  # types with a configuration of their own take no other
        return TypeAdapter(annotation)


def _unfinished(tool: str, value: Any) -> ToolResultError:
    if inspect.iscoroutine(value):
        value.close()
    kind = type(value).__name__
    instead = "return a list" if isinstance(value, Iterator) else "declare it with async def"
    return ToolResultError(f"{tool} returned a {kind}, not a result", hint=instead)


def _size(data: Any, max_bytes: int) -> int:
    """Bytes of `data` as JSON, which are counted only where they may be more than `max_bytes`."""
    kind, most = type(data), max_bytes + 1
    if kind is int:
        most = data.bit_length() // 3 + 2
    elif kind in _SHORT:
        most = _SHORT_BYTES
    elif kind is str and data.isascii():  # any other may be what JSON cannot hold
        most = _ESCAPE_BYTES * len(data) + 2
    return most if most <= max_bytes else len(to_json(data, inf_nan_mode="constants"))


def _check_size(tool: str, size: int, max_bytes: int) -> None:
    if size > max_bytes:
        raise ToolLimitError(
            f"{tool} returned {size:,} bytes, at most {max_bytes:,} are allowed",
            hint="return less, or a path to a file",
        )
