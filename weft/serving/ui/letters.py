"""What a person at the page may do: answer a question, cancel, say what became of a call.

It leaves a letter in the journal; the process that has the run takes it from there.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request

from weft.core.events import HumanAsked
from weft.core.ids import NodeId, RunId
from weft.core.ports.journal import Journal, Letter
from weft.core.values import JsonSchema
from weft.serving.ui.asked import run_of
from weft.serving.ui.effects import Effects
from weft.serving.ui.problem import Refused
from weft.serving.ui.reply import Reply
from weft.validation import SchemaRefused, TooMuchToCheck, misfit

_MOST_BYTES: Final = 256 * 1024
_LONGEST_NODE: Final = 4_096
_LONGEST_REASON: Final = 1_000
_LONGEST_MESSAGE: Final = 300


class Letters:
    """The endpoint that takes letters."""

    def __init__(self, journal: Journal, effects: Effects) -> None:
        self._journal = journal
        self._effects = effects

    async def take(self, request: Request) -> Reply:
        """Take one: 202 when it is in the journal.

        {"kind": "answer", "node": N, "question": seq of the question, "value": ...}
        {"kind": "cancel", "node": N or null, "value": a reason or null}
        {"kind": "confirm", "node": N, "call": seq of the call, "value": "done" or "repeat",
         "returned": what a call that is done gave back; null where that is left out}
        """
        run, body = run_of(request), await _body(request)
        await asyncio.to_thread(self._send, run, body)
        return Reply({"sent": True}, 202)

    def _send(self, run: RunId, body: dict[str, Any]) -> None:
        self._journal.header(run)  # raises for a run that is not there
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
                raise Refused(400, "the letter is none that a run understands")
        self._journal.send(run, letter)

    def _check_runs(self, run: RunId) -> None:
        if self._journal.summary(run).ended_wall:
            raise Refused(409, "the run has ended", "the page may be older than the run: reload it")

    def _check_answer(self, run: RunId, node: NodeId | None, body: Mapping[str, Any]) -> None:
        seq = body.get("question")
        if type(seq) is not int or "value" not in body:
            raise Refused(400, "an answer names its question and has a value")
        found = next(iter(self._journal.records(run, seq - 1, 1)), None)
        if (
            found is None
            or found.seq != seq
            or not isinstance(found.record, HumanAsked)
            or found.record.node != node
        ):
            raise Refused(409, "nobody asks that", "the page may be older than the run: reload it")
        why = _misfit(body["value"], found.record.schema)
        if why:
            raise Refused(422, f"the answer does not fit: {why[:_LONGEST_MESSAGE]}")


def _misfit(value: object, schema: JsonSchema) -> str:
    """Why `value` does not fit, or the empty text."""
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
    if not isinstance(node, str) or len(node) > _LONGEST_NODE:
        raise Refused(400, "`node` is the id of a node")
    return NodeId(node)


def _reason(value: object) -> str:
    return value[:_LONGEST_REASON] if isinstance(value, str) and value else "cancelled in the page"


async def _body(request: Request) -> dict[str, Any]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        raise Refused(415, "a letter is JSON")
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > _MOST_BYTES:
            raise Refused(413, f"a letter has at most {_MOST_BYTES} bytes")
    try:
        body = json.loads(bytes(content))
    except (ValueError, RecursionError):
        raise Refused(400, "the letter is not JSON") from None
    if not isinstance(body, dict):
        raise Refused(400, "a letter is an object")
    return body
