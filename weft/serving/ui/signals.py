"""The user's actions on the page: answer a question, cancel, confirm a call.

Each goes into the journal as a signal; the process that has the run takes it from there. The caller
provides the function that finds undecided calls.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from starlette.requests import Request

from weft.core.events import HumanAsked
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Letter, NumberedRecord
from weft.core.values import JsonSchema
from weft.serving.ui.record_view import Detail, Json, shown
from weft.serving.ui.responses import JsonReply, UiRefusal, run_of
from weft.validation import SchemaRefused, TooMuchToCheck, misfit

_MAX_CALLS: Final = 50
_CALL_DETAIL: Final = Detail(4_000, 64, frozenset())
_CLAIMED: Final = frozenset(("running", "asking"))


class UndecidedCall(Protocol):
    """A call whose outcome a person must report before its run can continue."""

    @property
    def called(self) -> NumberedRecord:
        """The record of its intent."""

    @property
    def ended(self) -> NumberedRecord | None:
        """The record of its failure, if any."""

    @property
    def lost(self) -> bool:
        """Whether it was carried out, and only its result is unknown."""


Find = Callable[[Iterable[NumberedRecord]], Sequence[UndecidedCall]]
"""Finds the undecided calls among the records of a run."""


class EffectEndpoints:
    """The endpoint that lists undecided calls, and the check of confirmations."""

    def __init__(self, journal: Journal, find: Find) -> None:
        self._journal = journal
        self._find = find

    async def all(self, request: Request) -> JsonReply:
        """The undecided calls of a run, in the order they were made, and their number."""
        run = run_of(request)
        found = await asyncio.to_thread(self._open, run)
        calls: list[Json] = [_shown(call) for call in found[:_MAX_CALLS]]
        return JsonReply({"calls": calls, "count": len(found)})

    def letter(self, run: RunId, node: NodeId | None, body: dict[str, Any]) -> Letter:
        """The confirmation of a call, for the process that resumes the run. Raises: `UiRefusal`."""
        word, seq = body.get("value"), body.get("call")
        if word not in ("done", "repeat") or type(seq) is not int or node is None:
            raise UiRefusal(400, "a confirmation names its node and call, and says done or repeat")
        if word == "repeat" and "returned" in body:
            raise UiRefusal(400, "a call that is repeated has returned nothing")
        if self._journal.summary(run).standing in _CLAIMED:
            hint = "say it when that process has ended, and resume the run then"
            raise UiRefusal(
                409, "a process has the run, and may know the end of the call soon", hint
            )
        calls = {call.called.seq: call.called.record for call in self._open(run)}
        if seq not in calls or getattr(calls[seq], "node", None) != node:
            hint = "the page may be older than the run: reload it"
            raise UiRefusal(409, "nobody has to say anything of that call", hint)
        return Letter("confirm", node, {"call": seq, "said": word, "value": body.get("returned")})

    def _open(self, run: RunId) -> Sequence[UndecidedCall]:
        """The undecided calls of an unclaimed run that has not succeeded."""
        standing = self._journal.summary(run).standing
        if standing in _CLAIMED or standing == "succeeded":
            return ()
        return self._find(self._journal.records(run))


def _shown(call: UndecidedCall) -> dict[str, Json]:
    failure = None if call.ended is None else shown(call.ended, _CALL_DETAIL)["failure"]
    return {**shown(call.called, _CALL_DETAIL), "failure": failure, "lost": call.lost}


_MAX_BYTES: Final = 256 * 1024
_MAX_NODE: Final = 4_096
_MAX_REASON: Final = 1_000
_MAX_MESSAGE: Final = 300


class SignalEndpoint:
    """The endpoint that takes signals."""

    def __init__(self, journal: Journal, effects: EffectEndpoints) -> None:
        self._journal = journal
        self._effects = effects

    async def take(self, request: Request) -> JsonReply:
        """Take a signal: 202 when it is in the journal.

        {"kind": "answer", "node": N, "question": seq of the question, "value": ...}
        {"kind": "cancel", "node": N or null, "value": a reason or null}
        {"kind": "confirm", "node": N, "call": seq of the call, "value": "done" or "repeat",
         "returned": the result of a call that is done; may be left out for null}
        """
        run, body = run_of(request), await _body(request)
        await asyncio.to_thread(self._send, run, body)
        return JsonReply({"sent": True}, 202)

    def _send(self, run: RunId, body: dict[str, Any]) -> None:
        self._journal.header(run)  # raises for an unknown run
        node = _node(body)
        match body.get("kind"):
            case "answer":
                self._check_answer(run, node, body)
                letter = Letter("answer", node, body["value"])
            case "cancel":
                self._check_runs(run)
                letter = Letter("cancel", node, _reason(body.get("value")))
            case "confirm":
                letter = self._effects.letter(run, node, body)
            case _:
                raise UiRefusal(400, "the letter is none that a run understands")
        self._journal.send(run, letter)

    def _check_runs(self, run: RunId) -> None:
        if self._journal.summary(run).ended_wall:
            raise UiRefusal(
                409, "the run has ended", "the page may be older than the run: reload it"
            )

    def _check_answer(self, run: RunId, node: NodeId | None, body: Mapping[str, Any]) -> None:
        seq = body.get("question")
        if type(seq) is not int or "value" not in body:
            raise UiRefusal(400, "an answer names its question and has a value")
        found = next(iter(self._journal.records(run, seq - 1, 1)), None)
        if (
            found is None
            or found.seq != seq
            or not isinstance(found.record, HumanAsked)
            or found.record.node != node
        ):
            raise UiRefusal(
                409, "nobody asks that", "the page may be older than the run: reload it"
            )
        why = _misfit(body["value"], found.record.schema)
        if why:
            raise UiRefusal(422, f"the answer does not fit: {why[:_MAX_MESSAGE]}")


def _misfit(value: object, schema: JsonSchema) -> str:
    """Why `value` does not fit; empty if it does."""
    try:
        return misfit(value, schema) or ""
    except SchemaRefused as error:
        return f"the question's schema cannot be used: {error}"
    except TooMuchToCheck as error:
        return str(error)


def _node(body: Mapping[str, Any]) -> NodeId | None:
    node = body.get("node")
    if node is None:
        return None
    if not isinstance(node, str) or len(node) > _MAX_NODE:
        raise UiRefusal(400, "`node` is the id of a node")
    return NodeId(node)


def _reason(value: object) -> str:
    return value[:_MAX_REASON] if isinstance(value, str) and value else "cancelled in the page"


async def _body(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise UiRefusal(415, "a letter is JSON")
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > _MAX_BYTES:
            raise UiRefusal(413, f"a letter has at most {_MAX_BYTES} bytes")
    try:
        body = json.loads(bytes(content))
    except (ValueError, RecursionError):
        raise UiRefusal(400, "the letter is not JSON") from None
    if not isinstance(body, dict):
        raise UiRefusal(400, "a letter is an object")
    return body
