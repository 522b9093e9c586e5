"""From records to text. Large parts are stored apart, once for each content."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from json.encoder import encode_basestring as quoted
from typing import Any, Final, get_args

from weft.core.calls import ToolCalled, ToolReturned
from weft.core.codec.classes import LAYOUTS
from weft.core.codec.sink import APART, LARGEST, Keep, Sink, Unwritable, WrittenLists
from weft.core.codec.writer import free, list_writer, object_writer
from weft.core.errors import StoreError
from weft.core.events import NodeFinished, NodeStarted, Outcome
from weft.core.values import Effect

Write = Callable[[object, Sink], str]


def quickly(values: Iterable[object], sink: Sink, otherwise: Write) -> list[str]:
    """The texts of records; `otherwise` writes unusual ones."""
    texts: list[str] = []
    for value in values:
        write, text = _FAST_WRITERS.get(type(value)), None
        if write is not None:
            sink.total = 0
            try:
                text = write(value, sink)
            except (TypeError, ValueError, Unwritable):
                text = None  # `otherwise` names the field in its error
        texts.append(otherwise(value, sink) if text is None else text)
    return texts


def _started(value: NodeStarted, _sink: Sink) -> str | None:
    attempt, at_s, digest = value.attempt, value.at_s, value.digest
    text = f"[1,{quoted(value.node)},{attempt!r},{at_s!r},{quoted(digest)}]"
    usual = digest and type(attempt) is int and type(at_s) is float and -_LATEST < at_s < _LATEST
    return text if usual and len(text) <= APART else None


def _called(value: ToolCalled, sink: Sink) -> str | None:
    attempt, at_s, effect = value.attempt, value.at_s, value.effect
    if effect not in _EFFECTS or value.stands_for:
        return None
    given = value.arguments
    arguments = _flat(given) if type(given) is dict else ""
    if not arguments or len(arguments) > APART:
        arguments = free(given, sink)
    head = f"[4,{quoted(value.node)},{attempt!r},{quoted(value.call)},{quoted(value.tool)},"
    tail = f',"{effect}",{quoted(value.key)},{at_s!r}]'
    usual = type(attempt) is int and type(at_s) is float and -_LATEST < at_s < _LATEST
    return head + arguments + tail if usual and len(head) + len(tail) <= APART else None


def _returned(value: ToolReturned, sink: Sink) -> str | None:
    attempt, at_s = value.attempt, value.at_s
    if value.failure is not None or value.done != "done" or value.cause is not None:
        return None
    head = f"[5,{quoted(value.node)},{attempt!r},{quoted(value.call)},"
    usual = type(attempt) is int and type(at_s) is float and -_LATEST < at_s < _LATEST
    if not usual or len(head) > APART:
        return None
    result = value.value
    text = int.__repr__(result) if type(result) is int and -_SHORT < result < _SHORT else None
    return f'{head}{text or free(result, sink)},null,"done",{at_s!r}]'


def _finished(value: NodeFinished, sink: Sink) -> str | None:
    outcome, at_s = value.outcome, value.at_s
    if type(outcome) is not Outcome or outcome.status != "succeeded":
        return None
    if outcome.failure is not None or outcome.via or outcome.attempts != 1:
        return None
    if value.recalled or value.digest or value.run_ended or value.by_name:
        return None
    node = quoted(value.node)
    usual = type(outcome.attempts) is int and type(at_s) is float and -_LATEST < at_s < _LATEST
    if not usual or len(node) > APART:
        return None
    result = outcome.value
    if type(result) is int and -_SHORT < result < _SHORT:
        return f'[2,{node},["succeeded",{result!r}],{at_s!r}]'
    inner = '["succeeded"]' if result is None else f'["succeeded",{free(result, sink)}]'
    return f"[2,{node},{sink.fold(inner)},{at_s!r}]"


def _flat(value: dict[Any, Any]) -> str:
    """The text of a small dict of texts and integers under plain keys; empty for any other."""
    pairs: list[str] = []
    for key, item in value.items():
        kind = type(item)
        if type(key) is not str or key[:1] == "~" or len(pairs) > _FEW:
            return ""
        if kind is int:
            pairs.append(f"{quoted(key)}:{int.__repr__(item)}")
        elif kind is str:
            pairs.append(f"{quoted(key)}:{quoted(item)}")
        else:
            return ""
    return f"{{{','.join(pairs)}}}"


_FEW: Final = 16
_SHORT: Final = 1 << 62
_LATEST: Final = 1e300
_EFFECTS = frozenset(get_args(Effect))
_FAST_WRITERS: dict[type, Callable[[Any, Sink], str | None]] = {
    NodeStarted: _started,
    ToolCalled: _called,
    ToolReturned: _returned,
    NodeFinished: _finished,
}


def encode(value: object, keep: Keep | None = None) -> str:
    """`value`, of a registered class, as one JSON text.

    Raises: `StoreError` when a field has a value that its class does not allow.
    """
    return _written(value, Sink(keep))


def encode_all(
    values: Iterable[object], keep: Keep | None = None, lists: WrittenLists | None = None
) -> str:
    """Several values as one JSON list. Raises: as `encode`.

    `lists`: beginnings of lists that the same `keep` has stored, and does not receive again.
    """
    sink = Sink(keep, as_lists=True, lists=lists)
    return f"[{','.join(quickly(values, sink, _written))}]"


def _written(value: object, sink: Sink) -> str:
    cls: type = type(value)
    sink.total = sink.depth = 0
    try:
        if sink.as_lists and cls in LAYOUTS:
            return f"[{LAYOUTS[cls].number},{list_writer(cls)(value, sink)[1:]}"
        return object_writer(cls, None)(value, sink)
    except Unwritable as error:
        message = f"a {type(value).__name__} is larger than {LARGEST >> 20} MiB"
        hint = "keep such values in files, and hand on their paths"
        raise StoreError(message, hint=hint) from error
