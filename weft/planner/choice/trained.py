"""A predictor with weights that were learnt from measured losses; kept as JSON.

Knows how to predict; `weft.planner.choice.training` learns.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from weft.core.errors import BuildError
from weft.planner.choice.features import features
from weft.planner.choice.ridge import value

_FORMAT: Final = "weft choice 1"
_WRONG: Final = (
    *(ValueError, TypeError, KeyError, AttributeError),
    *(OverflowError, RecursionError),
)
_MAX_BYTES: Final = 64 * 2**20
_MAX_DIMENSIONS: Final = 2**20


@dataclass(frozen=True, slots=True)
class Line:
    """The predictor of one model's loss: a mean, and a weight for each feature."""

    mean: float
    weights: tuple[float, ...]


class TrainedPredictor:
    """Implements `Predictor`: a linear function of hashed features for each model."""

    def __init__(self, lines: Mapping[str, Line], dimensions: int) -> None:
        self._lines = dict(lines)
        self._dimensions = dimensions

    @property
    def models(self) -> tuple[str, ...]:
        """The models it knows."""
        return tuple(self._lines)

    def losses(self, text: str) -> Mapping[str, float]:
        row = features(text, self._dimensions)
        return {name: line.mean + value(row, line.weights) for name, line in self._lines.items()}

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        path.write_text(json.dumps(self._data()), "utf-8")

    @classmethod
    def load(cls, path: Path) -> TrainedPredictor:
        """Read what `save` wrote. Raises: `BuildError`."""
        try:
            with path.open("rb") as stream:
                text = stream.read(_MAX_BYTES + 1)
        except OSError as error:
            raise BuildError(f"cannot read {path}: {error.strerror}") from error
        if len(text) > _MAX_BYTES:
            raise BuildError(f"{path} is larger than {_MAX_BYTES:,} bytes")
        try:
            return cls._read(json.loads(text))
        except _WRONG as error:
            raise BuildError(
                f"{path.name} is no predictor of losses: {error}",
                hint="make one with weft.planner.choice.train(rows).save(path)",
            ) from error

    def _data(self) -> dict[str, Any]:
        lines = {
            name: {
                "mean": line.mean,
                "weights": {str(i): float(f"{w:.6g}") for i, w in enumerate(line.weights) if w},
            }
            for name, line in self._lines.items()
        }
        return {"format": _FORMAT, "dimensions": self._dimensions, "models": lines}

    @classmethod
    def _read(cls, data: Any) -> TrainedPredictor:
        if data["format"] != _FORMAT:
            raise ValueError(f"its format is {data['format']!r}")
        dimensions = data["dimensions"]
        if type(dimensions) is not int or not 0 < dimensions <= _MAX_DIMENSIONS:
            raise ValueError(f"dimensions are {dimensions!r}")
        lines = {name: _line(about, dimensions) for name, about in data["models"].items()}
        if not lines:
            raise ValueError("it knows no model")
        return cls(lines, dimensions)


def _line(about: Mapping[str, Any], dimensions: int) -> Line:
    weights = [0.0] * dimensions
    for index, weight in about["weights"].items():
        if not 0 <= int(index) < dimensions:
            raise ValueError(f"there is no feature {index}")
        weights[int(index)] = _finite(weight)
    return Line(_finite(about["mean"]), tuple(weights))


def _finite(number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise TypeError(f"{number!r} is no number")
    if not math.isfinite(number):
        raise ValueError(f"{number} is not finite")
    return float(number)
