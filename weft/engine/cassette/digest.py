"""What makes two calls the same call: a digest of what is asked, not of how urgently.

Knows nothing of runs and records.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from json.encoder import encode_basestring as quoted
from operator import itemgetter
from typing import Any, Final

from weft.core.ports.model import ModelRequest
from weft.core.redaction import Redactor
from weft.core.values import ToolSpec

_LENGTH: Final = 12
_second: Final = itemgetter(1)
UNASKED: Final = frozenset({"priority", "cache_prefix", "program", "timeout_s"})
"""Fields of a request that do not change its answer, but where and when it is computed."""
_SEEN: Final = frozenset({"name", "description", "parameters"})
"""What a model sees of a tool."""


def tool_digest(name: str, arguments: Mapping[str, Any], redactor: Redactor) -> str:
    """12 hexadecimal digits; the same for the same content, whatever the secrets in it are."""
    text = _object_text(arguments) if type(arguments) is dict else None
    if text is None:
        text = canonical_text(arguments)
    text = f'["tool", {quoted(name)}, {text}]'
    if redactor.in_text(text):
        text = redactor.text(text)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]


def request_digest(model: str, request: ModelRequest, redactor: Redactor) -> str:
    """As `tool_digest`, of a request to the model that the program calls `model`."""
    text = redactor.text(canonical_text(["model", model, request]))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]


def identity(*content: Any) -> str:
    """What a node is whose work is made of `content`: for `Node.identity`."""
    text = canonical_text(content)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def canonical_text(content: Any) -> str:
    """JSON text of `canonical(content)`, with sorted keys: the same for the same content."""
    kind = type(content)
    if kind is str:
        return quoted(content)
    if kind is int:
        return int.__repr__(content)
    if kind is list or kind is tuple:
        return f"[{', '.join([canonical_text(item) for item in content])}]"
    if kind is dict and (text := _object_text(content)) is not None:
        return text
    return json.dumps(canonical(content), sort_keys=True, ensure_ascii=False)


def _object_text(content: dict[Any, Any]) -> str | None:
    """`canonical_text` of a dict whose keys are plain texts; None of another."""
    pairs: list[tuple[str, str]] = []
    for key, item in content.items():
        if type(key) is not str:
            return None
        kind = type(item)
        if kind is int:
            text = int.__repr__(item)
        else:
            text = quoted(item) if kind is str else canonical_text(item)
        pairs.append((key, f"{quoted(key)}: {text}"))
    pairs.sort()
    return f"{{{', '.join(map(_second, pairs))}}}"


def canonical(value: Any) -> Any:
    """`value` made of what JSON has, and the same in every process and version of weft.

    A field that has its default is left out: one that is added later changes no digest.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {str(key): canonical(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [canonical(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(json.dumps(canonical(item), sort_keys=True) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {"": type(value).__name__, **_fields(value)}
    if hasattr(value, "model_dump"):
        return canonical(value.model_dump(mode="json"))
    return repr(value)


def _fields(value: Any) -> dict[str, Any]:
    found = {}
    for field in dataclasses.fields(value):
        if isinstance(value, ModelRequest) and field.name in UNASKED:
            continue
        if isinstance(value, ToolSpec) and field.name not in _SEEN:
            continue
        content = getattr(value, field.name)
        if not _is_default(field, content):
            found[field.name] = canonical(content)
    return found


def _is_default(field: dataclasses.Field[Any], content: Any) -> bool:
    if field.default is not dataclasses.MISSING:
        return bool(content == field.default)
    made = field.default_factory
    return made is not dataclasses.MISSING and bool(content == made())
