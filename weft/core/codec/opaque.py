"""What is kept of an object that has no exact text: its type's name, and how it showed itself.

Does not know why it was met.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_SHOWN_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class Opaque:
    """Stands for an object of a class that weft does not know. `shown` is its cut `repr`."""

    type: str
    shown: str


def opaque(value: object) -> Opaque:
    """What can be said of `value`; never raises."""
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    try:
        shown = repr(value)[:_SHOWN_CHARACTERS]
    except Exception:  # noqa: BLE001 - a foreign class may have any `__repr__`
        shown = "it cannot be shown"
    return Opaque(name, shown)


def opaque_in(value: object) -> Opaque | None:
    """The first `Opaque` anywhere inside a decoded `value`; None: it is exact."""
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
