"""Values as text for a model, and long text shortened with the length said. Knows no tools."""

from __future__ import annotations

import json
from typing import Any

from weft.core.events import jsonable


def text_of(value: Any) -> str:
    """`value` as JSON; a text as it is."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, default=jsonable)
    except Exception:  # noqa: BLE001 - a foreign value may raise anything when it is looked at
        return f"a {type(value).__name__} that JSON cannot hold"


def excerpt(text: str, chars: int) -> str:
    """`text`, or its beginning and end, about `chars` long, with how much is missing between.

    Halves of characters that no encoding knows (lone surrogates) become question marks.
    """
    if len(text) > chars:
        end = chars // 4
        missing = f" [... {len(text) - chars:,} of {len(text):,} characters left out ...] "
        text = text[: chars - end] + missing + text[len(text) - end :]
    return text.encode("utf-8", "replace").decode("utf-8")
