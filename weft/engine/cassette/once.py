"""Calls that must not be repeated: what is known of each, and whether it may be made now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

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
from weft.core.ids import NodeId
from weft.core.ports.journal import Record
from weft.core.redaction import Redactor
from weft.engine.cassette.book import CallBook, Confirmation, Known
from weft.engine.cassette.failure import raised
from weft.engine.cassette.memory import OnceMemory

_NOT_BEGUN: Final = (NotDone, ToolArgumentError, ToolNotFound, BuildError)


def doneness(error: BaseException) -> Doneness:
    """Whether the effect of a tool that ended with `error` has happened."""
    if isinstance(error, _NOT_BEGUN):
        return "not done"
    return "done" if isinstance(error, ToolResultError) else "unknown"  # it returned, but badly


@dataclass(frozen=True, slots=True)
class OnceCall:
    """A call that must not be repeated, as the records of a run know it."""

    node: NodeId
    attempt: int
    call: CallId
    tool: str
    arguments: Any
    done: Doneness
    failure: Failure | None
    at_s: float


def once_calls(records: Iterable[Record]) -> tuple[OnceCall, ...]:
    """All calls of a run that must not be repeated, with what is known of them.

    One that was made in several attempts, of its node or of what that is inside, is told once, as
    the last of them knows it. Of a run that
    is still going on, one that is under way looks as one that nobody knows the end of.
    """
    memory = OnceMemory()
    for record in records:
        if isinstance(record, ToolCalled | ToolReturned):
            memory.add(record)
    return tuple(sorted(map(_told, memory.everything()), key=lambda call: call.at_s))


def settled(book: CallBook, node: NodeId, call: CallId, name: str) -> Known | Confirmation | None:
    """What stands for making the call: its known end, or a person's word; None: it may be made.

    Raises: `EffectUnknown` where nobody knows its end.
    """
    known = book.once(node, call)
    if known is None and book.unsure and (said := book.confirmed(node, call)) is None:
        raise EffectUnknown(
            f"nobody knows whether {name} was carried out: the record of the run has lost calls",
            hint=f"find out, then resume with --confirm {node}=done, or {node}=repeat",
        )
    if known is None and book.unsure:
        return said if said is not None and said.kind == "done" else None
    if known is None or _done(known) == "not done":
        return None
    if _done(known) == "done" and not known.is_lost:
        return known
    said = book.confirmed(node, call)
    if said is None:
        raise unknown(known, node, name, book.redactor)
    return said if said.kind == "done" else None


def value_of(known: Known) -> Any:
    """What the call returned. Raises: what it raised."""
    assert isinstance(known.ended, ToolReturned)
    if known.ended.failure is not None:
        raise raised(known.ended.failure)
    return known.ended.value


def unknown(known: Known, node: NodeId, name: str, redactor: Redactor) -> EffectUnknown:
    """What is said of a call of the tool `name` by `node` whose end nobody knows."""
    ended = known.ended
    if known.is_lost:
        return EffectUnknown(
            f"{name} was carried out, but what it returned could not be kept",
            hint=f"resume with --confirm {node}=done, or have the tool return plain data",
        )
    why = f": {ended.failure}" if ended is not None and ended.failure is not None else ""
    why = redactor.text(why)
    return EffectUnknown(
        f"nobody knows whether {name} was carried out when it was last called{why}",
        hint=f"find out, then resume with --confirm {node}=done, or {node}=repeat",
    )


def _done(known: Known) -> Doneness:
    return known.ended.done if isinstance(known.ended, ToolReturned) else "unknown"


def _told(known: Known) -> OnceCall:
    called = known.called
    assert isinstance(called, ToolCalled)
    failure = known.ended.failure if known.ended is not None else None
    about = called.node, called.attempt, called.call, called.tool, called.arguments
    return OnceCall(*about, _done(known), failure, called.at_s)
