"""One item of the data: a query, the tools offered, and the calls that answer it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.agents.calls.catalogue import CallTool

STYLES: Final = ("simple", "multiple", "parallel", "parallel_multiple", "irrelevance", "missing")


@dataclass(frozen=True, slots=True)
class GoldCall:
    """One call: the name of an offered tool and its arguments as plain data."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CallItem:
    """A query with its answer.

    `ask`: the parameters to ask for, where the query leaves required ones out; `why`: what makes
    the answer right, in words. Without calls and `ask`, no offered tool fits.
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
