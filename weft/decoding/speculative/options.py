"""Options of decoders, as they were asked for, checked. Knows no decoder.

All raise `SpecError`, which names the option and what it may be.
"""

from __future__ import annotations

from math import isfinite

from weft.core.errors import SpecError
from weft.decoding.speculative.preset import Options


def whole(options: Options, name: str, default: int, low: int, high: int) -> int:
    """The option `name`, a whole number from `low` to `high`."""
    value = options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise SpecError(f"{name} is {value!r}", hint=f"a whole number from {low} to {high}")
    return value


def share(options: Options, name: str, default: float) -> float:
    """The option `name`, a number from 0 to 1."""
    value = options.get(name, default)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not isfinite(float(value)) or not 0.0 <= float(value) <= 1.0:
        raise SpecError(f"{name} is {value!r}", hint="a number from 0 to 1")
    return float(value)


def switch(options: Options, name: str, *, default: bool) -> bool:
    """The option `name`, true or false."""
    value = options.get(name, default)
    if not isinstance(value, bool):
        raise SpecError(f"{name} is {value!r}", hint="true or false")
    return value


def text(options: Options, name: str) -> str | None:
    """The option `name`, a text; None where it is not given."""
    value = options.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise SpecError(f"{name} is {value!r}", hint="a text, such as a folder's path")
    return value
