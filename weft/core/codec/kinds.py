"""What a field of a class may hold, read off its annotation, as plain data.

Does not know how any of it is written.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

Shape = Literal[
    "text", "int", "float", "bool", "choice", "free", "row", "pair", "map", "object", "maybe", "any"
]
"""row: any number of one kind; pair: one of each; maybe: it or None; any: one of several classes;
free: whatever there is."""
_SCALARS: dict[object, Shape] = {str: "text", int: "int", float: "float", bool: "bool"}


@dataclass(frozen=True, slots=True)
class Kind:
    """`of`: what it is made of. `classes`: what is allowed. `choices`: the texts of a `choice`."""

    shape: Shape
    of: tuple[Kind, ...] = ()
    classes: tuple[type, ...] = ()
    choices: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Field:
    """A field and its default; `MISSING` where there is none."""

    name: str
    kind: Kind
    default: object


@cache
def fields_of(cls: type) -> tuple[Field, ...]:
    """The fields of a dataclass, in order."""
    hints = get_type_hints(cls)
    return tuple(
        Field(field.name, kind_of(hints[field.name]), _default(field))
        for field in dataclasses.fields(cls)
    )


def kind_of(hint: Any) -> Kind:
    """The kind that an annotation stands for. Raises: `TypeError` for one that has none."""
    if isinstance(hint, NewType):
        return kind_of(hint.__supertype__)
    if hint in _SCALARS:
        return Kind(_SCALARS[hint])
    if hint is Any or hint is object:
        return Kind("free")
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return Kind("object", classes=(hint,))
    return _composed(get_origin(hint), get_args(hint), hint)


def _composed(origin: Any, of: tuple[Any, ...], hint: Any) -> Kind:
    if origin is Literal:
        return Kind("choice", choices=frozenset(of))
    if origin in (Union, types.UnionType):
        return _union(of)
    if origin is tuple and of[-1] is Ellipsis:
        return Kind("row", (kind_of(of[0]),))
    if origin is tuple:
        return Kind("pair", tuple(kind_of(one) for one in of))
    if isinstance(origin, type) and issubclass(origin, Mapping) and of[0] is str:
        return Kind("map", (kind_of(of[1]),))
    raise TypeError(f"nothing is known of how to keep {hint}")


def _union(of: tuple[Any, ...]) -> Kind:
    rest = tuple(one for one in of if one is not types.NoneType)
    if len(rest) == 1:
        return Kind("maybe", (kind_of(rest[0]),))
    return Kind("any", classes=of)


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default
