"""A tolerant reader of Python-like lines: statements with their blocks. Reads no values.

Texts in triple quotes go over several lines, between which comments of the annotator stand; some
are cut off and never end. A line that can only be a statement ends such a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

_QUOTES: Final = "'''"
_API: Final = r"(?:is_workflow_actions|com|dk)_\w+\s*\("
_SURELY: Final = re.compile(
    rf"\s*(?:(?:\w+\s*=\s*)?{_API}|\w+\s*=\s*f?'''|match\s+input\(|for\s+\w.*\sin\s.*:\s*$"
    r"|(?:if|elif)\s+.*:\s*$|else\s*:\s*$|case\s+.*:\s*$|while\s+.*:\s*$)"
)
_HEADER: Final = re.compile(r"(if|elif|else|for|while|match|case)\b\s*(.*?)\s*:?\s*\Z", re.DOTALL)
_SET: Final = re.compile(r"([^\W\d]\w*)\s*=(?!=)\s*(.*)\Z", re.DOTALL)


@dataclass(slots=True, eq=False)
class Statement:
    """One statement. `kind`: set, call, pass, or the word of a header; `text`: what follows it.

    `target` is the variable that is set, `body` what stands below a header.
    """

    kind: str
    text: str
    target: str = ""
    indent: int = 0
    body: list[Statement] = field(default_factory=list)


def statements(code: str) -> list[Statement]:
    """The statements at the top of a program, each with those in its block."""
    top: list[Statement] = []
    headers: list[Statement] = []
    for text in _logical(code):
        made = _statement(text)
        if made is None:
            continue
        while headers and headers[-1].indent >= made.indent:
            headers.pop()
        (headers[-1].body if headers else top).append(made)
        if made.kind not in ("set", "call", "pass"):
            headers.append(made)
    return top


def _logical(code: str) -> Iterator[str]:
    """Lines, with the lines of one text in triple quotes together; without comments."""
    held: list[str] = []
    for line in code.split("\n"):
        if line.lstrip().startswith("#") or (not held and not line.strip()):
            continue
        if held and _SURELY.match(line):
            yield _closed("\n".join(held))
            held = []
        held.append(line)
        if "\n".join(held).count(_QUOTES) % 2 == 0:
            yield "\n".join(held)
            held = []
    if held:
        yield _closed("\n".join(held))


def _closed(text: str) -> str:
    """A text that was cut off, with its quotes and brackets closed."""
    cut = f"{text}{_QUOTES}"
    outside = "".join(cut.split(_QUOTES)[::2])
    return cut + ")" * max(0, outside.count("(") - outside.count(")"))


def _statement(text: str) -> Statement | None:
    shown = text.strip()
    indent = len(text) - len(text.lstrip(" \t"))
    header = _HEADER.match(shown)
    if header is not None and (shown.endswith(":") or header[1] in ("match", "case")):
        return Statement(header[1], header[2], indent=indent)
    if shown in ("pass", "continue"):
        return Statement("pass", "", indent=indent)
    if found := _SET.match(shown):
        return Statement("set", found[2], found[1], indent)
    if re.match(r"[^\W\d]\w*\s*\(", shown):
        return Statement("call", shown, indent=indent)
    return None  # what is left of a text that was cut off
