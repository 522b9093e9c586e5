"""A failure as the error that it was, for who meets it again. Knows the classes in one tree."""

from __future__ import annotations

from collections.abc import Iterator

from weft.core.errors import Failure, InternalError, WeftError


def raised(failure: Failure) -> WeftError:
    """An error of the class, with the words, that `failure` tells of."""
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
