"""A way to write as people name it: what makes its plugs, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from weft.core.errors import SpecError
from weft.decoding.diffusion.adapter import ModelTraits
from weft.decoding.diffusion.ports import DecoderConfig

Options = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class DiffusionPreset:
    """`make` builds the plugs for a model.

    It raises `SpecError` for options that cannot be, `CapabilityError` or `ModelNotFound` for a
    model that it cannot be used with.

    plain      one token a pass: what the others are measured against
    needs      what it takes beside the model: a trained filter, a supervisor; empty: nothing
    options    the names it takes
    lists      those of them that take several values, with commas between them
    published  what was claimed, and where; empty: nobody measured it
    """

    name: str
    summary: str
    make: Callable[[ModelTraits, Options], DecoderConfig]
    plain: bool = False
    needs: str = ""
    options: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    published: str = ""


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
