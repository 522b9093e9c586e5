"""The fields of a workflow's state: their types, initial values and reducers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NoReturn

from pydantic import BeforeValidator, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from weft.core.schema import array_of, at
from weft.core.values import JsonSchema
from weft.validation import violation
from weft.workflow.document.spec.fields import SpecPart, optional, shortens
from weft.workflow.document.spec.schemas import SchemaSpec

Reducer = Literal["replace", "append", "extend", "union", "add", "max", "min", "merge"]
COMMUTATIVE = frozenset(("add", "max", "min"))
"""The reducers whose result is the same in any order of the writes."""
_TAKES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("append", "extend", "union"), ("array",)),
    "add": ("integer", "number"),
    **dict.fromkeys(("max", "min"), ("integer", "number", "string")),
    "merge": ("object",),
}
_EMPTY: Mapping[str, JsonValue] = {"array": [], "object": {}}


class StateField(SpecPart):
    """A field of the workflow's state. What its nodes write is folded in the order of the file."""

    type: SchemaSpec = Field(
        description="Its type: `string`, `integer`, `[string]`, ... or a JSON Schema."
    )
    initial: JsonValue = optional(
        "Its value before anything is written. By default an empty list or mapping, or 0, where a "
        "reducer starts with one; else null."
    )
    reduce: Reducer | None = optional(
        "How a value is written: `replace` it, `append` an item, `extend` by a list, `union` "
        "without repeated items, `add` a number, keep the `max` or `min`, `merge` a mapping. "
        "Without it a value replaces the one before, and no two nodes may write at the same time."
    )

    @property
    def start(self) -> Any:
        """The value before the first write; a new object each time."""
        if "initial" in self.model_fields_set:
            return _copy(self.initial)
        kind = self.type.get("type")
        if self.reduce == "add":
            return 0
        return _copy(_EMPTY[str(kind)]) if self.reduce in _TAKES and kind in _EMPTY else None

    @property
    def written(self) -> JsonSchema:
        """The schema of one write."""
        if self.reduce == "append":
            return self._item or {}
        if self.reduce in ("extend", "union"):
            return array_of(self._item)
        return {"type": "object"} if self.reduce == "merge" else self.type

    @property
    def _item(self) -> JsonSchema | None:
        try:
            return at(self.type, [0])
        except LookupError:  # a list that has no items
            return None

    @model_validator(mode="after")
    def _fits(self) -> StateField:
        takes = _TAKES.get(self.reduce or "")
        if takes is not None and self.type.get("type") not in takes:
            _refuse(f"`{self.reduce}` needs the type {' or '.join(takes)}", "reduce")
        given, start = "initial" in self.model_fields_set, self.start
        why = violation(start, self.type) if given or start is not None else None
        if why is not None:
            _refuse(f"the initial value does not fit: {why}", *["initial"] * given)
        return self


def _refuse(why: str, *where: str) -> NoReturn:
    raise PydanticCustomError("schema", "{why}", {"why": why, "where": list(where)})


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(each) for key, each in value.items()}
    return [_copy(each) for each in value] if isinstance(value, list) else value


StateFields = Annotated[
    StateField,
    BeforeValidator(
        lambda value: {"type": value} if isinstance(value, str | list) else value,
        json_schema_input_type=StateField | str | list[str],
    ),
    shortens("type"),
]
"""A field; the name of a type alone has neither an initial value nor a reducer."""


def state_schema(fields: Mapping[str, StateField]) -> JsonSchema:
    """The schema of the whole state, as expressions see it."""
    return {
        "type": "object",
        "properties": {name: dict(field.type) for name, field in fields.items()},
        "required": list(fields),
        "additionalProperties": False,
    }
