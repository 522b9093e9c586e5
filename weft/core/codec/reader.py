"""From text to records. A text can only create instances of registered classes."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import MISSING
from functools import cache
from typing import Any, TypeVar

from weft.core.codec.classes import KNOWN, LAYOUTS, NUMBERED, FieldKind, fields_of
from weft.core.errors import StoreError

Get = Callable[[str], str]
"""The text stored under a name. Raises: `StoreError` when there is none."""
Read = Callable[[Any, "TextSource"], Any]
T = TypeVar("T")

_LARGEST = 1 << 30
_DEEPEST = 400
_DAMAGED = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
_HINT = "the text was damaged, or a newer weft wrote it"


class TextSource:
    """The text being read, with the store of its parts."""

    __slots__ = ("depth", "get", "total")

    def __init__(self, get: Get | None) -> None:
        self.get = get
        self.depth = 0
        self.total = 0

    def resolved(self, node: Any) -> Any:
        """`node`, or the stored text that it refers to."""
        if type(node) is not dict or "~r" not in node:
            return node
        if self.get is None:
            raise ValueError("what it refers to is not at hand")
        text = self.get(_as(str, node["~r"]))
        self.total += len(text)
        if self.total > _LARGEST:
            raise ValueError("it is larger than anything weft writes")
        return json.loads(text)

    def listed(self, node: Any) -> Iterator[Any]:
        """The items of a list, in chunks or not."""
        node = self.resolved(node)
        if type(node) is list:
            yield from node
            return
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ValueError("it is nested deeper than anything weft writes")
        for chunk in _as(list, _as(dict, node)["~l"]):
            yield from self.listed(chunk)
        self.depth -= 1


def decode(text: str, get: Get | None = None) -> Any:
    """The value of a registered class that `encode` wrote as `text`. Raises: `StoreError`."""
    return _guarded(lambda: _tagged_object(json.loads(text), TextSource(get)))


def decode_all(text: str, get: Get | None = None) -> list[Any]:
    """The values that `encode_all` wrote as `text`. Raises: `StoreError`."""
    return _guarded(
        lambda: [_numbered_object(one, TextSource(get)) for one in _as(list, json.loads(text))]
    )


def _guarded(read: Callable[[], T]) -> T:
    try:
        return read()
    except StoreError:
        raise
    except _DAMAGED as error:
        message = f"{type(error).__name__}: {error}"[:300]
        raise StoreError(f"a record cannot be read: {message}", hint=_HINT) from error


def _as(cls: type[T], node: Any) -> T:
    if type(node) is not cls:
        raise ValueError(f"{type(node).__name__} in the place of {cls.__name__}")
    return node


def _numbered_object(node: Any, source: TextSource) -> Any:
    """As `_tagged_object`, or as a list that begins with the number of its class."""
    if type(node) is not list:
        return _tagged_object(node, source)
    number = node[0]
    cls = NUMBERED.get(number) if type(number) is int else None
    if cls is None:
        raise ValueError("a list of no known class")
    return _object_reader(cls)(node[1:], source)


def _tagged_object(node: Any, source: TextSource) -> Any:
    name = _as(dict, node).get("~")
    cls = KNOWN.get(name) if type(name) is str else None
    if cls is None:
        raise ValueError("an object of no known class")
    return _object_reader(cls)(node, source)


@cache
def _object_reader(cls: type) -> Read:
    fields = {field.name: _reader(field.kind) for field in fields_of(cls)}
    needed = frozenset(field.name for field in fields_of(cls) if field.default is MISSING)
    placed = [(name, fields[name]) for name in LAYOUTS[cls].fields] if cls in LAYOUTS else []

    def listed(node: list[Any], source: TextSource) -> dict[str, Any]:
        if len(node) > len(placed):
            raise ValueError(f"a {cls.__name__} of {len(node)} fields")
        pairs = zip(placed, node, strict=False)
        return {name: reader(value, source) for (name, reader), value in pairs}

    def tagged(node: dict[str, Any], source: TextSource) -> dict[str, Any]:
        if node.get("~") != cls.__name__:
            raise ValueError(f"no {cls.__name__}")
        return {key: fields[key](value, source) for key, value in node.items() if key != "~"}

    def read(node: Any, source: TextSource) -> Any:
        node = source.resolved(node)
        values = listed(node, source) if type(node) is list else tagged(_as(dict, node), source)
        if not needed <= values.keys():
            raise ValueError(f"a {cls.__name__} lacks {', '.join(sorted(needed - values.keys()))}")
        return cls(**values)

    return read


def _reader(kind: FieldKind) -> Read:
    match kind.shape:
        case "object":
            return _late(kind.classes[0])
        case "maybe":
            inner = _reader(kind.of[0])
            return lambda node, source: None if node is None else inner(node, source)
        case "row":
            one = _reader(kind.of[0])
            return lambda node, source: tuple([one(item, source) for item in source.listed(node)])
        case "pair":
            return _pair([_reader(one) for one in kind.of])
        case "map":
            value = _reader(kind.of[0])
            return lambda node, source: _mapping(source.resolved(node), source, value)
        case "choice":
            return _choice(kind.choices)
        case "any":
            return _any(kind.classes)
    return _SCALARS[kind.shape]


def _late(cls: type) -> Read:
    def read(node: Any, source: TextSource) -> Any:
        return _object_reader(cls)(node, source)  # resolved when called: classes may nest

    return read


def _text(node: Any, source: TextSource) -> str:
    return node if type(node) is str else _as(str, source.resolved(node))


def _int(node: Any, _source: TextSource) -> int:
    if type(node) is int:
        return node
    return int(_as(str, _as(dict, node)["~i"]), 16)


def _float(node: Any, source: TextSource) -> float:
    if type(node) is float or type(node) is int:
        return node
    return _not_finite(node) if "~n" in _as(dict, node) else _int(node, source)


def _not_finite(node: dict[str, Any]) -> float:
    return {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}[_as(str, node["~n"])]


def _bool(node: Any, _source: TextSource) -> bool:
    return _as(bool, node)


def _choice(choices: frozenset[str]) -> Read:
    def read(node: Any, _source: TextSource) -> str:
        if _as(str, node) not in choices:
            raise ValueError(f"{node!r} is none of {', '.join(sorted(choices))}")
        return str(node)

    return read


def _pair(inner: list[Read]) -> Read:
    def read(node: Any, source: TextSource) -> tuple[Any, ...]:
        return tuple([one(part, source) for one, part in zip(inner, _as(list, node), strict=True)])

    return read


def _any(classes: tuple[type, ...]) -> Read:
    def read(node: Any, source: TextSource) -> Any:
        value = _free(node, source)
        if not isinstance(value, classes):
            raise TypeError(f"{type(value).__name__} is not allowed here")
        return value

    return read


def _mapping(node: Any, source: TextSource, value: Read) -> dict[Any, Any]:
    if "~d" not in _as(dict, node):
        return {key: value(part, source) for key, part in node.items()}
    pairs = [_as(list, pair) for pair in source.listed(node["~d"])]
    return {_free(key, source): value(part, source) for key, part in pairs}


def _free(node: Any, source: TextSource) -> Any:
    if type(node) is list:
        return [_free(one, source) for one in node]
    if type(node) is not dict:
        return node
    tag = next(iter(node), "")
    if not tag.startswith("~"):
        return {key: _free(part, source) for key, part in node.items()}
    return _TAGS[tag](node, source)


def _apart(node: Any, source: TextSource) -> Any:
    source.depth += 1
    if source.depth > _DEEPEST:
        raise ValueError("it is nested deeper than anything weft writes")
    value = _free(source.resolved(node), source)
    source.depth -= 1
    return value


def _items(node: Any, source: TextSource) -> list[Any]:
    return [_free(one, source) for one in source.listed(node)]


_SCALARS: dict[str, Read] = {
    "text": _text,
    "int": _int,
    "float": _float,
    "bool": _bool,
    "free": _free,
    "bytes": lambda node, source: _as(bytes, _free(node, source)),
}
_TAGS: dict[str, Read] = {
    "~": _tagged_object,
    "~r": _apart,
    "~l": _items,
    "~t": lambda node, source: tuple(_items(node["~t"], source)),
    "~s": lambda node, source: set(_items(node["~s"], source)),
    "~f": lambda node, source: frozenset(_items(node["~f"], source)),
    "~d": lambda node, source: _mapping(node, source, _free),
    "~b": lambda node, _source: b64decode(_as(str, node["~b"]), validate=True),
    "~n": lambda node, _source: _not_finite(node),
    "~i": _int,
}
