"""Text of models and people so that neither a terminal, a browser nor a tokenizer obeys it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from weft.cli.text import clean

_TAG: Final = re.compile(r"<(?=[|\uff5c/!?A-Za-z])")
_SQUARE: Final = re.compile(r"\[(?=/?(?:INST|/?SYS|/?TOOL|/?AVAILABLE)[A-Z_]*\])")


def harmless(text: str) -> str:
    """`text` without control characters, in which no tag is one any more.

    The signs that open a tag, as in `<|im_end|>`, `</think>` and `[INST]`, become ones that look
    alike: U+2039 and U+2045.
    """
    return _SQUARE.sub("\u2045", _TAG.sub("\u2039", clean(text)))


def harmless_json(value: Any) -> Any:
    """JSON data with every text in it made harmless."""
    if isinstance(value, str):
        return harmless(value)
    if isinstance(value, Mapping):
        return {key: harmless_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [harmless_json(item) for item in value]
    return value
