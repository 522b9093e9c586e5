"""The circuit breaker that a tool declares: `@tool(breaker=weft.Breaker(failures=3))`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft.core.breaker import Breaker
from weft.core.errors import BuildError
from weft.core.suggestion import unknown

BreakerLike = int | Mapping[str, float] | Breaker | None
"""The failures that open it; or a mapping of failures, within, after (seconds) and successes."""
_FIELDS: Final = {
    "failures": "failures",
    "within": "within_s",
    "after": "after_s",
    "successes": "successes",
}


def breaker_from(tool: str, breaker: BreakerLike) -> Breaker | None:
    """The breaker of `tool`; None where it declares none. Raises: `BuildError`."""
    if breaker is None or isinstance(breaker, Breaker):
        return breaker
    given = breaker if isinstance(breaker, Mapping) else {"failures": breaker}
    for name in given:
        if name not in _FIELDS:
            raise unknown(BuildError, f"setting of the breaker of the tool {tool}", name, _FIELDS)
    fields = {_FIELDS[name]: value for name, value in given.items()}
    try:
        return Breaker(**fields)  # type: ignore[arg-type]  # it checks them
    except ValueError as error:
        raise BuildError(f"tool {tool}: {error}", hint="breaker=5, or weft.Breaker(...)") from error
