"""JSON Schemas of a tool's parameters and result; arguments from JSON, results to plain data."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema, from_json, to_json

from weft.agents.tools.problem import check_size, parameter_hint, problems
from weft.core.errors import BuildError, ToolArgumentError, ToolResultError
from weft.core.values import JsonSchema


class PlainSchema(GenerateJsonSchema):
    """pydantic's schemas without redundant titles, and exact about results.

    A result is dumped by its declared type: with all declared fields, and no others. pydantic
    leaves both open.
    """

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def field_is_required(self, field: Any, total: bool) -> bool:
        if self.mode == "serialization" and field["type"] != "typed-dict-field":
            return not (field.get("serialization_exclude") or field.get("serialization_exclude_if"))
        return super().field_is_required(field, total)

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return self._closed(schema, super().model_schema(schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return self._closed(schema, super().dataclass_schema(schema))

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return self._closed(schema, super().typed_dict_schema(schema))

    def _closed(self, schema: Any, described: JsonSchemaValue) -> JsonSchemaValue:
        dumped_by_type = self.mode == "serialization" and "serialization" not in schema
        if dumped_by_type and "properties" in described:
            described.setdefault("additionalProperties", False)
        return described


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """A declared parameter. `default` is `inspect.Parameter.empty` if there is none."""

    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty
    description: str | None = None

    @property
    def needed(self) -> bool:
        """Whether the function has no default for it."""
        return self.default is inspect.Parameter.empty


class FunctionParameters:
    """All parameters of a tool.

    Arguments are parsed as JSON, as strictly as possible: a text does not become a number, nor a
    number a boolean. An integer may be used for a float; text for types that JSON lacks (dates,
    enums, UUIDs). A default is not checked, and is evaluated by the function.
    """

    def __init__(self, declared: Sequence[FunctionParameter]) -> None:
        self._declared = declared
        try:
            # Fields get generated names: a parameter may be called `schema` or `_x`.
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
    def _field(declared: FunctionParameter) -> Any:
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
        """`arguments` as JSON text; Python values are converted.

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
        """The arguments of the function, from JSON text.

        Raises: `ToolArgumentError`, with every missing, unknown or wrong parameter.
        """
        try:
            checked = self._model.__pydantic_validator__.validate_json(arguments, strict=True)
        except ValidationError as error:
            checked = self._with_whole_numbers(tool, arguments, error)
        found = checked.__dict__
        values = {}  # a comprehension would be one call more for every call of a tool
        for field, name in self._needed:
            values[name] = found[field]
        if self._optional:
            given = checked.model_fields_set
            values |= {name: found[field] for field, name in self._optional if field in given}
        return values

    def _with_whole_numbers(self, tool: str, arguments: bytes, wrong: ValidationError) -> BaseModel:
        """The arguments with whole floats as integers, which JSON does not distinguish.

        Raises: `ToolArgumentError`.
        """
        whole = to_json(_whole(from_json(arguments)), inf_nan_mode="constants")
        if whole != arguments:
            try:
                return cast(BaseModel, self._model.model_validate_json(whole, strict=True))
            except ValidationError as error:
                wrong = error
        message = problems(wrong, [each.name for each in self._declared])
        raise ToolArgumentError(f"{tool}: {message}", hint=parameter_hint(self.schema)) from wrong


def _whole(value: Any) -> Any:
    """`value` with whole floats as integers."""
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


_DATA: Final = frozenset((str, int, float, bool, type(None), list, dict, tuple))
_SHORT: Final = frozenset((float, bool, type(None)))
_SHORT_BYTES: Final = 32
_SMALLER: Final = "return less, or a path to a file"
_ESCAPE_BYTES: Final = 6  # as in \u001f


class FunctionResult:
    """The declared result of a tool. Without an annotation: anything that JSON can hold.

    A result is copied as plain data (dicts, lists, texts, numbers), so that it can be shared by
    parallel readers, addressed by a path, cached and journalled.
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
        """`value`, checked strictly against the declaration, as plain data.

        Raises: `ToolResultError` for another type or values that JSON cannot hold, `ToolLimitError`
        for more than `max_bytes` of JSON.
        """
        if type(value) not in _DATA and (isinstance(value, Iterator) or inspect.isawaitable(value)):
            raise _unfinished(tool, value)
        if isinstance(value, (str, bytes)):
            check_size(tool, len(value), max_bytes, _SMALLER)
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
        check_size(tool, size, max_bytes, _SMALLER)
        return data


def _adapter(annotation: Any) -> TypeAdapter[Any]:
    try:  # NaN and infinity stay, instead of becoming null
        return TypeAdapter(annotation, config=ConfigDict(ser_json_inf_nan="constants"))
    except PydanticUserError:  # types with their own configuration accept no other
        return TypeAdapter(annotation)


def _unfinished(tool: str, value: Any) -> ToolResultError:
    if inspect.iscoroutine(value):
        value.close()
    kind = type(value).__name__
    instead = "return a list" if isinstance(value, Iterator) else "declare it with async def"
    return ToolResultError(f"{tool} returned a {kind}, not a result", hint=instead)


def _size(data: Any, max_bytes: int) -> int:
    """An upper bound of the bytes of `data` as JSON, exact where it may exceed `max_bytes`."""
    kind, most = type(data), max_bytes + 1
    if kind is int:
        most = data.bit_length() // 3 + 2
    elif kind in _SHORT:
        most = _SHORT_BYTES
    elif kind is str and data.isascii():  # others may not be valid JSON
        most = _ESCAPE_BYTES * len(data) + 2
    return most if most <= max_bytes else len(to_json(data, inf_nan_mode="constants"))
