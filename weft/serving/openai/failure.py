"""Converts all failures of an endpoint to weft's errors.

Foreign exceptions are not chained: their texts may contain credentials that a server echoed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import anyio
import httpx2

from weft.core.errors import (
    ContextLengthExceeded,
    InternalError,
    ModelError,
    ModelNotFound,
    ModelOverloaded,
    ModelRequestError,
    ModelUnavailable,
    WeftError,
)
from weft.core.foreign import retry_after_s
from weft.serving.openai.answer import StreamError
from weft.serving.openai.endpoint import Endpoint

_MESSAGE_CHARS = 300
_TOO_LONG = re.compile(
    r"maximum context length[^.\"]{0,80}|context_length_exceeded"
    r"|exceeds the (?:available context size|model's context length)[^.\"]{0,80}"
    r"|longer than the model's context length[^.\"]{0,80}"
    r"|prompt is too long: [^.\"]{0,80}|input token count [^.\"]{0,40}exceeds [^.\"]{0,80}",
    re.IGNORECASE,
)
_BUSY = frozenset({429, 503, 529})
_TRY_AGAIN = frozenset({408, 409, 425})


def convert(error: Exception, endpoint: Endpoint, models: Sequence[str]) -> WeftError:
    """Any exception as a `WeftError`; `models` are those the server lists."""
    match error:
        case WeftError():
            return error
        case httpx2.HTTPStatusError(response=answer):
            return status_error(endpoint, answer.status_code, answer.text, answer.headers, models)
        case StreamError():
            return status_error(endpoint, error.status, str(error), {}, models)
        case httpx2.HTTPError() | httpx2.StreamError() | OSError() | anyio.EndOfStream():
            return _connection_error(error, endpoint)
        case anyio.ClosedResourceError() | anyio.BrokenResourceError():
            return _connection_error(error, endpoint)
        case TypeError() | ValueError():
            return ModelRequestError(f"the request cannot be sent: {_short(endpoint, str(error))}")
        case _:
            return InternalError(_short(endpoint, f"{type(error).__name__}: {error}"))


def status_error(
    endpoint: Endpoint,
    status: int,
    text: str,
    headers: Mapping[str, str],
    models: Sequence[str] = (),
) -> ModelError:
    """The error for an HTTP status outside 2xx; `text` is the server's message."""
    message = f"{endpoint.base_url} answered {status}: {_short(endpoint, text)}"
    if "insufficient_quota" in text:
        return ModelRequestError(message, hint="the account's quota is spent")
    if status in _BUSY:
        return ModelOverloaded(message, retry_after_s=retry_after_s(headers))
    if status >= 500 or status in _TRY_AGAIN:
        unavailable = ModelUnavailable(message)
        unavailable.retry_after_s = retry_after_s(headers)
        return unavailable
    if status in {401, 403}:
        return ModelRequestError(message, hint=_key_hint(endpoint))
    if status == 404:
        return ModelNotFound(message, hint=_model_hint(endpoint, models))
    if 300 <= status < 400:
        return ModelRequestError(
            message, hint="redirects are not followed: set base_url to its aim"
        )
    if found := _TOO_LONG.search(text):
        return ContextLengthExceeded(
            f"the prompt does not fit the model's context: {found[0]}",
            hint="shorten the prompt, or ask for a shorter answer",
        )
    return ModelRequestError(message)


def _connection_error(error: BaseException, endpoint: Endpoint) -> ModelUnavailable:
    url = endpoint.base_url
    match error:
        case httpx2.ConnectTimeout():
            return ModelUnavailable(f"no connection to {url} in {endpoint.connect_timeout_s:g} s")
        case httpx2.ConnectError():
            reason = _short(endpoint, str(error))
            return ModelUnavailable(f"cannot connect to {url}: {reason}", hint="is it running?")
        case httpx2.TimeoutException():
            return ModelUnavailable(f"{url} was silent for {endpoint.idle_timeout_s:g} s")
        case _:
            reason = _short(endpoint, str(error) or type(error).__name__)
            return ModelUnavailable(f"the connection to {url} broke: {reason}")


def _short(endpoint: Endpoint, text: str) -> str:
    """The server's message, shortened; taken from its JSON if there is any."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        message = None
    if isinstance(message, dict):
        message = message.get("error", message)
    if isinstance(message, dict):
        message = message.get("message") or message.get("detail")
    words = endpoint.redact(str(message or text)).split()
    return " ".join(words)[:_MESSAGE_CHARS] or "nothing"


def _key_hint(endpoint: Endpoint) -> str:
    if endpoint.api_key_env is None:
        return "give the model an api_key_env: the name of the variable that holds its key"
    state = "does not fit" if endpoint.api_key else "is not set"
    return f"the key in the environment variable {endpoint.api_key_env} {state}"


def _model_hint(endpoint: Endpoint, models: Sequence[str]) -> str:
    if not models:
        return "should base_url end in /v1?"
    names = endpoint.redact(", ".join(models))[:_MESSAGE_CHARS]
    return f"no model {endpoint.model!r} there; it has: {names}"
