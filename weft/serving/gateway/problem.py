"""Errors of the gateway's API: a status, and an error in OpenAI's form.

The only place that maps errors to statuses. Clients never get the text of a server-side error,
which may contain addresses, paths or data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from weft.core.errors import (
    AgentError,
    BreakerOpen,
    BudgetExceeded,
    Cancelled,
    CapabilityError,
    ContextLengthExceeded,
    DeadlineExceeded,
    InputError,
    MachineBusy,
    ModelNotFound,
    ModelOutputError,
    ModelOverloaded,
    ModelRequestError,
    ModelTimeout,
    ModelUnavailable,
    NodeTimeout,
    OutputTruncated,
    ReasoningError,
    RunBusy,
    RunExists,
    ServeError,
    StoreError,
    WeftError,
)
from weft.core.redaction import hidden

_NO_RETRY = frozenset({500, 504})


@dataclass(frozen=True, slots=True)
class ApiProblem:
    """An error of the API. `param` is the field at fault; a client may retry in `retry_after_s`.

    Its body contains no secret of this process.
    """

    status: int
    message: str
    type: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None
    retry_after_s: float | None = None

    def body(self) -> dict[str, object]:
        """The JSON body in OpenAI's form."""
        error = {
            "message": hidden(self.message),
            "type": self.type,
            "param": hidden(self.param),
            "code": self.code,
        }
        return {"error": error}

    def headers(self) -> dict[str, str]:
        """The headers of the response; OpenAI's clients repeat 5xx without `x-should-retry`."""
        headers = {}
        if self.retry_after_s is not None:
            headers["retry-after"] = str(max(1, math.ceil(self.retry_after_s)))
        if self.status in _NO_RETRY:
            headers["x-should-retry"] = "false"
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        if self.status in {408, 413}:
            headers["connection"] = "close"
        return headers


class RequestRefused(Exception):
    """Refuses a request with a problem."""

    def __init__(self, problem: ApiProblem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def bad_request(message: str, param: str | None = None, code: str | None = None) -> RequestRefused:
    """The refusal of a request that is wrong at `param`."""
    return RequestRefused(ApiProblem(400, message, code=code, param=param))


class _Rule(NamedTuple):
    kind: type[WeftError]
    status: int
    type: str
    code: str
    phrase: str | None = None
    """The text for clients; None: the error's own, which is about their request."""


_WRONG, _OURS = "invalid_request_error", "server_error"
_LATE = "the answer was not complete in time"
_MORE = "raise max_tokens, or the budget"
_CUT = f"the answer was cut off before it was complete; {_MORE}, or let the model think less"
_RULES = (
    _Rule(InputError, 400, _WRONG, "invalid_inputs"),
    _Rule(ContextLengthExceeded, 400, _WRONG, "context_length_exceeded"),
    _Rule(ModelRequestError, 400, _WRONG, "invalid_request"),
    _Rule(CapabilityError, 400, _WRONG, "unsupported"),
    _Rule(ModelNotFound, 404, _WRONG, "model_not_found"),
    _Rule(BudgetExceeded, 422, _WRONG, "budget_exceeded"),
    _Rule(ModelOverloaded, 429, "rate_limit_error", "overloaded", "the model is overloaded"),
    _Rule(OutputTruncated, 422, _WRONG, "output_truncated", _CUT),
    _Rule(
        ReasoningError, 422, _WRONG, "no_answer", f"the reasoning ended without an answer; {_MORE}"
    ),
    _Rule(AgentError, 422, _WRONG, "no_answer", f"an agent ended without an answer; {_MORE}"),
    _Rule(ModelOutputError, 502, _OURS, "bad_output", "a model's output does not fit"),
    _Rule(BreakerOpen, 503, _OURS, "unavailable", "what keeps failing is not called for a while"),
    _Rule(ModelUnavailable, 502, _OURS, "unavailable", "a model cannot be reached, or broke off"),
    _Rule(ServeError, 503, _OURS, "unavailable", "a model server does not run"),
    _Rule(RunBusy, 409, _WRONG, "run_busy"),
    _Rule(RunExists, 409, _WRONG, "run_exists"),
    _Rule(StoreError, 503, _OURS, "unavailable", "what is kept on disk cannot be used"),
    _Rule(MachineBusy, 503, _OURS, "overloaded", "the machine is too busy to check it"),
    _Rule(Cancelled, 503, _OURS, "cancelled", "the run was cancelled"),
    _Rule(ModelTimeout, 504, "timeout_error", "timeout", _LATE),
    _Rule(DeadlineExceeded, 504, "timeout_error", "timeout", _LATE),
    _Rule(NodeTimeout, 504, "timeout_error", "timeout", _LATE),
    _Rule(WeftError, 500, _OURS, "failed", "it failed"),
)


def problem_of(error: Exception, request_id: str) -> ApiProblem:
    """The problem for the client; `request_id` identifies the error in our own log."""
    if isinstance(error, RequestRefused):
        return error.problem
    if not isinstance(error, WeftError):
        text = f"the gateway failed; it says why under the request id {request_id}"
        return ApiProblem(500, text, _OURS, "internal_error")
    rule = next(rule for rule in _RULES if isinstance(error, rule.kind))
    if rule.phrase is None:
        return ApiProblem(rule.status, str(error), rule.type, rule.code)
    where = f"{error.node}: " if error.node else ""
    text = f"{where}{rule.phrase} (request id {request_id})"
    delay_s = getattr(error, "retry_after_s", None) or 1.0 if rule.status in {429, 503} else None
    return ApiProblem(rule.status, text, rule.type, rule.code, retry_after_s=delay_s)
