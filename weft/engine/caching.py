"""The key under which a node's result is kept: a hash of what the node is and what it receives."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from enum import Enum
from json.encoder import encode_basestring_ascii
from typing import Any

from weft.engine.digest_text import DigestFormat, DigestTexts
from weft.engine.node import Cache, Streamed

_PLAIN = (str, int, float)


def key(cache: Cache, inputs: Mapping[str, Any]) -> str | None:
    """SHA-256 in hex over identity and inputs; None when an input has no stable content.

    Equal keys mean equal contents: a list and a tuple of the same items are equal, a number and
    its text, or the key 1 and the key "1", are not.
    """
    try:
        text = f"[{_FORM.quoted(cache.identity)}, {content_text(inputs)}]"
    except Exception:  # noqa: BLE001 - a foreign class may raise anything when it is looked at
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def content(value: Any) -> Any:
    """`value` as JSON in which every container says what it is, so that nothing is confused.

    Raises whatever a foreign class raises when it is looked at; `TypeError` where it has none.
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
    """What a record holds. A `Streamed` names nodes of one run, so it has no stable content."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type | Streamed):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "model_dump"):
        fields: Mapping[str, Any] = value.model_dump(mode="json")
        return fields
    raise TypeError(f"{type(value).__name__} has no stable content")


_FORM = DigestFormat(
    encode_basestring_ascii, tagged=True, other=lambda value, _: json.dumps(content(value))
)
