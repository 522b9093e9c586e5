"""Converts an HTTP answer to a tool's result, checked by the document, or to an error."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from pydantic_core import from_json

from weft.agents.openapi.client import HttpAnswer
from weft.agents.openapi.operation import Operation
from weft.agents.openapi.responses import ResponseSchema, is_json, kind_of
from weft.agents.untrusted import Secrets, printable
from weft.core.errors import NotDone, ToolRaised, ToolResultError
from weft.core.foreign import ErrorCause, retry_after_s
from weft.validation import violation

_SHOWN: Final = 300
_REFUSED: Final = frozenset({400, 401, 403, 404, 405, 406, 413, 415, 422, 429})
"""Statuses that mean that the server did not carry out the request."""
_CHARSETS: Final = frozenset({"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1"})


def value_of(operation: Operation, answer: HttpAnswer, secrets: Secrets) -> Any:
    """The value of a successful `answer` as plain data; None where it is empty.

    Raises: `ToolResultError`.
    """
    name, declared = operation.spec.name, operation.responses.of(answer.status)
    if answer.headers.get("content-encoding", "identity").lower() != "identity":
        raise ToolResultError(f"{name}: the server sent compressed data, which was not asked for")
    value = _value(name, answer, declared, secrets) if answer.body else None
    if declared.schema is None:
        return value
    why = violation(value, declared.schema)
    if why is not None:
        raise ToolResultError(
            f"{name}: the server answered what its document does not promise: {why}"
        )
    return value


def _value(name: str, answer: HttpAnswer, declared: ResponseSchema, secrets: Secrets) -> Any:
    media = answer.headers.get("content-type", "")
    if is_json(media):
        return _parsed(name, answer, secrets)
    if kind_of(media).startswith("text/") and not declared.wants_json:
        return secrets.hidden(_text(answer))
    kind = printable(kind_of(media), 60) or "something without a content type"
    expected = "JSON" if declared.wants_json else "JSON or text"
    raise ToolResultError(
        f"{name}: the server answered {kind}, not {expected}{_begin(answer, secrets)}"
    )


def _parsed(name: str, answer: HttpAnswer, secrets: Secrets) -> Any:
    try:
        text = answer.body.decode("utf-8-sig")
        return from_json(secrets.hidden(text), allow_inf_nan=False)
    except ValueError as error:
        why = printable(str(error), 200)
        raise ToolResultError(f"{name}: the server's answer is not JSON: {why}") from error


def failure_of(
    operation: Operation, answer: HttpAnswer, secrets: Secrets, *, retryable: bool
) -> ToolRaised:
    """The error for an answer without success."""
    try:
        phrase = f" {HTTPStatus(answer.status).phrase}"
    except ValueError:
        phrase = ""
    hint = "see `auth_env`" if answer.status in (401, 403) else None
    kind = NotDone if answer.status in _REFUSED else ToolRaised
    error = kind(
        f"{operation.spec.name}: the server answered {answer.status}{phrase}"
        f"{_begin(answer, secrets)}",
        hint=hint,
        retryable=retryable,
    )
    error.retry_after_s = retry_after_s(answer.headers)
    error.cause = ErrorCause((), answer.status, error.retry_after_s)
    return error


def _begin(answer: HttpAnswer, secrets: Secrets) -> str:
    """The beginning of a readable body, after a colon."""
    media = answer.headers.get("content-type", "")
    if not answer.body or not (is_json(media) or kind_of(media).startswith("text/")):
        return ""
    return f": {printable(secrets.hidden(_text(answer)), _SHOWN)}"


def _text(answer: HttpAnswer) -> str:
    charset = "utf-8"
    for setting in answer.headers.get("content-type", "").lower().split(";")[1:]:
        key, _, value = setting.partition("=")
        if key.strip() == "charset" and value.strip(' "') in _CHARSETS:
            charset = value.strip(' "')
    return answer.body.decode(charset, "replace")
