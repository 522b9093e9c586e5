"""From records to text. What is large is offered to be kept apart, once for each content.

Tags, which are keys that begin with `~` and come first in their object: `~` the class, `~r` what is
kept apart, `~l` a long list in chunks, `~t` tuple, `~s` set, `~f` frozenset, `~d` a dict whose keys
are no plain texts, `~b` bytes, `~n` a float that is not finite, `~i` an integer of many digits.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from json.encoder import encode_basestring as quoted
from math import isfinite
from typing import Any

from weft.core.codec.kinds import Kind, fields_of
from weft.core.codec.opaque import Opaque, opaque
from weft.core.codec.registry import KNOWN
from weft.core.errors import StoreError
from weft.core.values import Message

Keep = Callable[[str], str]
"""Keeps a text apart and returns its name, which is the same for the same text."""
Write = Callable[[Any, "Sink"], str]

_APART = 256
_MESSAGE_APART = 64  # messages come again with every request of their conversation
_CHUNK = 512
_NUMBERS = 128
_DEEPEST = 64  # a reader needs a few frames of Python's stack for each
_LARGEST = 1 << 28
_PLAIN_BITS = 10_000  # Python refuses to read integers of more than 4,300 digits


class _Unwritable(Exception):
    """Nested too deep, or too large; a reader would refuse it too."""


class Sink:
    """Where a text goes while it is written. Without `keep` all of it stays in one piece."""

    __slots__ = ("depth", "keep", "total")

    def __init__(self, keep: Keep | None) -> None:
        self.keep = keep
        self.depth = 0
        self.total = 0

    def fold(self, text: str, limit: int = _APART) -> str:
        """`text`, or the reference that stands for it."""
        if len(text) <= limit or self.keep is None:
            return text
        self.total += len(text)
        if self.total > _LARGEST:
            raise _Unwritable
        return f'{{"~r":"{self.keep(text)}"}}'

    def listed(self, texts: Sequence[str]) -> str:
        """A list of items, in chunks when it is long: a list that grew shares its beginning."""
        if self.keep is None or sum(map(len, texts)) <= _CHUNK:
            return f"[{','.join(texts)}]"
        return self.chunked([f"[{','.join(chunk)}]" for chunk in _chunks(texts)])

    def chunked(self, chunks: list[str]) -> str:
        """The tree of `chunks`, each of them a list."""
        folded = [self.fold(chunk) for chunk in chunks]
        if sum(map(len, folded)) <= _CHUNK or len(folded) == 1:
            return f'{{"~l":[{",".join(folded)}]}}'
        return self.chunked([f'{{"~l":[{",".join(inner)}]}}' for inner in _chunks(folded)])


def encode(value: object, keep: Keep | None = None) -> str:
    """`value`, of a known class, as one JSON text.

    Raises: `StoreError` when a field holds what its class does not allow.
    """
    cls: type = type(value)
    try:
        return _object_writer(cls, None)(value, Sink(keep))
    except _Unwritable as error:
        told = f"a {type(value).__name__} is larger than {_LARGEST >> 20} MiB"
        raise StoreError(told, hint="keep such values in files, and hand on their paths") from error


def encode_all(values: Iterable[object], keep: Keep | None = None) -> str:
    """Several values as one JSON list. Raises: as `encode`."""
    return f"[{','.join([encode(value, keep) for value in values])}]"


def _chunks(texts: Sequence[str]) -> Iterable[Sequence[str]]:
    start = size = 0
    for end, text in enumerate(texts, 1):
        size += len(text)
        if size >= _CHUNK:
            yield texts[start:end]
            start, size = end, 0
    if start < len(texts):
        yield texts[start:]


@cache
def _object_writer(cls: type, apart: int | None) -> Write:
    """`apart`: from which length the object is kept apart; None: never."""
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
                held = getattr(value, name)
                if held is default or (omits and held == default):
                    continue
                text += key + written(held, sink)
        except TypeError as error:
            raise StoreError(f"{cls.__name__}.{name} cannot be kept: {error}") from error
        text += "}"
        return text if apart is None else sink.fold(text, apart)

    return write


def _omits(kind: Kind) -> bool:
    # A foreign object may answer `==` with anything.
    return kind.shape not in ("free", "any", "map")


def _writer(kind: Kind) -> Write:
    match kind.shape:
        case "object":
            return _typed_object(kind.classes[0])
        case "maybe":
            return _maybe(_writer(kind.of[0]))
        case "row" if kind.of[0].shape in ("int", "float"):
            return _numbers(_writer(kind.of[0]))
        case "row":
            return _row(_writer(kind.of[0]))
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
    return text if len(text) <= _APART else sink.fold(text)


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


def _choice(choices: frozenset[str]) -> Write:
    texts = {choice: quoted(choice) for choice in choices}

    def write(value: Any, _sink: Sink) -> str:
        if value not in texts:
            raise TypeError(f"{value!r} is none of {', '.join(sorted(choices))}")
        return texts[value]

    return write


def _typed_object(cls: type) -> Write:
    apart = _MESSAGE_APART if cls is Message else _APART

    def write(value: Any, sink: Sink) -> str:
        found: type = type(value)
        if found is not cls:
            raise TypeError(f"{found.__name__} is no {cls.__name__}")
        return _object_writer(cls, apart)(value, sink)

    return write


def _maybe(inner: Write) -> Write:
    return lambda value, sink: "null" if value is None else inner(value, sink)


def _row(inner: Write) -> Write:
    return lambda value, sink: sink.listed([inner(one, sink) for one in value]) if value else "[]"


def _numbers(inner: Write) -> Write:
    def write(value: Any, sink: Sink) -> str:
        if len(value) <= _NUMBERS or sink.keep is None:
            return f"[{','.join([inner(one, sink) for one in value])}]"
        texts = [inner(one, sink) for one in value]
        starts = range(0, len(texts), _NUMBERS)
        return sink.chunked([f"[{','.join(texts[at : at + _NUMBERS])}]" for at in starts])

    return write


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
        return _free(value, sink)

    return write


def _free(value: Any, sink: Sink) -> str:
    scalar = _PLAIN.get(type(value))
    if scalar is not None:
        return scalar(value, sink)
    if sink.depth:
        return _nested(value, sink)
    try:
        return _nested(value, sink)
    except (_Unwritable, StoreError, RuntimeError):  # or changed by another thread meanwhile
        return _object_writer(_OPAQUE, _APART)(opaque(value), sink)
    finally:
        sink.depth = 0


def _nested(value: Any, sink: Sink) -> str:
    cls = type(value)
    if cls not in _CONTAINERS and KNOWN.get(cls.__name__) is not cls:
        value = opaque(value)
        cls = _OPAQUE
    sink.depth += 1
    if sink.depth > _DEEPEST:
        raise _Unwritable
    container = _CONTAINERS.get(cls)
    text = _typed_object(cls)(value, sink) if container is None else container(value, sink)
    sink.depth -= 1
    return text


def _items(value: Iterable[Any], sink: Sink) -> str:
    return sink.listed([_free(one, sink) for one in value])


def _mapping(value: Mapping[Any, Any], sink: Sink, inner: Write) -> str:
    if all(type(key) is str and not key.startswith("~") for key in value):
        pairs = [f"{quoted(key)}:{inner(held, sink)}" for key, held in value.items()]
        return sink.fold(f"{{{','.join(pairs)}}}")
    entries = [f"[{_free(key, sink)},{inner(held, sink)}]" for key, held in value.items()]
    return f'{{"~d":{sink.listed(entries)}}}'


def _sorted(value: Iterable[Any], sink: Sink) -> str:
    return sink.listed(sorted(_free(one, sink) for one in value))


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
    "free": _free,
}
_CONTAINERS: dict[type, Write] = {
    list: _items,
    tuple: lambda value, sink: f'{{"~t":{_items(value, sink)}}}',
    dict: lambda value, sink: _mapping(value, sink, _free),
    set: lambda value, sink: f'{{"~s":{_sorted(value, sink)}}}',
    frozenset: lambda value, sink: f'{{"~f":{_sorted(value, sink)}}}',
    bytes: lambda value, sink: sink.fold(f'{{"~b":"{b64encode(value).decode()}"}}'),
}
