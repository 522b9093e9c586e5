"""The parameters of a tool: their JSON Schema, and arguments from JSON to Python values.

Knows names, types and defaults; not what the tool does with them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic_core import from_json, to_json

from weft.agents.tools.problem import problems
from weft.agents.tools.schema import PlainSchema
from weft.core.errors import BuildError, ToolArgumentError
from weft.core.values import JsonSchema


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter as the function declares it. `default` is `inspect.Parameter.empty` if none."""

    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty
    description: str | None = None

    @property
    def needed(self) -> bool:
        """True when the function itself has no default."""
        return self.default is inspect.Parameter.empty


class Parameters:
    """All parameters of a tool.

    Arguments are taken as JSON and as strictly as JSON can be: no text becomes a number, no number
    a boolean. An integer may stand for a float; text for what JSON lacks (dates, enums, UUIDs).
    A default is never checked, and is the function's own at each call.
    """

    def __init__(self, declared: Sequence[Parameter]) -> None:
        self._declared = declared
        try:
            # Fields get names of our own: a parameter may be called `schema` or `_x`.
            fields: dict[str, Any] = {
                f"p{index}": (each.annotation, self._field(each))
                for index, each in enumerate(declared)
            }
            config = ConfigDict(extra="forbid", strict=True)
            self._model = create_model("Arguments", __config__=config, **fields)
            self._needed = tuple(
                (f"p{index}", each.name) for index, each in enumerate(declared) if each.needed
            )
            self._optional = tuple(
                (f"p{index}", each.name) for index, each in enumerate(declared) if not each.needed
            )
            self.schema: JsonSchema = self._described()
        except (PydanticUserError, NameError, TypeError) as error:
            raise BuildError(self._culprit() or f"the parameters: {error}") from error

    @staticmethod
    def _field(declared: Parameter) -> Any:
        if declared.needed:
            return Field(alias=declared.name)
        return Field(declared.default, alias=declared.name)

    def _described(self) -> JsonSchema:
        schema: dict[str, Any] = self._model.model_json_schema(schema_generator=PlainSchema)
        del schema["title"]
        for each in self._declared:
            if each.description:
                schema["properties"][each.name].setdefault("description", each.description)
        return schema

    def _culprit(self) -> str | None:
        for each in self._declared:
            try:
                TypeAdapter(each.annotation).json_schema(schema_generator=PlainSchema)
            except (PydanticUserError, NameError, TypeError) as error:
                return f"parameter {each.name!r}: {str(error).splitlines()[0]}"
        return None

    def encode(self, tool: str, arguments: Mapping[str, Any]) -> bytes:
        """`arguments` as JSON text. Python values become what JSON has.

        Raises: `ToolArgumentError` when one cannot be written as JSON.
        """
        try:
            plain = arguments if type(arguments) is dict else dict(arguments)
            return to_json(plain, inf_nan_mode="constants")
        except ValueError as error:
            wrong = [
                f"{key}: {why}" for key, value in arguments.items() if (why := _no_json(value))
            ]
            raise ToolArgumentError(
                f"{tool}: {'; '.join(wrong)}",
                hint="tools take plain data, dataclasses and pydantic models",
            ) from error

    def decode(self, tool: str, arguments: bytes) -> dict[str, Any]:
        """The values to call the function with, from JSON text.

        Raises: `ToolArgumentError`, with every parameter that is missing, unknown or wrong.
        """
        try:
            checked = self._model.__pydantic_validator__.validate_json(arguments, strict=True)
        except ValidationError as error:
            checked = self._with_whole_numbers(tool, arguments, error)
        found = checked.__dict__
        values = {name: found[field] for field, name in self._needed}
        if self._optional:
            given = checked.model_fields_set
            values |= {name: found[field] for field, name in self._optional if field in given}
        return values

    def _with_whole_numbers(self, tool: str, arguments: bytes, wrong: ValidationError) -> BaseModel:
        """The arguments, which are `wrong` as they are. To JSON `3.0` is an integer: it may be one.

        Raises: `ToolArgumentError`.
        """
        whole = to_json(_whole(from_json(arguments)), inf_nan_mode="constants")
        if whole != arguments:
            try:
                return cast(BaseModel, self._model.model_validate_json(whole, strict=True))
            except ValidationError as error:
                wrong = error
        said = problems(wrong, [each.name for each in self._declared])
        raise ToolArgumentError(f"{tool}: {said}", hint=self._usage()) from wrong

    def _usage(self) -> str:
        names = [each.name if each.needed else f"{each.name}?" for each in self._declared]
        return f"it takes: {', '.join(names)}" if names else "it takes nothing"


def _whole(value: Any) -> Any:
    """`value` with integers in place of the floats that are whole."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case dict():
            return {name: _whole(inner) for name, inner in value.items()}
        case list():
            return [_whole(inner) for inner in value]
        case _:
            return value


def _no_json(value: Any) -> str | None:
    try:
        to_json(value)
    except ValueError as error:
        return f"JSON cannot hold it: {error}"
    return None
