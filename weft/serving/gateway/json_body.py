"""Reads a request's JSON body within limits of size, time and depth."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, NoReturn

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from weft.core.compute_thread import run_in_compute_thread
from weft.serving.gateway.problem import ApiProblem, RequestRefused, bad_request

_MAX_DEPTH = 64
_MAX_VALUES = 200_000
_LARGE_BYTES = 256 * 1024
_DISCARDED_TIMES = 8


async def read_json(receive: Receive, headers: Headers, max_bytes: int, within_s: float) -> Any:
    """The JSON value in the body of a request with these headers.

    Raises: `RequestRefused` with 400, 408, 413 or 415, `ClientDisconnect`.
    """
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        message = "send JSON, with the header Content-Type: application/json"
        raise RequestRefused(ApiProblem(415, message))
    length = headers.get("content-length")
    try:
        async with asyncio.timeout(within_s):
            body = await _body(receive, length, max_bytes)
    except TimeoutError:
        text = f"the body did not arrive within {within_s:g} s"
        raise RequestRefused(ApiProblem(408, text, "timeout_error", "slow_body")) from None
    if len(body) > _LARGE_BYTES:  # parsing it here would block all streams
        return await run_in_compute_thread(_parse, body)
    return _parse(body)


async def _body(receive: Receive, length: str | None, max_bytes: int) -> bytes:
    announced = int(length) if length is not None and length.isascii() and length.isdigit() else 0
    body, read, more = bytearray(), 0, announced <= max_bytes * _DISCARDED_TIMES
    while more:
        message = await _next(receive)
        chunk = message.get("body", b"")
        read += len(chunk)
        if max(read, announced) <= max_bytes:
            body += chunk
        # A client does not read while it sends: a slightly too long body is read to its end.
        more = message.get("more_body", False) and read <= max_bytes * _DISCARDED_TIMES
    if max(read, announced) > max_bytes:
        text = f"the body is larger than {max_bytes:,} bytes"
        raise RequestRefused(ApiProblem(413, text, code="request_too_large"))
    return bytes(body)


async def _next(receive: Receive) -> Message:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    return message


def _parse(body: bytes) -> Any:
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse)
    except RecursionError:
        raise bad_request("the body is nested too deeply") from None
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {error}", code="invalid_json") from None
    _check(value)
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _check(value: Any) -> None:
    """Refuse lone surrogates, and depths that recursive readers could not take."""
    level, count = [value], 0
    for _ in range(_MAX_DEPTH):
        count += len(level)
        if count > _MAX_VALUES:
            raise bad_request(f"the body holds more than {_MAX_VALUES:,} values")
        for item in level:
            if isinstance(item, str) and not item.isascii():
                _check_text(item)
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return
    raise bad_request(f"the body is nested deeper than {_MAX_DEPTH} levels")


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise bad_request("the body has half of a surrogate pair in a text") from None
