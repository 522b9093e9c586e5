"""The records that every node leaves, written the quick way, where nothing in them is unusual.

The text is the one that `list_writer` writes, which is slower since it asks each field what it is.
"""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring as quoted
from math import isfinite
from typing import Any, get_args

from weft.core.calls import ToolCalled, ToolReturned
from weft.core.codec.sink import APART, Sink, Unwritable
from weft.core.codec.writer import free
from weft.core.events import NodeFinished, NodeStarted, Outcome
from weft.core.values import Effect


def quickly(value: object, sink: Sink) -> str | None:
    """The text of a record; None: `list_writer` has to look at it."""
    way = _WAYS.get(type(value))
    if way is None:
        return None
    sink.total = 0
    try:
        return way(value, sink)
    except (TypeError, Unwritable):
        return None  # the other way says of which field


def _started(value: NodeStarted, _sink: Sink) -> str | None:
    text = f"[1,{quoted(value.node)},{value.attempt!r},{value.at_s!r},{quoted(value.digest)}]"
    usual = value.digest and _is_usual(text, value.attempt, value.at_s)
    return text if usual else None


def _called(value: ToolCalled, sink: Sink) -> str | None:
    arguments = free(value.arguments, sink)
    head = f"[4,{quoted(value.node)},{value.attempt!r},{quoted(value.call)},{quoted(value.tool)},"
    tail = f',"{value.effect}",{quoted(value.key)},{value.at_s!r}]'
    usual = value.effect in _EFFECTS and not value.stands_for
    if not usual or not _is_usual(head, value.attempt, value.at_s) or len(tail) > APART:
        return None
    return head + arguments + tail


def _returned(value: ToolReturned, sink: Sink) -> str | None:
    if value.failure is not None or value.done != "done":
        return None
    head = f"[5,{quoted(value.node)},{value.attempt!r},{quoted(value.call)},"
    text = f'{head}{free(value.value, sink)},null,"done",{value.at_s!r}]'
    return text if _is_usual(head, value.attempt, value.at_s) else None


def _finished(value: NodeFinished, sink: Sink) -> str | None:
    outcome, head = value.outcome, f"[2,{quoted(value.node)},"
    if type(outcome) is not Outcome or outcome.status != "succeeded":
        return None
    if outcome.failure is not None or outcome.via or outcome.attempts != 1:
        return None
    if value.recalled or value.digest or value.run_ended or value.by_name:
        return None
    if not _is_usual(head, outcome.attempts, value.at_s):
        return None
    held = outcome.value
    inner = '["succeeded"]' if held is None else f'["succeeded",{free(held, sink)}]'
    return f"{head}{sink.fold(inner)},{value.at_s!r}]"


def _is_usual(text: str, attempt: object, at_s: object) -> bool:
    """Whether no part of a text of this length is kept apart, and its numbers are plain ones."""
    plain = type(attempt) is int and type(at_s) is float and isfinite(at_s)
    return plain and len(text) <= APART


_EFFECTS = frozenset(get_args(Effect))
_WAYS: dict[type, Callable[[Any, Sink], str | None]] = {
    NodeStarted: _started,
    ToolCalled: _called,
    ToolReturned: _returned,
    NodeFinished: _finished,
}
