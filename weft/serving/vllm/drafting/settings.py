"""Settings of a proposer, fixed when its server starts, and their bounds. Reads no files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

KEY = "weft_drafting"
"""Where vLLM's `additional_config` holds the settings."""


@dataclass(frozen=True, slots=True)
class ProposerSettings:
    """How drafts are made.

    depth       longest run of tokens that is compared
    least       a token is drafted while it is reached with at least this probability; with more
                while passes are expensive, as in a full batch
    memory_mib  bound of the memory for texts of other requests, all labels together
    remember    store these texts in a file for the next server of the same model
    """

    depth: int = 16
    least: float = 0.1
    memory_mib: int = 96
    remember: bool = False

    def __post_init__(self) -> None:
        for name, (low, high) in BOUNDS.items():
            value = getattr(self, name)
            if not low <= value <= high:  # also refuses what is no number at all
                raise ValueError(f"`{name}` is {value!r}, not between {low:g} and {high:g}")


BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "depth": (3, 64),
        "least": (0.0, 1.0),
        "memory_mib": (1, 4096),
    }
)
OPTIONS = tuple(field.name for field in fields(ProposerSettings))


def settings_from(given: object) -> ProposerSettings:
    """The settings in a plain mapping; missing ones are at their defaults.

    Raises: `ValueError` unless it maps known names to values of the right type.
    """
    if not isinstance(given, Mapping):
        raise ValueError(f"settings are {given!r}, not a mapping")  # noqa: TRY004 - as for any other
    defaults = {field.name: field.default for field in fields(ProposerSettings)}
    unknown = sorted(map(str, given.keys() - defaults.keys()))
    if unknown:
        raise ValueError(f"unknown: {', '.join(unknown)}; there are {', '.join(defaults)}")
    checked = {name: _like(defaults[name], name, value) for name, value in given.items()}
    return replace(ProposerSettings(), **checked)


def _like(default: object, name: str, value: object) -> Any:
    if isinstance(default, bool) and isinstance(value, bool):
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(default, float) and isinstance(value, int | float) and number:
        return float(value)
    if isinstance(value, int) and number and not isinstance(default, bool):
        return value
    raise ValueError(f"`{name}` is {value!r}")
