"""From values to text: a writer for each kind of field, and for free values.

Tags are keys that begin with `~` and come first in their object: `~` the class, `~r` a reference to
a text stored apart, `~l` a long list in chunks, `~t` tuple, `~s` set, `~f` frozenset, `~d` a dict
whose keys are not plain texts, `~b` bytes, `~n` a float that is not finite, `~i` a huge integer.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from json.encoder import encode_basestring as quoted
from math import isfinite
from operator import attrgetter
from typing import Any

from weft.core.codec.classes import KNOWN, LAYOUTS, ClassField, FieldKind, Opaque, fields_of, opaque
from weft.core.codec.sink import APART, CHUNK, Sink, Unwritable
from weft.core.codec.sink import Writer as Write
from weft.core.errors import StoreError
from weft.core.events import NodeInfo
from weft.core.ids import NodeId
from weft.core.list_prefixes import Items
from weft.core.values import Message

_MESSAGE_APART = 64  # messages recur with every request of their conversation
_NODES_CHUNK = 8192  # nodes and their names recur with every run of the same program
_NUMBERS = 128
_DEEPEST = 64  # a reader needs a few frames of Python's stack for each
_PAIR = 2
_SHORT = 1 << 62
_PLAIN_BITS = 10_000  # Python refuses to read integers of more than 4,300 digits


_tail_of = attrgetter(*LAYOUTS[NodeInfo].fields[5:])
_USUAL_TAIL = _tail_of(NodeInfo(NodeId(""), ""))


@cache
def object_writer(cls: type, apart: int | None) -> Write:
    """Writes an object with its class; apart from length `apart` on (None: never)."""
    if KNOWN.get(cls.__name__) is not cls:
        raise StoreError(f"a journal does not know the class {cls.__name__}")
    fields = [
        (field.name, f',"{field.name}":', field.default, _omits(field.kind), _writer(field.kind))
        for field in fields_of(cls)
    ]
    head = f'{{"~":"{cls.__name__}"'

    def write(value: Any, sink: Sink) -> str:
        text = head
        try:
            for name, key, default, omits, written in fields:
                field = getattr(value, name)
                if field is default or (omits and field == default):
                    continue
                text += key + written(field, sink)
        except TypeError as error:
            raise StoreError(f"{cls.__name__}.{name} cannot be kept: {error}") from error
        text += "}"
        return text if apart is None else sink.fold(text, apart)

    return write


@cache
def list_writer(cls: type) -> Write:
    """Writes an object of a class with a layout as a list, without default fields at its end."""
    names = LAYOUTS[cls].fields
    by_name: dict[str, ClassField] = {field.name: field for field in fields_of(cls)}
    fields = [by_name[name] for name in names]
    written = [(field.name, _writer(field.kind)) for field in fields]
    defaults = [(field.default, _omits(field.kind)) for field in fields]
    read = attrgetter(*names)

    def write(value: Any, sink: Sink) -> str:
        values = read(value)
        end = len(values)
        while end:
            default, omits = defaults[end - 1]
            last = values[end - 1]
            if last is not default and not (omits and last == default):
                break
            end -= 1
        texts: list[str] = []
        try:
            for (name, one), part in zip(written, values[:end], strict=False):  # noqa: B007
                texts.append(one(part, sink))
        except TypeError as error:
            raise StoreError(f"{cls.__name__}.{name} cannot be kept: {error}") from error
        return f"[{','.join(texts)}]"

    return write


def _omits(kind: FieldKind) -> bool:
    # A foreign object may answer `==` with anything.
    return kind.shape not in ("free", "any", "map")


def _writer(kind: FieldKind) -> Write:
    match kind.shape:
        case "object":
            return _typed_object(kind.classes[0])
        case "maybe":
            return _maybe(_writer(kind.of[0]))
        case "row" if kind.of[0].shape in ("int", "float"):
            return _numbers(_writer(kind.of[0]))
        case "row":
            inner = kind.of[0]
            of_nodes = inner.shape == "text" or inner.classes == (NodeInfo,)
            return _row(_writer(inner), _NODES_CHUNK if of_nodes else CHUNK)
        case "pair" if tuple(one.shape for one in kind.of) == ("int", "float"):
            return _int_and_float
        case "pair":
            return _pair([_writer(one) for one in kind.of])
        case "map":
            return _map(_writer(kind.of[0]))
        case "choice":
            return _choice(kind.choices)
        case "any":
            return _any(kind.classes)
    return _SCALARS[kind.shape]


def _text(value: Any, sink: Sink) -> str:
    text = quoted(value)
    return text if len(text) <= APART else sink.fold(text)


def _int(value: Any, _sink: Sink) -> str:
    if not isinstance(value, int):
        raise TypeError(f"{type(value).__name__} is no integer")
    if value.bit_length() > _PLAIN_BITS:
        return f'{{"~i":"{value:x}"}}'
    return int.__repr__(value)


def _float(value: Any, sink: Sink) -> str:
    if isinstance(value, float):
        return float.__repr__(value) if isfinite(value) else f'{{"~n":"{float(value)}"}}'
    return _int(value, sink)


def _bool(value: Any, _sink: Sink) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    raise TypeError(f"{type(value).__name__} is no boolean")


def _bytes(value: Any, sink: Sink) -> str:
    return sink.fold(f'{{"~b":"{b64encode(value).decode()}"}}')


def _choice(choices: frozenset[str]) -> Write:
    texts = {choice: quoted(choice) for choice in choices}

    def write(value: Any, _sink: Sink) -> str:
        if value not in texts:
            raise TypeError(f"{value!r} is none of {', '.join(sorted(choices))}")
        return texts[value]

    return write


def _apart(cls: type) -> int:
    return _MESSAGE_APART if cls is Message else APART


def _typed_object(cls: type) -> Write:
    apart, has_layout = _apart(cls), cls in LAYOUTS

    def write(value: Any, sink: Sink) -> str:
        actual: type = type(value)
        if actual is not cls:
            raise TypeError(f"{actual.__name__} is no {cls.__name__}")
        if sink.as_lists and has_layout:
            if cls is NodeInfo and (text := _usual_node(value)):
                return text
            return sink.fold(list_writer(cls)(value, sink), apart)
        return object_writer(cls, apart)(value, sink)

    return write


def _usual_node(value: NodeInfo) -> str:
    """The fast path of `list_writer` for nodes, which are many; empty for an unusual one."""
    if _tail_of(value) != _USUAL_TAIL:
        return ""
    parent, resource = value.parent, value.resource
    text = f"[{quoted(value.id)},{quoted(value.kind)}"
    if value.sources or resource is not None:
        of_parent = "null" if parent is None else quoted(parent)
        text += f",{of_parent},[{','.join(map(quoted, value.sources))}]"
        text += "]" if resource is None else f",{quoted(resource)}]"
    else:
        text += "]" if parent is None else f",{quoted(parent)}]"
    return text if len(text) <= APART else ""


def _maybe(inner: Write) -> Write:
    return lambda value, sink: "null" if value is None else inner(value, sink)


def _row(inner: Write, size: int) -> Write:
    def write(value: Any, sink: Sink) -> str:
        return sink.grown(value, inner, size) if value else "[]"

    return write


def _numbers(inner: Write) -> Write:
    def write(value: Any, sink: Sink) -> str:
        return sink.grown(value, inner, _NUMBERS, counted=True)

    return write


def _int_and_float(value: Any, sink: Sink) -> str:
    """A pair of them; a run's measures have one for each node."""
    if len(value) != _PAIR:
        raise TypeError(f"{len(value)} parts instead of {_PAIR}")
    count, number = value
    if type(count) is int and -_SHORT < count < _SHORT and type(number) is float:
        text = f"[{count!r},{number!r}]"
        if isfinite(number):
            return text
    return f"[{_int(count, sink)},{_float(number, sink)}]"


def _pair(inner: list[Write]) -> Write:
    def write(value: Any, sink: Sink) -> str:
        if len(value) != len(inner):
            raise TypeError(f"{len(value)} parts instead of {len(inner)}")
        return f"[{','.join([one(part, sink) for one, part in zip(inner, value, strict=True)])}]"

    return write


def _map(inner: Write) -> Write:
    def write(value: Any, sink: Sink) -> str:
        if not isinstance(value, Mapping):
            raise TypeError(f"{type(value).__name__} is no mapping")
        return _mapping(value, sink, inner)

    return write


def _any(classes: tuple[type, ...]) -> Write:
    def write(value: Any, sink: Sink) -> str:
        if not isinstance(value, classes):
            raise TypeError(f"{type(value).__name__} is not allowed here")
        return free(value, sink)

    return write


def free(value: Any, sink: Sink) -> str:
    """The text of any value of a program; one without an exact text becomes an `Opaque`."""
    kind = type(value)
    scalar = _PLAIN.get(kind)
    if scalar is not None and (kind is not str or len(value) <= APART):
        return scalar(value, sink)
    if sink.depth:
        return _nested(value, sink) if scalar is None else scalar(value, sink)
    text = sink.known(value)
    if text is None:
        text = _whole(value, sink) if scalar is None else scalar(value, sink)
        sink.remember(value, text)
    return text


def _whole(value: Any, sink: Sink) -> str:
    try:
        return _nested(value, sink)
    except (Unwritable, StoreError, RuntimeError):  # or another thread changed it meanwhile
        if sink.lists is not None:
            sink.lists.clear()  # no record refers to the stored parts of this value
        return object_writer(_OPAQUE, APART)(opaque(value), sink)
    finally:
        sink.depth = 0


def _nested(value: Any, sink: Sink) -> str:
    cls: type = type(value)
    if cls not in _CONTAINERS and KNOWN.get(cls.__name__) is not cls:
        value = opaque(value)
        cls = _OPAQUE
    sink.depth += 1
    if sink.depth > _DEEPEST:
        raise Unwritable
    container = _CONTAINERS.get(cls)
    writer = container or object_writer(cls, _apart(cls))
    text = writer(value, sink)
    sink.depth -= 1
    return text


def _items(value: Items, sink: Sink) -> str:
    return sink.grown(value, free)


def _mapping(value: Mapping[Any, Any], sink: Sink, inner: Write) -> str:
    for key in value:
        if type(key) is not str or key.startswith("~"):
            return _odd_mapping(value, sink, inner)
    pairs = [f"{quoted(key)}:{inner(item, sink)}" for key, item in value.items()]
    return sink.fold(f"{{{','.join(pairs)}}}")


def _odd_mapping(value: Mapping[Any, Any], sink: Sink, inner: Write) -> str:
    entries = [f"[{free(key, sink)},{inner(item, sink)}]" for key, item in value.items()]
    return f'{{"~d":{sink.listed(entries)}}}'


def _sorted(value: Iterable[Any], sink: Sink) -> str:
    return sink.listed(sorted(free(one, sink) for one in value))


_OPAQUE: type = Opaque
_PLAIN: dict[type, Write] = {
    str: _text,
    int: _int,
    float: _float,
    bool: _bool,
    type(None): lambda _value, _sink: "null",
}
_SCALARS: dict[str, Write] = {
    "text": _text,
    "int": _int,
    "float": _float,
    "bool": _bool,
    "free": free,
    "bytes": _bytes,
}
_CONTAINERS: dict[type, Write] = {
    list: _items,
    tuple: lambda value, sink: f'{{"~t":{_items(value, sink)}}}',
    dict: lambda value, sink: _mapping(value, sink, free),
    set: lambda value, sink: f'{{"~s":{_sorted(value, sink)}}}',
    frozenset: lambda value, sink: f'{{"~f":{_sorted(value, sink)}}}',
    bytes: _bytes,
}
