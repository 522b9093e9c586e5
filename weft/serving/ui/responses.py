"""Responses of the page's server: JSON, downloads, errors; and values of any kind as text."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse

from weft.core.errors import InputError, MachineBusy, StoreError, UnknownReference, WeftError
from weft.core.events import jsonable
from weft.core.ids import RunId
from weft.core.redaction import hidden

_ENCODER: Final = json.JSONEncoder(default=jsonable, ensure_ascii=False, indent=2)
_PIECE_CHARS: Final = 1 << 16
_MARKED_CHARS: Final = 1 << 24


def pieces(value: object) -> Iterator[str]:
    """Text as it is, anything else as JSON; where JSON fails, the text ends with a remark."""
    if isinstance(value, str):
        yield from (value[at : at + _PIECE_CHARS] for at in range(0, len(value), _PIECE_CHARS))
        return
    try:
        yield from _ENCODER.iterencode(value)
    except (TypeError, ValueError, RecursionError) as error:
        yield f"\n(the rest cannot be shown: {type(error).__name__})"


def beginning(value: object, most: int) -> tuple[str, bool]:
    """At most `most` characters of the text of `value`, and whether there are more."""
    found: list[str] = []
    length = 0
    for piece in pieces(value):
        found.append(piece[: most + 1 - length])
        length += len(found[-1])
        if length > most:
            break
    text = "".join(found)
    return text[:most], len(text) > most


def mark(value: object) -> str:
    """A text that is equal for equal values; empty for a value that is too long."""
    digest = hashlib.sha256(type(value).__name__.encode())
    length = 0
    for piece in pieces(value):
        length += len(piece)
        if length > _MARKED_CHARS:
            return ""
        digest.update(encodable(piece))
    return digest.hexdigest()[:32]


def encodable(text: str) -> bytes:
    """`text` in UTF-8; a lone surrogate, which has no encoding, becomes a question mark."""
    return text.encode("utf-8", "replace")


_BATCH_CHARS: Final = 1 << 18
_UNNAMEABLE: Final = re.compile(r"[^A-Za-z0-9._-]+")


class JsonReply(JSONResponse):
    """JSON in which a lone surrogate, possible in a hostile output, becomes a question mark."""

    def render(self, content: Any) -> bytes:
        return encodable(json.dumps(content, ensure_ascii=False, separators=(",", ":")))


def download(value: object, name: str) -> StreamingResponse:
    """A value of any kind in full, as a text file."""
    named = _UNNAMEABLE.sub("-", name)[:120]
    return StreamingResponse(
        _batches(value),
        media_type="text/plain; charset=utf-8",
        headers={"content-disposition": f'attachment; filename="{named}.txt"'},
    )


def _batches(value: object) -> Iterator[bytes]:
    """The text in pieces large enough to send."""
    waiting: list[str] = []
    length = 0
    for piece in pieces(value):
        waiting.append(piece)
        length += len(piece)
        if length >= _BATCH_CHARS:
            yield encodable("".join(waiting))
            waiting, length = [], 0
    yield encodable("".join(waiting))


class UiRefusal(Exception):
    """Refuses a request with `status`."""

    def __init__(self, status: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint


_STATUS: Final[tuple[tuple[type[WeftError], int], ...]] = (
    (UnknownReference, 404),
    (InputError, 422),
    (StoreError, 503),
    (MachineBusy, 503),
)


def problem_of(error: Exception) -> JSONResponse:
    """The response to a request that raised `error`; a bug of ours shows only its class."""
    if isinstance(error, UiRefusal):
        return _answer(error.status, error.message, error.hint)
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return _answer(status, error.message, error.hint)
    return _answer(500, f"the server failed: {type(error).__name__}", "this is a bug in weft")


def _answer(status: int, message: str, hint: str | None) -> JSONResponse:
    return JSONResponse(hidden({"message": message, "hint": hint}), status)


def run_of(request: Request) -> RunId:
    """The `run` of the query. Raises: `UiRefusal`."""
    run = request.query_params.get("run")
    if not run:
        raise UiRefusal(400, "the request names no `run`")
    return RunId(run)


def whole(request: Request, name: str, default: int) -> int:
    """The whole number `name` of the query. Raises: `UiRefusal`."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isdecimal() and len(text) <= 15):
        raise UiRefusal(400, f"`{name}` is a whole number")
    return int(text)
