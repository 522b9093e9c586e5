"""The retry that a tool declares: `@tool(retry=3, retry_on=KeyError)`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from weft.core.error_names import ErrorRef, error_names
from weft.core.errors import BuildError
from weft.core.suggestion import unknown
from weft.engine import Retry

RetryLike = int | Mapping[str, float] | Retry | None
"""How often to try; or a mapping of attempts, delay, factor, max_delay (seconds) and jitter."""
_FIELDS: Final = {
    "attempts": "attempts",
    "delay": "delay_s",
    "factor": "factor",
    "max_delay": "max_delay_s",
    "jitter": "jitter",
}


def retry_from(
    tool: str, retry: RetryLike, retry_on: ErrorRef | Sequence[ErrorRef]
) -> Retry | None:
    """The engine's retry of `tool`; None where nothing is declared. Raises: `BuildError`."""
    try:
        on = error_names(retry_on)
    except ValueError as error:
        raise BuildError(f"tool {tool}: retry_on: {error}") from error
    if retry is None and not on:
        return None
    if isinstance(retry, Retry):
        return replace(retry, on=(*retry.on, *on))
    given: Mapping[str, float] = {}
    if isinstance(retry, Mapping):
        given = retry
    elif retry is not None:
        given = {"attempts": retry}
    for name, value in given.items():
        if name not in _FIELDS:
            raise unknown(BuildError, f"setting of retry of the tool {tool}", name, _FIELDS)
        _check(tool, name, value)
    fields = {_FIELDS[name]: value for name, value in given.items()}
    return replace(Retry(on=on), **fields)  # type: ignore[arg-type]  # checked above


def _check(tool: str, name: str, value: object) -> None:
    least = 1 if name in ("attempts", "factor") else 0
    number = isinstance(value, int if name == "attempts" else int | float)
    if not number or isinstance(value, bool) or not least <= value or value == float("inf"):  # type: ignore[operator]
        raise BuildError(f"tool {tool}: {name} of retry must be a number of at least {least}")
