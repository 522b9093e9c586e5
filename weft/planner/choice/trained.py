"""A predictor of losses: ridge regression on hashed words and characters, saved as JSON.

The hashing trick (Weinberger et al. 2009): indexes and signs come from a hash, so equal texts have
equal vectors on every machine. The weights w minimise |Xw - y|^2 + strength * |w|^2, found by
conjugate gradients on the normal equations, which never form a matrix.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from weft.core.errors import BuildError

_LONGEST: Final = 20_000
_RUN: Final = 3
_WORD: Final = re.compile(r"\d+|\w+|[^\w\s]")
Vector = Mapping[int, float]


def features(text: str, dimensions: int, *, characters: bool = False) -> Vector:
    """The unit vector of `text`: its words, pairs of words and shape; indexes are below
    `dimensions`. `characters`: and runs of three characters inside of words, with their ends.
    """
    text = text[:_LONGEST]
    words = ["#" if word.isdigit() else word.lower() for word in _WORD.findall(text)]
    counts = Counter([*words, *map(" ".join, pairwise(words)), *_shape(text)])
    if characters:
        counts.update(_runs(words))
    vector: dict[int, float] = {}
    for name, count in counts.items():
        hashed = crc32(name.encode("utf-8", "surrogatepass"))
        sign = 1.0 if hashed & 0x80000000 else -1.0
        index = hashed % dimensions
        vector[index] = vector.get(index, 0.0) + sign * math.log1p(count)
    length = math.sqrt(sum(value * value for value in vector.values())) or 1.0
    return {index: value / length for index, value in vector.items() if value}


def _runs(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        marked = f"<{word}>"
        if len(word) >= _RUN:
            yield from (f"\0run {marked[at : at + _RUN]}" for at in range(len(marked) - _RUN + 1))


def _shape(text: str) -> Iterator[str]:
    """Buckets of the text's length and of its shares of digits, punctuation and capitals."""
    size = max(1, len(text))
    yield f"\0length {len(text).bit_length()}"
    for name, count in (
        ("figures", sum(c.isdigit() for c in text)),
        ("signs", sum(not c.isalnum() and not c.isspace() for c in text)),
        ("capitals", sum(c.isupper() for c in text)),
        ("lines", text.count("\n")),
    ):
        yield f"\0{name} {int(math.sqrt(count / size) * 10)}"


_ITERATIONS = 60
_CLOSE = 1e-10


def ridge(
    rows: Sequence[Vector], targets: Sequence[float], dimensions: int, strength: float
) -> list[float]:
    """The weights, of length `dimensions`. `strength` is positive."""
    if strength <= 0:
        raise ValueError(f"strength must be positive, got {strength}")
    weights = [0.0] * dimensions
    residual = _transposed(rows, targets, dimensions)
    direction = residual[:]
    left = first = _dot(residual, residual)
    for _ in range(_ITERATIONS):
        if left <= _CLOSE * first:
            break
        image = _normal(rows, direction, strength)
        step = left / _dot(direction, image)
        weights = [w + step * d for w, d in zip(weights, direction, strict=True)]
        residual = [r - step * i for r, i in zip(residual, image, strict=True)]
        before, left = left, _dot(residual, residual)
        direction = [r + left / before * d for r, d in zip(residual, direction, strict=True)]
    return weights


def value(row: Vector, weights: Sequence[float]) -> float:
    """The product of a sparse row and the weights."""
    return sum(weights[index] * entry for index, entry in row.items())


def _normal(rows: Sequence[Vector], vector: Sequence[float], strength: float) -> list[float]:
    made = _transposed(rows, [value(row, vector) for row in rows], len(vector))
    return [m + strength * v for m, v in zip(made, vector, strict=True)]


def _transposed(rows: Sequence[Vector], factors: Sequence[float], dimensions: int) -> list[float]:
    made = [0.0] * dimensions
    for row, factor in zip(rows, factors, strict=True):
        for index, entry in row.items():
            made[index] += entry * factor
    return made


def _dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


_FORMATS: Final = {"weft choice 1": False, "weft choice 2": True}
"""Whether features are of characters, too."""
_WRONG: Final = (
    *(ValueError, TypeError, KeyError, AttributeError),
    *(OverflowError, RecursionError),
)
_MAX_BYTES: Final = 64 * 2**20
_MAX_DIMENSIONS: Final = 2**20


@dataclass(frozen=True, slots=True)
class LinearLossModel:
    """The predictor of one model's loss: a mean, and a weight for each feature."""

    mean: float
    weights: tuple[float, ...]


class TrainedPredictor:
    """Implements `LossPredictor`: a linear function of hashed features for each model."""

    def __init__(
        self,
        lines: Mapping[str, LinearLossModel],
        dimensions: int,
        *,
        characters: bool = False,
    ) -> None:
        self._lines = dict(lines)
        self._dimensions = dimensions
        self._characters = characters

    @property
    def models(self) -> tuple[str, ...]:
        return tuple(self._lines)

    @property
    def abstains(self) -> bool:
        """Whether it has learnt no more than each model's mean: the best one is always chosen."""
        return not any(any(line.weights) for line in self._lines.values())

    def losses(self, text: str) -> Mapping[str, float]:
        row = features(text, self._dimensions, characters=self._characters)
        return {name: line.mean + value(row, line.weights) for name, line in self._lines.items()}

    def save(self, path: Path) -> None:
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
                hint="make one with `weft train-router`",
            ) from error

    def _data(self) -> dict[str, Any]:
        lines = {
            name: {
                "mean": line.mean,
                "weights": {str(i): float(f"{w:.6g}") for i, w in enumerate(line.weights) if w},
            }
            for name, line in self._lines.items()
        }
        format_ = next(name for name, each in _FORMATS.items() if each is self._characters)
        return {"format": format_, "dimensions": self._dimensions, "models": lines}

    @classmethod
    def _read(cls, data: Any) -> TrainedPredictor:
        if data["format"] not in _FORMATS:
            raise ValueError(f"its format is {data['format']!r}")
        dimensions = data["dimensions"]
        if type(dimensions) is not int or not 0 < dimensions <= _MAX_DIMENSIONS:
            raise ValueError(f"dimensions are {dimensions!r}")
        lines = {name: _line(about, dimensions) for name, about in data["models"].items()}
        if not lines:
            raise ValueError("it knows no model")
        return cls(lines, dimensions, characters=_FORMATS[data["format"]])


def _line(about: Mapping[str, Any], dimensions: int) -> LinearLossModel:
    weights = [0.0] * dimensions
    for index, weight in about["weights"].items():
        if not 0 <= int(index) < dimensions:
            raise ValueError(f"there is no feature {index}")
        weights[int(index)] = _finite(weight)
    return LinearLossModel(_finite(about["mean"]), tuple(weights))


def _finite(number: Any) -> float:
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise TypeError(f"{number!r} is no number")
    if not math.isfinite(number):
        raise ValueError(f"{number} is not finite")
    return float(number)
