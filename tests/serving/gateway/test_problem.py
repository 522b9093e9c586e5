from __future__ import annotations

import inspect

import pytest

from weft.core import errors
from weft.core.errors import (
    AgentError,
    BudgetExceeded,
    CapabilityError,
    InputError,
    InternalError,
    MachineBusy,
    ModelNotFound,
    ModelOutputError,
    ModelOverloaded,
    ModelRequestError,
    ModelTimeout,
    ModelUnavailable,
    NodeFailed,
    NodeTimeout,
    OutputTruncated,
    ReasoningError,
    SpecError,
    StoreError,
    WeftError,
)
from weft.serving.gateway.problem import problem_of

SECRET = "postgres://admin:hunter2@10.0.0.1/"
EVERY = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, WeftError)
]


@pytest.mark.parametrize("kind", EVERY)
def test_every_error_has_a_status_and_ours_keep_their_words(kind: type[WeftError]) -> None:
    problem = problem_of(kind(SECRET), "req_1")
    error = problem.body()["error"]
    assert isinstance(error, dict)
    assert set(error) == {"message", "type", "param", "code"}
    assert 400 <= problem.status < 600
    if problem.status >= 500 or problem.status == 429:
        assert SECRET not in str(error)
        assert "req_1" in str(error["message"])


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError("x"), 400),
        (ModelRequestError("x"), 400),
        (CapabilityError("x"), 400),
        (ModelNotFound("x"), 404),
        (BudgetExceeded("x"), 422),
        (ModelOverloaded("x", retry_after_s=2.2), 429),
        (NodeFailed("x"), 500),
        (InternalError("x"), 500),
        (OutputTruncated("x"), 422),
        (ReasoningError("x"), 422),
        (AgentError("x"), 422),
        (ModelOutputError("x"), 502),
        (ModelUnavailable("x"), 502),
        (SpecError("x"), 503),
        (StoreError("x"), 503),
        (MachineBusy("x"), 503),
        (ModelTimeout("x"), 504),
        (NodeTimeout("x"), 504),
        (ZeroDivisionError(SECRET), 500),
    ],
)
def test_statuses(error: Exception, status: int) -> None:
    problem = problem_of(error, "req_1")
    assert problem.status == status
    assert SECRET not in problem.message
    assert ("x-should-retry" in problem.headers()) == (status in {500, 504})
    if status == 429:
        assert problem.headers()["retry-after"] == "3"


def test_the_node_is_named() -> None:
    assert "draft" in problem_of(NodeFailed(SECRET, node="draft"), "r").message


@pytest.mark.parametrize("kind", [OutputTruncated, ReasoningError, AgentError])
def test_an_answer_that_was_cut_short_says_what_to_raise(kind: type[WeftError]) -> None:
    problem = problem_of(kind(SECRET), "req_1")
    assert "raise max_tokens" in problem.message
    assert SECRET not in problem.message
    assert problem.code in ("output_truncated", "no_answer")
