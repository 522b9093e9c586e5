"""Python types of a workflow's values: pydantic models, dataclasses and TypedDicts as plain data.

Inside a run all values are plain data, so that they can be recorded and read in templates. A
function that is annotated with a type gets instances of it, and outputs are instances.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Final, get_args, get_origin
from weakref import WeakKeyDictionary

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python
from typing_extensions import is_typeddict

from weft.core.content import Media
from weft.core.errors import BuildError, InputError, ModelOutputError, NodeFailed
from weft.core.suggestion import suggestion

_MOST_DEEP: Final = 8
FIRST: Final = "*"
"""The name of the one argument that is passed by position, where types are kept by name."""


@dataclass(slots=True)
class PythonTypes:
    """The types that a Python program declared, which no file can name.

    answers    of model and ask nodes, by the id of the node's specification
    arguments  of calls of functions without annotations, likewise, by name; see `FIRST`
    outputs    by name; a mapping or a list of types describes the parts of an output
    inputs     the type of all inputs together, or None
    result     the type of all outputs together, or None
    """

    answers: dict[int, Any] = field(default_factory=dict)
    arguments: dict[int, dict[str, Any]] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)
    inputs: Any = None
    result: Any = None


def has_instances(kind: Any, depth: int = 0) -> bool:
    """Whether values of `kind` are, or contain, models, dataclasses or TypedDicts."""
    if depth > _MOST_DEEP:
        return False
    if isinstance(kind, type) and get_origin(kind) is None:
        return issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind) or is_typeddict(kind)
    origin = get_origin(kind)
    if isinstance(origin, type) and origin is not types.UnionType and has_instances(origin):
        return True  # a generic model
    return any(has_instances(part, depth + 1) for part in get_args(kind))


def has_instances_in(kinds: Any) -> bool:
    """As `has_instances`, for a structure of types: see `PythonTypes.outputs`."""
    if isinstance(kinds, dict):
        return any(has_instances_in(kind) for kind in kinds.values())
    if isinstance(kinds, list):
        return any(has_instances_in(kind) for kind in kinds)
    return has_instances(kinds)


@lru_cache(maxsize=1024)
def _cached_adapter(kind: Any) -> TypeAdapter[Any]:
    return _adapter(kind)


def adapter_of(kind: Any) -> TypeAdapter[Any]:
    """The adapter of a type. Raises: pydantic's errors for what is no type."""
    try:
        return _cached_adapter(kind)
    except TypeError:  # not hashable
        return _adapter(kind)


def _adapter(kind: Any) -> TypeAdapter[Any]:
    try:  # NaN and infinity stay, instead of becoming null
        return TypeAdapter(kind, config=ConfigDict(ser_json_inf_nan="constants"))
    except PydanticUserError:  # types with their own configuration accept no other
        return TypeAdapter(kind)


def plain(value: Any) -> Any:
    """`value` with models and dataclasses as mappings; plain data and other objects stay."""
    if isinstance(value, Media):
        return value
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_jsonable_python(value, inf_nan_mode="constants")
    if isinstance(value, Mapping) and any(_contains(item) for item in value.values()):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)) and any(_contains(item) for item in value):
        return [plain(item) for item in value]
    return value


def _contains(value: Any) -> bool:
    return not isinstance(value, (str, int, float, type(None)))


def instance(kind: Any, value: Any) -> Any:
    """`value`, plain data or an instance already, as an instance of `kind`.

    Raises: `ValidationError` when it does not fit.
    """
    return adapter_of(kind).validate_python(value)


def conform(kind: Any, value: Any) -> Any:
    """A model's answer as plain data: checked by `kind`, its validators included, with defaults.

    Raises: `ModelOutputError`.
    """
    try:
        adapter = adapter_of(kind)
        checked = adapter.validate_python(value)
        return adapter.dump_python(checked, mode="json", by_alias=True, warnings=False)
    except ValidationError as error:
        why = first_error(error)
        raise ModelOutputError(f"the answer does not fit the schema: {why}") from error


def first_error(error: ValidationError) -> str:
    """The first problem, with its place."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])


@dataclass(frozen=True, slots=True)
class FunctionTypes:
    """The types of a function's parameters that have instances, and of its result."""

    parameters: Mapping[str, Any]
    result: Any = None
    first: str | None = None

    def values(
        self,
        given: dict[str, Any],
        others: Mapping[str, Any] | None = None,
        positional: Sequence[Any] = (),
    ) -> Sequence[Any]:
        """Replace plain data in `given` by instances; `others`: types of further arguments.

        Returns `positional`, at most one value, likewise; `others[FIRST]` is its type where it has
        no annotation. Raises: `InputError` when one does not fit.
        """
        kinds = {**(others or {}), **self.parameters}
        first = kinds.pop(FIRST, None) if self.first is None else kinds.get(self.first)
        for name, kind in kinds.items():
            if name in given:
                given[name] = _fitting(kind, given[name], name)
        if positional and first is not None:
            return [_fitting(first, positional[0], self.first or "the value")]
        return positional

    def returned(self, value: Any, name: str) -> Any:
        """A result as plain data. Raises: `NodeFailed` when it does not fit the annotation."""
        if self.result is None:
            return plain(value)
        try:
            adapter = adapter_of(self.result)
            checked = adapter.validate_python(value)
            return adapter.dump_python(checked, mode="json", by_alias=True, warnings=False)
        except ValidationError as error:
            why = f"{name} returned what it does not promise: {first_error(error)}"
            hint = "change the function or its return annotation"
            raise NodeFailed(why, hint=hint) from error


_KNOWN: Final[WeakKeyDictionary[Callable[..., Any], FunctionTypes]] = WeakKeyDictionary()
_NONE: Final = FunctionTypes({})


def function_types(function: Callable[..., Any]) -> FunctionTypes:
    """The types of `function`, from its annotations; none where they cannot be resolved."""
    try:
        known = _KNOWN.get(function)
    except TypeError:  # no weak references
        return _NONE
    if known is None:
        hints = annotations_of(function)
        result = hints.pop("return", None)
        parameters = {name: kind for name, kind in hints.items() if _usable(kind)}
        first = next(iter(parameters), None)
        if first != _first_parameter(function):
            first = None
        known = FunctionTypes(parameters, result if _usable(result) else None, first)
        _KNOWN[function] = known
    return known


def _first_parameter(function: Callable[..., Any]) -> str | None:
    try:
        return next(iter(inspect.signature(function).parameters), None)
    except (ValueError, TypeError):  # some builtins have none
        return None


def _fitting(kind: Any, value: Any, name: str) -> Any:
    try:
        return instance(kind, value)
    except ValidationError as error:
        raise InputError(f"`{name}` does not fit: {first_error(error)}") from error


def fits(kind: Any, value: object) -> bool:
    """Whether plain data, or an instance, is a value of `kind`."""
    try:
        instance(kind, value)
    except (ValidationError, PydanticUserError):
        return False
    return True


def _usable(kind: Any) -> bool:
    try:
        return has_instances(kind) and bool(adapter_of(kind))
    except PydanticUserError:  # such as typing.TypedDict before Python 3.12
        return False


def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The resolved annotations of a function, its result as `return`; empty where they fail."""
    target = inspect.unwrap(function)
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError, AttributeError):  # names under TYPE_CHECKING, builtins
        return {}


@dataclass(frozen=True, slots=True)
class TypeField:
    """A field of a type. `key` is its name in plain data; `default` is `...` if there is none."""

    kind: Any
    key: str
    default: Any = ...
    described: Any = None


def fields_of(kind: Any) -> dict[str, TypeField] | None:
    """The fields of a model, a dataclass or a TypedDict, by name; None for other types."""
    kind = _present(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = {name: _model_field(name, field) for name, field in kind.model_fields.items()}
        for name, computed in kind.model_computed_fields.items():
            fields[name] = TypeField(computed.return_type, computed.alias or name)
        return fields
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = annotations_of(kind)
        return {
            each.name: TypeField(hints.get(each.name), each.name, _default(each))
            for each in dataclasses.fields(kind)
        }
    if is_typeddict(kind):
        hints = annotations_of(kind)
        return {name: TypeField(found, name) for name, found in hints.items()}
    return None


def _model_field(name: str, field: FieldInfo) -> TypeField:
    default = ... if field.is_required() else field.get_default(call_default_factory=True)
    described = Annotated[(field.annotation, *field.metadata)] if field.metadata else None
    return TypeField(field.annotation, field.alias or name, default, described)


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return ... if field.default_factory is dataclasses.MISSING else field.default_factory()


def part_of(kind: Any, name: str) -> tuple[str, Any]:
    """The key in plain data of the part `name` of a `kind`, and its type, None if unknown.

    Raises: `BuildError` when a `kind` has no such field.
    """
    fields = fields_of(kind)
    if fields is None:
        mapping = get_origin(_present(kind)) in (dict, Mapping)
        return name, get_args(_present(kind))[1] if mapping else None
    found = fields.get(name)
    if found is not None:
        return found.key, found.kind
    model = _present(kind)
    if issubclass(model, BaseModel) and model.model_config.get("extra") == "allow":
        return name, None
    raise no_field(model, name, fields)


def input_names(kind: Any) -> frozenset[str]:
    """The names of the inputs of a flow whose inputs are a `kind`."""
    return frozenset(field.key for field in (fields_of(kind) or {}).values())


def no_field(kind: Any, name: str, fields: Iterable[str]) -> BuildError:
    """The error that a type has no field `name`."""
    hint = suggestion(name, fields, quote="`")
    return BuildError(f"{kind.__name__} has no field `{name}`", hint=hint)


def list_of(kind: Any) -> Any:
    """The type of lists of `kind`; None: unknown."""
    return None if kind is None else list[kind]


def item_type(kind: Any) -> Any:
    """The type of the items of a list of type `kind`; None: unknown."""
    kind = _present(kind)
    origin = get_origin(kind)
    if isinstance(origin, type) and issubclass(origin, Sequence) and origin is not tuple:
        return get_args(kind)[0]
    return None


def _present(kind: Any) -> Any:
    """`kind` without None and without its annotations."""
    if get_origin(kind) is typing.Annotated:
        return _present(get_args(kind)[0])
    if get_origin(kind) in (typing.Union, types.UnionType):
        parts = [part for part in get_args(kind) if part is not type(None)]
        return parts[0] if len(parts) == 1 else None
    return kind


def rebuilt(kinds: Any, value: Any) -> Any:
    """`value` with instances where `kinds`, a type or a structure of types, has them.

    Raises: `ValidationError`.
    """
    if isinstance(kinds, dict) and isinstance(value, Mapping):
        return {key: rebuilt(kinds.get(key), item) for key, item in value.items()}
    if isinstance(kinds, list) and isinstance(value, list) and len(kinds) == len(value):
        return [rebuilt(kind, item) for kind, item in zip(kinds, value, strict=True)]
    return instance(kinds, value) if has_instances(kinds) else value


def whole(kind: Any, values: Mapping[str, Any]) -> Any:
    """All `values` by name as one `kind`. Raises: `ValidationError`."""
    return dict(values) if is_typeddict(kind) else instance(kind, dict(values))
