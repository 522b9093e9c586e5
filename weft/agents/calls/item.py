"""One item of the data: a query, the tools offered, and the calls that answer it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.calls.catalogue import CallTool

STYLES: Final = (
    *("simple", "multiple", "parallel", "parallel_multiple", "irrelevance", "missing"),
    *("nested", "chained", "follow_up"),
)
_REFERENCE: Final = re.compile(r"\$([1-9]\d{0,2})((?:\.[A-Za-z_]\w*|\[\d{1,4}\])*)")


@dataclass(frozen=True, slots=True)
class GoldCall:
    """One call: the name of an offered tool and its arguments as plain data.

    The text `$1` is the result of the first call, `$1.name` and `$1[0]` are parts of it, as in
    plans.
    """

    name: str
    arguments: Mapping[str, Any]

    def references(self) -> Iterator[tuple[str, int, tuple[str | int, ...]]]:
        """Of each argument that is a reference: its name, the number of the call, the path."""
        for name, value in self.arguments.items():
            if found := reference(value):
                yield name, *found


def reference(value: object) -> tuple[int, tuple[str | int, ...]] | None:
    """The call, from 1, and the path that a text such as `$2.rows[0]` refers to."""
    found = _REFERENCE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    parts = re.findall(r"\.(\w+)|\[(\d+)\]", found[2])
    return int(found[1]), tuple(field or int(index) for field, index in parts)


@dataclass(frozen=True, slots=True)
class CallItem:
    """A query with its answer.

    `query`: one request, or, in `follow_up`, a dialogue with a turn a line, each after `User:` or
    `Assistant:`. `ask`: the parameters to ask for, where the query leaves required ones out;
    `why`: what makes the answer right, in words. Without calls and `ask`, no offered tool fits.
    """

    query: str
    tools: tuple[CallTool, ...]
    calls: tuple[GoldCall, ...]
    style: str
    why: str
    ask: tuple[str, ...] = ()

    def skeleton(self) -> tuple[object, ...]:
        """Tools, argument names and kinds of values, without the values."""
        calls = tuple(
            (
                call.name,
                *sorted((key, type(value).__name__) for key, value in call.arguments.items()),
            )
            for call in self.calls
        )
        offered = () if self.calls else tuple(sorted(tool.name for tool in self.tools))
        return (self.style, calls, offered, self.ask)

    def document(self) -> dict[str, Any]:
        """The item as JSON data, with the SHA-256 `digest` of the rest."""
        body: dict[str, Any] = {
            "query": self.query,
            "tools": [tool.document() for tool in self.tools],
            "calls": [{"name": one.name, "arguments": dict(one.arguments)} for one in self.calls],
            "ask": list(self.ask),
            "style": self.style,
            "why": self.why,
        }
        text = json.dumps(body, sort_keys=True, ensure_ascii=False)
        return body | {"digest": hashlib.sha256(text.encode()).hexdigest()}
