"""Text for terminals (no control sequences, clipped lines, readable numbers); values as JSON.

All text of models, tools and files passes through `clean` before it is printed, which also redacts
this process's secrets.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from weft.core.redaction import hidden

_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement, erasing
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])"  # OSC, DCS, SOS, PM, APC: titles, links, clipboards
    r"(?:[^\x07\x1b\x9c]{0,4096}(?:\x1b\\|\x07|\x9c))?"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u2028\u2029"
    # Format characters (category Cf) that show nothing, but for the joiners of scripts and emoji.
    "\u061c\u070f\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)
_SPACE = re.compile(r"\s+")
_LONGEST_LINE = 10_000


def clean(text: str) -> str:
    """`text` without secrets, terminal sequences, control characters and direction overrides.

    Line breaks and tabs stay. Characters without an encoding become question marks.
    """
    text = hidden(text).replace("\r\n", "\n")
    text = _CONTROL.sub("", _SEQUENCE.sub("", text))
    return text.encode("utf-8", "replace").decode("utf-8")


def one_line(text: str, width: int) -> str:
    """The beginning of `text` in at most `width` characters, on one line."""
    line = _SPACE.sub(" ", clean(text[:_LONGEST_LINE])).strip()
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"


def last_line(text: str, width: int) -> str:
    """The end of `text` in at most `width` characters, on one line."""
    line = _SPACE.sub(" ", clean(text[-_LONGEST_LINE:])).strip()
    return line if len(line) <= width else "…" + line[len(line) - max(0, width - 1) :]


def duration(seconds: float) -> str:
    """Seconds as people read them: `12 ms`, `3.20 s`, `2 min 05 s`, `1 h 02 min`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.995:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def amount(number: int, noun: str) -> str:
    """`1 node`, `1,200 nodes`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def byte_size(number: float) -> str:
    """A number of bytes in decimal units, with three digits: 850 bytes, 3.80 GB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} bytes"


def money(dollars: float) -> str:
    """US dollars with as many digits as a small amount needs."""
    return f"${dollars:,.2f}" if dollars >= 1 else f"${dollars:.4f}"


def listing(words: Iterable[str], most: int = 5) -> str:
    """`a, b, c and 4 more`."""
    words = list(words)
    more = len(words) - most
    return ", ".join(words[:most]) + (f" and {more} more" if more > 0 else "")


Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

_DEEPEST = 60


def plain(value: object, depth: int = 0) -> Json:
    """`value` as JSON types. NaN and infinity, cycles and foreign objects become text."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth > _DEEPEST:
        return "…"
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item, depth + 1) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: plain(getattr(value, field.name), depth + 1) for field in fields}
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(mode="json"), depth + 1)
    return repr(value)


def json_text(value: object) -> str:
    """`value`, made of JSON types, as one line without secrets."""
    return json.dumps(hidden(value))
