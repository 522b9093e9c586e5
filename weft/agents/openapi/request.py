"""Builds requests: each argument in its place, as the document declares.

Sends nothing. An argument cannot escape its place: it is encoded, and checked where that is not
enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from pydantic_core import to_json

from weft.agents.openapi.address import ServerOrigin
from weft.agents.openapi.client import HttpRequest
from weft.agents.openapi.credentials import RequestCredentials
from weft.agents.openapi.operation import KEY_HEADER, READING, Operation
from weft.agents.openapi.parameter import ApiParameter
from weft.agents.tools.problem import parameter_hint, plain_arguments
from weft.core.call_context import current_key, idempotency_key
from weft.core.errors import ToolArgumentError
from weft.validation import misfit

_PATH_SAFE = "/%:@!$&'()*+,;=~-._"


def validate_arguments(operation: Operation, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """`arguments` validated, without optional ones that are None.

    Raises: `ToolArgumentError`.
    """
    name, schema = operation.spec.name, operation.spec.parameters
    needed, why = schema.get("required", ()), None
    values: dict[str, Any] = {}
    try:
        plain = plain_arguments(arguments)
        values = {
            key: value
            for key, value in plain.items()
            if value is not None or key in needed or key not in schema["properties"]
        }
        why = misfit(values, schema)
    except ValueError as error:  # not JSON, or too expensive to check
        why = str(error)
    if why is not None:
        raise ToolArgumentError(f"{name}: {why}", hint=parameter_hint(schema))
    return values


def build_request(
    operation: Operation,
    origin: ServerOrigin,
    base: str,
    arguments: Mapping[str, Any],
    keys: RequestCredentials,
) -> HttpRequest:
    """The request for checked `arguments` to the server at `origin`, below the path `base`.

    Raises: `ToolArgumentError` for a value that cannot be serialised in its place.
    """
    headers = {"Accept": "application/json, text/*;q=0.5"}
    path, query, cookies = operation.path, list[tuple[str, str]](), list(keys.cookies)
    for parameter in operation.parameters:
        if parameter.argument not in arguments:
            continue
        value = arguments[parameter.argument]
        try:
            match parameter.place:
                case "path":
                    path = path.replace(f"{{{parameter.name}}}", _segment(parameter, value))
                case "query":
                    query += _pairs(parameter, value, keys)
                case "header":
                    headers[parameter.name] = _header(parameter, value, keys)
                case "cookie":
                    cookies.append(f"{quote(parameter.name, safe='')}={parameter.text(value)}")
        except ValueError as error:
            why = f"{operation.spec.name}: {parameter.argument}: {error}"
            raise ToolArgumentError(why) from error
    body = None
    if operation.media and "body" in arguments:
        headers["Content-Type"] = operation.media
        body = to_json(arguments["body"])
    headers |= _key(operation)
    if cookies:
        headers["Cookie"] = "; ".join(cookies)
    target = _checked_path(operation, base + path)
    pairs = "&".join(f"{name}={value}" for name, value in (*query, *keys.query))
    target = f"{target}?{pairs}" if pairs else target
    return HttpRequest(operation.method, origin, target, {**headers, **keys.headers}, body)


def _key(operation: Operation) -> dict[str, str]:
    """The header with the call's idempotency key, if it has or needs one."""
    if operation.keyed:
        return {KEY_HEADER: idempotency_key()}
    key = "" if operation.method in READING else current_key()
    return {KEY_HEADER: key} if key else {}


def _segment(parameter: ApiParameter, value: Any) -> str:
    text = parameter.text(value)
    if not text:
        raise ValueError("an empty text would address something else")
    return text


def _pairs(parameter: ApiParameter, value: Any, keys: RequestCredentials) -> list[tuple[str, str]]:
    pairs = parameter.pairs(value)
    taken = {name for name, _ in keys.query}
    if any(name in taken for name, _ in pairs):
        raise ValueError("this name is that of the key")
    return pairs


def _header(parameter: ApiParameter, value: Any, keys: RequestCredentials) -> str:
    text = parameter.text(value)
    if not text.isascii() or not text.isprintable():
        raise ValueError("a header holds printable ASCII only")
    if parameter.name.lower() in {name.lower() for name in keys.headers}:
        raise ValueError("this header carries the key")
    return text.strip()


def _checked_path(operation: Operation, path: str) -> str:
    """`path`, quoted. Rejects the segments `.` and `..`, which servers would resolve."""
    if any(unquote(segment) in (".", "..") for segment in path.split("/")):
        raise ToolArgumentError(f"{operation.spec.name}: '.' and '..' cannot be part of its path")
    return quote(path, safe=_PATH_SAFE)
