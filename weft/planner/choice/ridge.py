"""Ridge regression of sparse rows: weights w that minimise |Xw - y|^2 + strength * |w|^2.

By conjugate gradients on the normal equations, which never form a matrix. Pure Python.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.planner.choice.features import Vector

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
