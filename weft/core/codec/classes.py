"""The serialised classes: their names, fields and layouts; `Opaque` for all others.

Written journals keep their meaning: a name or number is never given to another class, and a new
field is only added at the end, with a default.
"""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from typing import (
    Any,
    Final,
    Literal,
    NamedTuple,
    NewType,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from weft.core.calls import CallEvent, ToolCalled, ToolReturned
from weft.core.content import Audio, File, Image
from weft.core.errors import Failure
from weft.core.events import (
    Event,
    GraphGrew,
    NodeFinished,
    NodeInfo,
    NodeSpent,
    NodeStarted,
    NodeWaiting,
    Outcome,
)
from weft.core.foreign import ErrorCause
from weft.core.ports.journal import Letter, RunHeader
from weft.core.ports.model import (
    Capabilities,
    ConcurrentAttention,
    ModelRequest,
    Placed,
    Prefilled,
    Program,
    ReasoningDelta,
    Sampling,
    TextDelta,
    ToolCallDelta,
)
from weft.core.values import (
    Completion,
    Denoised,
    Lossless,
    Lossy,
    Message,
    Speculated,
    ToolCall,
    ToolSpec,
    Usage,
)

Shape = Literal[
    "text",
    "int",
    "float",
    "bool",
    "bytes",
    "choice",
    "free",
    "row",
    "pair",
    "map",
    "object",
    "maybe",
    "any",
]
"""row: any number of one kind; pair: one of each; maybe: it or None; any: one of several classes;
free: any value."""
_SCALARS: dict[object, Shape] = {
    str: "text",
    int: "int",
    float: "float",
    bool: "bool",
    bytes: "bytes",
}


@dataclass(frozen=True, slots=True)
class FieldKind:
    """The type of a field: `of` its parts, `classes` allowed, `choices`: a choice's texts."""

    shape: Shape
    of: tuple[FieldKind, ...] = ()
    classes: tuple[type, ...] = ()
    choices: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ClassField:
    """A field and its default; `MISSING` without one."""

    name: str
    kind: FieldKind
    default: object


@cache
def fields_of(cls: type) -> tuple[ClassField, ...]:
    """The fields of a dataclass, in order."""
    hints = get_type_hints(cls)
    return tuple(
        ClassField(field.name, kind_of(hints[field.name]), _default(field))
        for field in dataclasses.fields(cls)
    )


def kind_of(hint: Any) -> FieldKind:
    """The kind of an annotation. Raises: `TypeError` for one that has none."""
    if isinstance(hint, NewType):
        return kind_of(hint.__supertype__)
    if hint in _SCALARS:
        return FieldKind(_SCALARS[hint])
    if hint is Any or hint is object:
        return FieldKind("free")
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return FieldKind("object", classes=(hint,))
    return _composed(get_origin(hint), get_args(hint), hint)


def _composed(origin: Any, of: tuple[Any, ...], hint: Any) -> FieldKind:
    if origin is Literal:
        return FieldKind("choice", choices=frozenset(of))
    if origin in (Union, types.UnionType):
        return _union(of)
    if origin is tuple and of[-1] is Ellipsis:
        return FieldKind("row", (kind_of(of[0]),))
    if origin is tuple:
        return FieldKind("pair", tuple(kind_of(one) for one in of))
    if isinstance(origin, type) and issubclass(origin, Mapping) and of[0] is str:
        return FieldKind("map", (kind_of(of[1]),))
    raise TypeError(f"nothing is known of how to keep {hint}")


def _union(of: tuple[Any, ...]) -> FieldKind:
    rest = tuple(one for one in of if one is not types.NoneType)
    if len(rest) == 1:
        return FieldKind("maybe", (kind_of(rest[0]),))
    return FieldKind("any", classes=of)


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


class FieldLayout(NamedTuple):
    """`number` begins the list where the class is not implied; then come `fields`."""

    number: int
    fields: tuple[str, ...]


LAYOUTS: Final[Mapping[type, FieldLayout]] = {
    NodeStarted: FieldLayout(1, ("node", "attempt", "at_s", "digest")),
    NodeFinished: FieldLayout(
        2, ("node", "outcome", "at_s", "recalled", "digest", "run_ended", "by_name")
    ),
    Outcome: FieldLayout(3, ("status", "value", "failure", "attempts", "via")),
    ToolCalled: FieldLayout(
        4,
        ("node", "attempt", "call", "tool", "arguments", "effect", "key", "at_s", "stands_for"),
    ),
    ToolReturned: FieldLayout(
        5, ("node", "attempt", "call", "value", "failure", "done", "at_s", "cause")
    ),
    NodeInfo: FieldLayout(
        6,
        (
            *("id", "kind", "parent", "sources", "resource", "may_fail", "weight", "spends"),
            *("attempts", "join", "quorum", "cancels", "streams"),
        ),
    ),
    NodeSpent: FieldLayout(7, ("node", "usage", "at_s", "recalled")),
    NodeWaiting: FieldLayout(8, ("node", "at_s")),
    GraphGrew: FieldLayout(
        9,
        ("parent", "nodes", "at_s", "results", "join", "quorum", "width", "items", "more"),
    ),
}
NUMBERED: Final[Mapping[int, type]] = {layout.number: cls for cls, layout in LAYOUTS.items()}


_SHOWN_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class Opaque:
    """Stands for an object of a foreign class. `shown` is its shortened `repr`."""

    type: str
    shown: str


def opaque(value: object) -> Opaque:
    """The `Opaque` of `value`; never raises."""
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    try:
        shown = repr(value)[:_SHOWN_CHARACTERS]
    except Exception:  # noqa: BLE001 - a foreign class may have any `__repr__`
        shown = "it cannot be shown"
    return Opaque(name, shown)


def opaque_in(value: object) -> Opaque | None:
    """The first `Opaque` inside a decoded `value`; None: it is exact."""
    waiting: list[object] = [value]
    while waiting:
        here = waiting.pop()
        if isinstance(here, Opaque):
            return here
        waiting.extend(_inside(here))
    return None


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return (*value.keys(), *value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in dataclasses.fields(value)]
    return ()


KNOWN: dict[str, type] = {}


def register(*classes: type) -> None:
    """Make frozen dataclasses serialisable, under their names. Harmless when repeated.

    Raises: `TypeError` for other classes, `ValueError` when another class has the name.
    """
    for cls in classes:
        if not (dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen):  # type: ignore[attr-defined]
            raise TypeError(f"{cls.__name__} is no frozen dataclass")
        if KNOWN.setdefault(cls.__name__, cls) is not cls:
            raise ValueError(f"another class is called {cls.__name__}")


register(
    *get_args(Event),
    *get_args(CallEvent),
    *(RunHeader, Letter, NodeInfo, Outcome, Failure, ErrorCause, Opaque),
    *(ModelRequest, Sampling, Placed, Program, ConcurrentAttention, Message, ToolCall, ToolSpec),
    *(TextDelta, ReasoningDelta, ToolCallDelta, Prefilled, Completion, Capabilities),
    *(Usage, Speculated, Denoised, Lossless, Lossy, Image, Audio, File),
)
