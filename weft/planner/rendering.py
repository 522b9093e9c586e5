"""A value as a short line of text for a prompt. Knows no prompts; what is cut away is said."""

from __future__ import annotations

import json
from typing import Any

from weft.core.events import jsonable


def short(value: Any, characters: int = 600) -> str:
    """`value` as JSON in one line, at most about `characters` long: the middle is left out."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=jsonable)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__} that JSON cannot hold"
    if len(text) <= characters:
        return text
    head = characters * 3 // 4
    tail = characters - head
    return f"{text[:head]} ...({len(text) - characters} characters left out)... {text[-tail:]}"
