"""Exceptions of other libraries as plain facts: class names, HTTP status, delay. Imports none.

Recognises urllib, http.client, httpx, httpx2, httpcore, requests, urllib3, aiohttp, and clients
that are built on them, by the names of their classes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

LONGEST_DELAY_S: Final = 600.0
"""The longest delay that a server may ask for: it must not stall a program for good."""
TRANSIENT_STATUSES: Final = frozenset({408, 425, 429, *range(500, 600)}) - {501, 505}
"""HTTP statuses after which the same request may succeed."""
_OWN_STATUS: Final = frozenset({"urllib", "aiohttp"})
_CLIENTS: Final = frozenset(
    {
        *("httpx", "httpx2", "httpcore", "httpcore2", "requests", "urllib3", "aiohttp", "http"),
        *("openai", "anthropic"),
    }
)
_TRANSIENT_CLASSES: Final = frozenset(
    {
        *("TimeoutException", "NetworkError", "RemoteProtocolError", "ProxyError"),  # httpx
        *("ConnectionError", "Timeout", "ChunkedEncodingError"),  # requests
        *("TimeoutError", "ProtocolError", "NewConnectionError", "MaxRetryError"),  # urllib3
        *("ClientConnectionError", "ClientPayloadError", "ServerTimeoutError"),  # aiohttp
        *("IncompleteRead", "BadStatusLine", "RemoteDisconnected"),  # http.client
        "APIConnectionError",
    }
)
_PERMANENT_CLASSES: Final = frozenset(
    {"SSLError", "ClientSSLError", "LocalProtocolError", "UnsupportedProtocol", "InvalidURL"}
)
"""Classes below a transient one whose errors stay: certificates, addresses."""


@dataclass(frozen=True, slots=True)
class ErrorCause:
    """The exception behind an error, as data.

    `classes`: its class and their bases, as `module.Class`, built-in ones without a module.
    `status`: of the HTTP answer it stands for. `retry_after_s`: the delay that the answer asks for.
    """

    classes: tuple[str, ...] = ()
    status: int | None = None
    retry_after_s: float | None = None


def cause_of(error: BaseException) -> ErrorCause:
    """The facts of `error`. Its attributes may misbehave: what cannot be read is None."""
    status = _status(error)
    after_s = None if status is None else retry_after_s(_headers(error))
    return ErrorCause(class_names(type(error)), status, after_s)


def class_names(kind: type[BaseException]) -> tuple[str, ...]:
    """`kind` and its bases below `BaseException`, as `module.Class`, built-in ones bare."""
    return tuple(class_name(each) for each in kind.__mro__ if issubclass(each, Exception))


def class_name(kind: type) -> str:
    """`module.Class`, or `Class` for a built-in one."""
    return kind.__qualname__ if kind.__module__ == "builtins" else _full_name(kind)


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def is_transient(error: BaseException) -> bool:
    """Whether the call that raised `error` may succeed when it is repeated.

    Lost connections, timeouts, and the HTTP statuses 408, 425, 429 and 5xx but 501 and 505.
    """
    status = _status(error)
    if status is not None:
        return status in TRANSIENT_STATUSES
    reason = _read(error, "reason")  # of urllib's `URLError`
    if isinstance(reason, Exception) and _root(type(error)) == "urllib":
        error = reason
    names = {each.__name__ for each in type(error).__mro__ if _root(each) in _CLIENTS}
    if names & _PERMANENT_CLASSES or _is_certificate(error):
        return False
    return isinstance(error, ConnectionError | TimeoutError) or bool(names & _TRANSIENT_CLASSES)


def matches(cause: ErrorCause, names: Iterable[str | int]) -> bool:
    """Whether one of `names` is the status of `cause`, or names one of its classes.

    A name without a module names a class of any module.
    """
    short = {name.rpartition(".")[2] for name in cause.classes}
    return any(
        name == cause.status if isinstance(name, int) else name in cause.classes or name in short
        for name in names
    )


def retry_after_s(headers: Mapping[str, Any], now: datetime | None = None) -> float | None:
    """Seconds from `Retry-After`, a number or a date, at most `LONGEST_DELAY_S`; None without one.

    `headers` finds names in lower case. `now`: the time in UTC, for dates.
    """
    try:
        text = str(headers.get("retry-after") or headers.get("Retry-After") or "").strip()
        seconds = float(text) if text[:1].isdigit() else _until(text, now)
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(0.0, seconds), LONGEST_DELAY_S) if math.isfinite(seconds) else None


def _until(date: str, now: datetime | None) -> float:
    moment = parsedate_to_datetime(date)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - (now or datetime.now(UTC))).total_seconds()


def _status(error: BaseException) -> int | None:
    """The status of an HTTP answer: of its `response`, or its own where its library says so."""
    response = _read(error, "response")
    found = [_read(response, "status_code"), _read(response, "status"), _read(error, "status_code")]
    if any(_root(each) in _OWN_STATUS for each in type(error).__mro__):
        found += [_read(error, "status"), _read(error, "code")]
    return next((code for code in found if type(code) is int and 400 <= code < 600), None)


def _headers(error: BaseException) -> Mapping[str, Any]:
    for holder in (_read(error, "response"), error):
        headers = _read(holder, "headers")
        if callable(_read(headers, "get")):
            found: Mapping[str, Any] = headers
            return found
    return {}


def _is_certificate(error: BaseException) -> bool:
    return any(each.__module__ == "ssl" for each in type(error).__mro__)


def _root(kind: type) -> str:
    return str(kind.__module__).partition(".")[0]


def _read(holder: object, name: str) -> Any:
    try:
        return getattr(holder, name, None)
    except Exception:  # noqa: BLE001 - a property of a foreign class may raise anything
        return None


def message_of(error: BaseException) -> str:
    """The text of `error`, whatever its class does."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a foreign class may have any `__str__`
        return "its message cannot be read"
