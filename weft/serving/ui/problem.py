"""What goes wrong with a request, as the page is told it: a status, a sentence, perhaps a hint."""

from __future__ import annotations

from typing import Final

from starlette.responses import JSONResponse

from weft.core.errors import InputError, MachineBusy, StoreError, UnknownReference, WeftError
from weft.core.secrets import hidden


class Refused(Exception):
    """A request ends here, with `status`."""

    def __init__(self, status: int, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hint = hint


_STATUS: Final[tuple[tuple[type[WeftError], int], ...]] = (
    (UnknownReference, 404),
    (InputError, 422),
    (StoreError, 503),
    (MachineBusy, 503),
)


def problem_of(error: Exception) -> JSONResponse:
    """The answer to a request that ended with `error`; a bug of ours shows its class only."""
    if isinstance(error, Refused):
        return _answer(error.status, error.message, error.hint)
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return _answer(status, error.message, error.hint)
    return _answer(500, f"the server failed: {type(error).__name__}", "this is a bug in weft")


def _answer(status: int, message: str, hint: str | None) -> JSONResponse:
    return JSONResponse(hidden({"message": message, "hint": hint}), status)
