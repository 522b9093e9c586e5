"""Canonical texts of values, and the keys made from them. Stored data depends on both forms: they
never change.

The tagged form, for caches, tells a number from its text. The plain form, for recorded calls,
stays the same when a list becomes a tuple. Of a list that grew, only the new items are written.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from json.encoder import encode_basestring_ascii
from operator import itemgetter
from typing import Any, Final

from weft.core.list_prefixes import Items, ListPrefixCache
from weft.engine.graph.node import NodeCache, StreamedItems

_second: Final = itemgetter(1)
DigestTexts = ListPrefixCache[str]
"""The texts of the items of each list written before, each with the text that precedes it."""


@dataclass(frozen=True, slots=True)
class DigestFormat:
    """How values are written. `other` writes all but texts, integers, lists and plain mappings.

    `tagged`: a container names its type, and keys are sorted as they are written.
    """

    quoted: Callable[[str], str]
    tagged: bool
    other: Callable[[Any, DigestTexts | None], str]

    def text(self, value: Any, texts: DigestTexts | None = None) -> str:
        """`value` as JSON text; `texts` caches the lists that were written before."""
        kind = type(value)
        if kind is str:
            return self.quoted(value)
        if kind is int:
            return int.__repr__(value)
        if kind is list or kind is tuple:
            items = self._items(value, texts)
            return f'["list"{items}]' if self.tagged else f"[{items[2:]}]"
        if kind is dict and (text := self._mapping(value, texts)) is not None:
            return text
        return self.other(value, texts)

    def _items(self, items: Items, texts: DigestTexts | None) -> str:
        prefix = None if texts is None else texts.find(items)
        if texts is None or prefix is None:
            return "".join([f", {self.text(item, texts)}" for item in items])
        new = items[prefix.length :]
        whole = "".join([prefix.state or "", *[f", {self.text(item)}" for item in new]])
        texts.keep(prefix, items, whole, len(whole))
        return whole

    def _mapping(self, value: Mapping[Any, Any], texts: DigestTexts | None) -> str | None:
        """The text of a mapping with plain text keys; None for other mappings."""
        quoted, tagged = self.quoted, self.tagged
        pairs: list[tuple[str, str]] = []
        for key, item in value.items():
            if type(key) is not str:
                return None
            kind = type(item)
            if kind is int:
                text = int.__repr__(item)
            else:
                text = quoted(item) if kind is str else self.text(item, texts)
            name = quoted(key)
            pair = (name, f", [{quoted(name)}, {text}]") if tagged else (key, f"{name}: {text}")
            pairs.append(pair)
        pairs.sort()
        written = map(_second, pairs)
        return f'["map"{"".join(written)}]' if tagged else f"{{{', '.join(written)}}}"


_PLAIN = (str, int, float)


def key(cache: NodeCache, inputs: Mapping[str, Any]) -> str | None:
    """SHA-256 in hex over identity and inputs; None when an input has no stable content.

    Equal keys mean equal contents. A list equals a tuple of the same items; a number does not equal
    its text, nor the key 1 the key "1". An `ordered` cache tells orders of keys apart.
    """
    try:
        text = f"[{_FORM.quoted(cache.identity)}, {content_text(inputs)}]"
        if cache.ordered and (orders := _orders([inputs[name] for name in sorted(inputs)])):
            text += json.dumps(orders)
    except Exception:  # noqa: BLE001 - a foreign class may raise anything when it is read
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def _orders(value: Any) -> list[tuple[int, list[str]]]:
    """The keys of each mapping in `value` that are not sorted, with the mapping's number."""
    keys = [[str(key) for key in mapping] for mapping in _mappings(value)]
    return [(number, each) for number, each in enumerate(keys) if each != sorted(each)]


def _mappings(value: Any) -> Iterator[Mapping[Any, Any]]:
    """The mappings in `value`, in an order that does not depend on that of their keys."""
    if isinstance(value, Mapping):
        yield value
        value = [value[key] for key in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        for item in value:
            yield from _mappings(item)


def content(value: Any) -> Any:
    """`value` as JSON in which every container names its type, so that nothing is confused.

    Raises: whatever a foreign class raises when it is read; `TypeError` for one without content.
    """
    if value is None or type(value) in _PLAIN or type(value) is bool:
        return value
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, Enum):
        return [name, value.name]
    if isinstance(value, _PLAIN):
        return [name, str(value)]
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if isinstance(value, list | tuple):
        return ["list", *map(content, value)]
    if isinstance(value, set | frozenset):
        return ["set", *sorted(json.dumps(content(item)) for item in value)]
    if isinstance(value, Mapping):
        pairs = {_key(key): content(item) for key, item in value.items()}
        return ["map", *sorted(pairs.items(), key=lambda pair: pair[0])]
    return [name, content(_fields(value))]


def content_text(value: Any, texts: DigestTexts | None = None) -> str:
    """`content(value)` as JSON text; see `DigestFormat.text`. Raises: as `content`."""
    return _FORM.text(value, texts)


def _key(key: Any) -> str:
    return encode_basestring_ascii(key) if type(key) is str else json.dumps(content(key))


def _fields(value: Any) -> Mapping[str, Any]:
    """The fields of a record. `StreamedItems` names nodes of one run: it has no stable content."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type | StreamedItems):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        fields: Mapping[str, Any] = value.model_dump(mode="json")
        return fields
    raise TypeError(f"{type(value).__name__} has no stable content")


_FORM = DigestFormat(
    encode_basestring_ascii, tagged=True, other=lambda value, _: json.dumps(content(value))
)
