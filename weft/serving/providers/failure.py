"""Converts failures of a vendor's library to weft's errors, without the library's own texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx2

from weft.core.errors import ModelNotFound, ModelRequestError, WeftError
from weft.serving.openai.endpoint import Endpoint
from weft.serving.openai.failure import convert, status_error

_WRONG_KEY = re.compile(r"API key not valid|API_KEY_INVALID|API key expired", re.IGNORECASE)
_DEEPEST = 8
_KNOWN = (WeftError, httpx2.HTTPError, httpx2.StreamError, OSError)


@dataclass(frozen=True, slots=True)
class StatusFailure:
    """An HTTP status outside 2xx, or its like within a stream; `text` is the server's message."""

    status: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)


def provider_failure(
    error: Exception, endpoint: Endpoint, answered: StatusFailure | None
) -> WeftError:
    """`error` as one of weft's; `answered` is what the server said, if it did."""
    if answered is None:
        return convert(_origin(error), endpoint, ())
    status = 401 if _WRONG_KEY.search(answered.text) else answered.status
    failed = status_error(endpoint, status, answered.text, answered.headers)
    if isinstance(failed, ModelNotFound):
        failed.hint = f"the API has no model {endpoint.model!r}, or base_url leads elsewhere"
    return failed


def missing_key(endpoint: Endpoint) -> ModelRequestError:
    """The error for a hosted API that is asked without a key."""
    variable = endpoint.api_key_env
    return ModelRequestError(
        f"{endpoint.base_url} needs a key, and the environment variable {variable} is not set",
        hint=f"export {variable}, or name another variable as `api_key_env`",
    )


def _origin(error: Exception) -> Exception:
    """The HTTP library's error inside the vendor's, or one of weft's own."""
    found: BaseException = error
    for _ in range(_DEEPEST):
        if isinstance(found, _KNOWN) or found.__cause__ is None:
            break
        found = found.__cause__
    return found if isinstance(found, Exception) else error
