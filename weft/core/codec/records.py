"""From records to text. What is large is offered to be kept apart, once for each content.

An object of a known class is a JSON object with its class and its fields. Where several are written
together, those of `weft.core.codec.layouts` are lists of their fields.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.core.codec.layouts import LAYOUTS
from weft.core.codec.quick import quickly
from weft.core.codec.sink import LARGEST, Keep, Sink, Unwritable, WrittenLists
from weft.core.codec.writer import list_writer, object_writer
from weft.core.errors import StoreError


def encode(value: object, keep: Keep | None = None) -> str:
    """`value`, of a known class, as one JSON text.

    Raises: `StoreError` when a field holds what its class does not allow.
    """
    return _written(value, Sink(keep))


def encode_all(
    values: Iterable[object], keep: Keep | None = None, lists: WrittenLists | None = None
) -> str:
    """Several values as one JSON list. Raises: as `encode`.

    `lists`: what the same `keep` has kept of lists before, which is not offered to it again.
    """
    sink = Sink(keep, as_lists=True, lists=lists)
    return f"[{','.join(quickly(values, sink, _written))}]"


def _written(value: object, sink: Sink) -> str:
    cls: type = type(value)
    sink.total = sink.depth = 0
    try:
        if sink.as_lists and cls in LAYOUTS:
            return f"[{LAYOUTS[cls].number},{list_writer(cls)(value, sink)[1:]}"
        return object_writer(cls, None)(value, sink)
    except Unwritable as error:
        told = f"a {type(value).__name__} is larger than {LARGEST >> 20} MiB"
        raise StoreError(told, hint="keep such values in files, and hand on their paths") from error
