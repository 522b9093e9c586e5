"""Calls that must not be repeated: what is recorded of each, and whether it may be made now."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weft.core.calls import CallId, Doneness, ToolCalled, ToolReturned
from weft.core.errors import (
    BuildError,
    EffectUnknown,
    Failure,
    NotDone,
    ToolArgumentError,
    ToolNotFound,
    ToolResultError,
)
from weft.core.ids import NodeId, in_any_attempt
from weft.core.ports.journal import Record
from weft.core.recorded_errors import error_of_failure
from weft.core.redaction import Redactor
from weft.core.values import JsonSchema
from weft.durability.calls.history import Confirmation, OnceMemory, RecordedCall
from weft.engine.scheduler.effects import CallSite, carried_out, in_python, unknown_end, word_for

if TYPE_CHECKING:
    from weft.durability.calls.log import CallLog

_NOT_BEGUN: Final = (NotDone, ToolArgumentError, ToolNotFound, BuildError)


def doneness(error: BaseException) -> Doneness:
    """Whether a tool that ended with `error` has had its effect."""
    if isinstance(error, _NOT_BEGUN):
        return "not done"
    return "done" if isinstance(error, ToolResultError) else "unknown"  # it returned a bad result


@dataclass(frozen=True, slots=True)
class ReportedResult:
    """A person's statement that a call was carried out, and returned `value`.

    `where`: `NODE@CALL`, that call or the one that was made in its place.
    """

    value: Any
    where: str


@dataclass(frozen=True, slots=True)
class OnceCall:
    """A call that must not be repeated, as recorded in a run."""

    node: NodeId
    attempt: int
    call: CallId
    tool: str
    arguments: Any
    done: Doneness
    failure: Failure | None
    at_s: float


def once_calls(records: Iterable[Record]) -> tuple[OnceCall, ...]:
    """All calls of a run that must not be repeated, with their recorded ends.

    A call made in several attempts, of its node or of an enclosing node, appears once, as the last
    attempt recorded it. A call that was not made, because another replaces it, does not appear. In
    a running run, a call under way looks like one with an unknown end.
    """
    memory = OnceMemory()
    for record in records:
        if isinstance(record, ToolCalled | ToolReturned):
            memory.add(record)
    made = (known for known in memory.everything() if not known.stands_in)
    return tuple(sorted(map(_once_call, made), key=lambda call: call.at_s))


def settled(
    call_log: CallLog, place: CallSite, call: CallId, name: str
) -> RecordedCall | ReportedResult | None:
    """What replaces making the call: its known end or a person's statement; None: it may be made.

    Raises: `EffectUnknown` where its end is unknown, or where another call was made here before and
    this one would act a second time.
    """
    node = place.node
    known, other = call_log.once(node, call), call_log.replaced(place, call)
    if known is not None:
        if known.done == "not done" and call_log.superseded(place, call):
            return known  # it did nothing, and does nothing now
        return _stands_for(call_log, node, call, name, known)
    if other is None and call_log.unsure:
        return _lost(call_log, node, call, name)
    if other is None:
        return None
    word = call_log.confirmed(node, call, other)
    if word is None:
        raise replaced(node, name)
    if word.kind == "repeat":
        return None
    assert other.ended is None or isinstance(other.ended, ToolReturned)
    value = (
        other.ended.value if word.value is None and other.succeeded and other.ended else word.value
    )
    return ReportedResult(value, other.where)


def _stands_for(
    call_log: CallLog, node: NodeId, call: CallId, name: str, known: RecordedCall
) -> RecordedCall | ReportedResult | None:
    if known.done == "not done":
        return None
    final = known.succeeded and not known.by_word
    word = None if final else call_log.confirmed(node, call)
    if word is not None and known.succeeded and not word.corrects:
        word = None  # it is about a call in its place
    if word is not None:
        return _reported(word, node, call)
    if known.done == "done" and not known.is_lost:
        return known
    raise unknown(known, node, name, call_log.redactor)


def check_reported(
    call_log: CallLog, node: NodeId, name: str, report: ReportedResult, result: JsonSchema
) -> None:
    """Raises: `EffectUnknown` where a person's statement cannot be the result of the tool."""
    why = call_log.misfit(report.value, result)
    if why is not None:
        raise EffectUnknown(
            f"{name} cannot have returned what was said of its call: {why}",
            hint=f"resume with --confirm {word_for(node, 'done:JSON')}, "
            f"what it returned as JSON{described(result)}{in_python(node)}",
        )


def described(result: JsonSchema) -> str:
    """The type of a result, after a comma; empty where the schema says little."""
    shown = {key: result[key] for key in ("type", "enum", "anyOf", "oneOf") if key in result}
    return f", of {json.dumps(shown)}" if shown else ""


def _lost(call_log: CallLog, node: NodeId, call: CallId, name: str) -> ReportedResult | None:
    """What replaces a call that the record may have lost. Raises: `EffectUnknown`."""
    word = call_log.confirmed(node, call)
    if word is None:
        raise unknown_end(node, f"{name} was carried out: the record of the run has lost calls")
    return _reported(word, node, call)


def _reported(word: Confirmation, node: NodeId, call: CallId) -> ReportedResult | None:
    where = f"{in_any_attempt(node)}@{call}"
    return ReportedResult(word.value, where) if word.kind == "done" else None


def value_of(known: RecordedCall) -> Any:
    """The result of the call. Raises: the error that it raised."""
    assert isinstance(known.ended, ToolReturned)
    if known.ended.failure is not None:
        raise error_of_failure(known.ended.failure)
    return known.ended.value


def unknown(known: RecordedCall, node: NodeId, name: str, redactor: Redactor) -> EffectUnknown:
    """The error for a call of the tool `name` by `node` with an unknown end."""
    ended = known.ended
    if known.is_lost:
        return carried_out(node, f"{name} was carried out, but what it returned could not be kept")
    why = f": {ended.failure}" if ended is not None and ended.failure is not None else ""
    why = redactor.text(why)
    return unknown_end(node, f"{name} was carried out when it was last called{why}")


def replaced(node: NodeId, name: str) -> EffectUnknown:
    """The error where `node` calls `name`, and made another call before."""
    return EffectUnknown(
        f"a call was made here with other arguments: to call {name} now would act twice",
        hint=f"resume with --confirm {word_for(node, 'done')} to keep what was done, "
        f"or {word_for(node, 'repeat')}{in_python(node)}",
    )


def _once_call(known: RecordedCall) -> OnceCall:
    called = known.called
    assert isinstance(called, ToolCalled)
    failure = known.ended.failure if known.ended is not None else None
    about = called.node, called.attempt, called.call, called.tool, called.arguments
    return OnceCall(*about, known.done, failure, called.at_s)
