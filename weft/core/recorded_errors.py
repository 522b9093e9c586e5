"""Recorded failures as exceptions."""

from __future__ import annotations

from collections.abc import Iterator

from weft.core.errors import Failure, InternalError, WeftError


def error_of_failure(failure: Failure) -> WeftError:
    """The exception that `failure` describes: its class, message, hint and `retryable`."""
    kind = next((each for each in _tree(WeftError) if each.__name__ == failure.error), WeftError)
    if kind is InternalError:
        return InternalError(failure.message)
    error = kind(failure.message, hint=failure.hint)
    error.retryable = failure.retryable
    return error


def _tree(kind: type[WeftError]) -> Iterator[type[WeftError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _tree(each)
