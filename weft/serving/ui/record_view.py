"""Records as the page gets them: JSON of bounded size; long texts are cut and marked as cut.

Values of programs, models and tools are sent as text, never as structure: the page shows them
without interpreting them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from weft.core.calls import ModelStreamed
from weft.core.content import Media
from weft.core.ports.journal import NumberedRecord
from weft.core.ports.model import ReasoningDelta, TextDelta
from weft.serving.ui.responses import beginning, mark

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

_VALUES: Final = frozenset(("value", "arguments", "schema", "extra"))
_WHOLE: Final = frozenset(("nodes", "sources"))
_NAMES: Final = frozenset(("id", "node", "parent", "to", "call", "run", "sources", "winners"))
_MAX_NAME: Final = 1 << 15  # names identify nodes, so they are not cut like texts
_NEVER: Final = frozenset(("logprobs", "top_logprobs"))
_HEAVY: Final = _NEVER | {"request", "token_ids", "prompt_token_ids", "digest"}
_MAX_NODES: Final = 200_000
_EXACT: Final = 2**53


@dataclass(frozen=True, slots=True)
class Detail:
    """How much of a record is shown: characters of a text, items of a list, fields left out.

    `marks`: each value comes with a mark that is equal for equal values.
    """

    chars: int
    items: int
    without: frozenset[str]
    marks: bool = False


BRIEF: Final = Detail(400, 64, _HEAVY)
STREAM: Final = Detail(8_000, 64, _HEAVY)
FULL: Final = Detail(20_000, 200, _NEVER)


def shown(numbered: NumberedRecord, detail: Detail) -> dict[str, Json]:
    """The record's fields, and under `cut` the path and the length of each that was shortened.

    A value of any kind is `{"text": ..., "json": is it JSON}`; an unknown length is -1.
    """
    record = numbered.record
    walk = _Walk(detail)
    body = _streamed(record, walk) if isinstance(record, ModelStreamed) else walk.fields(record, "")
    head: dict[str, Json] = {
        "seq": numbered.seq,
        "part": numbered.part,
        "event": type(record).__name__,
    }
    return head | body | ({"cut": dict(walk.cut)} if walk.cut else {})


@dataclass(slots=True)
class _Walk:
    detail: Detail
    cut: dict[str, Json] = field(default_factory=dict)

    def fields(self, record: Any, path: str) -> dict[str, Json]:
        """The fields of one of weft's own records."""
        found: dict[str, Json] = {}
        for one in dataclasses.fields(record):
            if one.name not in self.detail.without:
                where = f"{path}.{one.name}" if path else one.name
                found[one.name] = self._field(one.name, getattr(record, one.name), where)
        return found

    def _field(self, name: str, value: Any, path: str) -> Json:
        if value is None:
            return None
        if name in _VALUES:
            return self.value(value, path)
        most = _MAX_NODES if name in _WHOLE else self.detail.items
        return self._plain(value, path, most, _MAX_NAME if name in _NAMES else None)

    def value(self, value: Any, path: str) -> Json:
        """A value of any kind, as text."""
        text, more = beginning(value, self.detail.chars)
        is_text = isinstance(value, str)
        if more:
            self.cut[path] = len(value) if is_text else -1
        view: dict[str, Json] = {"text": text, "json": not is_text}
        return view | {"mark": mark(value)} if self.detail.marks else view

    def text(self, text: str, path: str, chars: int | None = None) -> str:
        """At most `chars` characters of a text; None: the limit of the detail."""
        chars = self.detail.chars if chars is None else chars
        if len(text) > chars:
            self.cut[path] = len(text)
        return text[:chars]

    def _plain(self, value: Any, path: str, most: int, chars: int | None = None) -> Json:
        match value:
            case str():
                return self.text(value, path, chars)
            case bool():
                return value
            case int():
                return value if -_EXACT <= value <= _EXACT else str(value)
            case float():
                return value if math.isfinite(value) else str(value)
            case tuple() | list():
                if len(value) > most:
                    self.cut[path] = len(value)
                return [
                    None if item is None else self._plain(item, f"{path}.{index}", most, chars)
                    for index, item in enumerate(value[:most])
                ]
            case Media():
                return dict(value)
            case Mapping():
                return self._mapping(value, path)
        if dataclasses.is_dataclass(value):
            return self.fields(value, path)
        return self.value(value, path)

    def _mapping(self, value: Mapping[Any, Any], path: str) -> Json:
        """The limits of a run: names and numbers."""
        if all(isinstance(item, int) for item in value.values()):
            return {str(key): item for key, item in list(value.items())[: self.detail.items]}
        return self.value(value, path)


def _streamed(record: ModelStreamed, walk: _Walk) -> dict[str, Json]:
    """The joined pieces of an answer: its text and its reasoning."""
    texts, thoughts, tokens = [], [], 0
    for _, delta in record.deltas:
        if isinstance(delta, TextDelta):
            texts.append(delta.text)
            tokens += len(delta.token_ids) or 1
        elif isinstance(delta, ReasoningDelta):
            thoughts.append(delta.text)
            tokens += len(delta.token_ids) or 1
    return {
        "node": record.node,
        "attempt": record.attempt,
        "call": record.call,
        "text": walk.text("".join(texts), "text"),
        "reasoning": walk.text("".join(thoughts), "reasoning"),
        "tokens": tokens,
        "at_s": record.at_s,
    }
