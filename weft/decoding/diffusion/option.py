"""Options of presets, read from what people wrote. Knows no preset."""

from __future__ import annotations

from weft.core.errors import SpecError
from weft.decoding.diffusion.preset import Options


def number(options: Options, name: str, default: float, low: float, high: float) -> float:
    """Raises: `SpecError` for what is no number from `low` to `high`."""
    value = options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise SpecError(f"{name} must be a number from {low:g} to {high:g}, not {value!r}")
    return float(value)


def whole(options: Options, name: str, default: int, low: int, high: int) -> int:
    """Raises: `SpecError` for what is no whole number from `low` to `high`."""
    value = options.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise SpecError(f"{name} must be a whole number from {low} to {high}, not {value!r}")
    return value


def word(options: Options, name: str, default: str, among: tuple[str, ...]) -> str:
    """Raises: `SpecError` for what is none of the words `among`."""
    value = options.get(name, default)
    if not isinstance(value, str) or value not in among:
        raise SpecError(f"{name} must be one of {', '.join(among)}, not {value!r}")
    return value
