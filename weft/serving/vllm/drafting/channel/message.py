"""One text on its way to a proposer, as a line of JSON. Whatever arrives, it is checked here."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from weft.serving.vllm.drafting.memory import LONGEST_LABEL

MOST_TOKENS: Final = 4096
LONGEST_LINE: Final = 64 * 1024
Text = tuple[str, tuple[int, ...]]


def to_line(label: str, tokens: Sequence[int]) -> bytes:
    """A line of at most `LONGEST_LINE` bytes with the last tokens of a text."""
    kept = list(tokens[-MOST_TOKENS:])
    said = {"label": label[:LONGEST_LABEL], "tokens": kept}
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"


def from_line(line: bytes, vocabulary: int) -> Text | None:
    """The text in a line; None for a line that holds none of this vocabulary."""
    if len(line) > LONGEST_LINE:
        return None
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    label, tokens = said.get("label"), said.get("tokens")
    if not isinstance(label, str) or len(label) > LONGEST_LABEL or not isinstance(tokens, list):
        return None
    fine = all(type(token) is int and 0 <= token < vocabulary for token in tokens)
    return (label, tuple(tokens)) if fine and len(tokens) <= MOST_TOKENS else None
