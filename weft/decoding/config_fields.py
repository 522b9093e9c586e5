"""A model folder's JSON files, read with bounds: each value is checked where it is taken."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from weft.core.errors import CapabilityError

CONFIG: Final = "config.json"
_LARGEST_BYTES: Final = 1 << 20
_SHOWN: Final = 60


class ConfigFields:
    """One JSON object of a file. Every getter raises `CapabilityError` naming file and key."""

    def __init__(self, path: Path, values: Mapping[str, object], within: str = "") -> None:
        self.path = path
        self._values = values
        self._within = within

    @classmethod
    def read(cls, path: Path, most_bytes: int = _LARGEST_BYTES) -> ConfigFields:
        """Raises: `CapabilityError` for a file that is no JSON object, or too large."""
        try:
            with path.open("rb") as opened:
                raw = opened.read(most_bytes + 1)
        except OSError as error:
            raise CapabilityError(f"{path} cannot be read: {error.strerror}") from error
        if len(raw) > most_bytes:
            raise CapabilityError(f"{path} has more than {most_bytes} bytes")
        try:
            values = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise CapabilityError(f"{path} is no JSON: {type(error).__name__}") from error
        if not isinstance(values, dict):
            raise CapabilityError(f"{path} is no JSON object")
        return cls(path, values)

    def __contains__(self, key: object) -> bool:
        """Whether `key` is present and not null."""
        return isinstance(key, str) and self._values.get(key) is not None

    def within(self, key: str) -> ConfigFields:
        """The object under `key`; an empty one where it is missing."""
        value = self._values.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.wrong(key, "no object")
        return ConfigFields(self.path, value, f"{self._within}{key}.")

    def items(self) -> Iterable[tuple[str, object]]:
        """All keys and values, unchecked."""
        return self._values.items()

    def objects(self, key: str) -> list[Mapping[str, object]]:
        """The objects of the list under `key`; other values are skipped."""
        value = self._values.get(key)
        if not isinstance(value, list):
            return []
        return [part for part in value if isinstance(part, dict)]

    def _value(self, key: str, default: object) -> object:
        value = self._values.get(key)
        return default if value is None else value

    def whole(self, key: str, low: int, high: int, default: int | None = None) -> int:
        """A whole number from `low` to `high`; `default` where it is missing."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.wrong(key, f"no whole number from {low} to {high}")
        return value

    def number(self, key: str, low: float, high: float, default: float | None = None) -> float:
        """A finite number from `low` to `high`; `default` where it is missing."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            value = math.nan
        if not math.isfinite(value) or not low <= value <= high:
            raise self.wrong(key, f"no number from {low} to {high}")
        return float(value)

    def flag(self, key: str, default: bool | None = None) -> bool:
        """True or false; `default` where it is missing."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "neither true nor false")
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A string of at most 200 characters; `default` where it is missing."""
        value = self._value(key, default)
        if not isinstance(value, str) or len(value) > 200:
            raise self.wrong(key, "no short text")
        return value

    def file(self, key: str) -> str:
        """The name of a file of the same folder."""
        name = self.text(key)
        if not name or Path(name).name != name or name.startswith("."):
            raise self.wrong(key, "no file of the folder")
        return name

    def texts(self, key: str) -> tuple[str, ...]:
        """Strings, at most 64; none where it is missing."""
        value = self._values.get(key)
        if value is None:
            return ()
        fine = isinstance(value, list) and len(value) <= 64
        if not fine or not all(isinstance(part, str) for part in value):  # type: ignore[attr-defined]
            raise self.wrong(key, "no list of texts")
        return tuple(value)  # type: ignore[arg-type]

    def ids(self, key: str, below: int) -> frozenset[int]:
        """One token id or a list of them, all under `below`; none where it is missing."""
        value = self._values.get(key)
        several = [] if value is None else value if isinstance(value, list) else [value]
        for one in several:
            if isinstance(one, bool) or not isinstance(one, int) or not 0 <= one < below:
                raise self.wrong(key, f"no token ids from 0 to {below - 1}")
        return frozenset(several)

    def must_be(self, key: str, *allowed: object) -> None:
        """Raise unless it is one of `allowed`, or missing."""
        value = self._values.get(key)
        if value is not None and not any(value is one or value == one for one in allowed):
            listed = " or ".join(json.dumps(one) for one in allowed) or "null"
            raise self.wrong(key, f"not {listed}, and this model is run with nothing else")

    def wrong(self, key: str, why: str) -> CapabilityError:
        """The error for the value of `key`."""
        shown = repr(self._values.get(key))
        cut = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."
        return CapabilityError(
            f"{self.path}: {self._within}{key} is {cut}: {why}",
            hint="the folder's files must be those that were published with the model",
        )


_ROPE_TYPES: Final = ("default", "linear", "llama3", "yarn")


def rope_parameters(config: ConfigFields, theta: float) -> dict[str, object]:
    """RoPE parameters as transformers has them, from older and newer configs.

    theta: the base where the config has none. Raises: `CapabilityError` naming the key.
    """
    newer = config.within("rope_parameters")
    scaling = newer if "rope_parameters" in config else config.within("rope_scaling")
    scaling.must_be("rope_type", *_ROPE_TYPES)
    scaling.must_be("type", *_ROPE_TYPES)
    kind = scaling.text("rope_type", scaling.text("type", "default"))
    base = newer if "rope_theta" in newer else config
    rope: dict[str, object] = {
        "rope_type": kind,
        "rope_theta": base.number("rope_theta", 1.0, 1e12, theta),
    }
    for key in ("factor", "low_freq_factor", "high_freq_factor", "beta_fast", "beta_slow"):
        if key in scaling:
            rope[key] = scaling.number(key, 1e-6, 1e6)
    if "original_max_position_embeddings" in scaling:
        key = "original_max_position_embeddings"
        rope[key] = scaling.whole(key, 1, 1 << 24)
    return rope


def write_config(folder: Path, values: Mapping[str, object]) -> None:
    """Write the folder's config.json, all of it or none. Raises: `OSError`."""
    partial = folder / f".{CONFIG}.{os.getpid()}"
    partial.write_text(json.dumps(values, indent=1, allow_nan=False) + "\n", "utf-8")
    partial.replace(folder / CONFIG)
