"""The key under which a node's result is kept: a hash of what the node is and what it receives."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from typing import Any

from weft.engine.node import Cache


def key(cache: Cache, inputs: Mapping[str, Any]) -> str | None:
    """SHA-256 in hex over identity and inputs; None when an input has no stable content."""
    try:
        text = json.dumps(
            [cache.identity, dict(inputs)], sort_keys=True, default=_content, ensure_ascii=True
        )
    except (TypeError, ValueError, RecursionError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()


def _content(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return [type(value).__qualname__, fields]
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return ["set", sorted(value, key=repr)]
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if hasattr(value, "model_dump"):
        return [type(value).__qualname__, value.model_dump(mode="json")]
    raise TypeError(f"{type(value).__name__} has no stable content")
