"""Trains a predictor of losses from measured rows: (prompt, model, loss).

Tryage (arXiv 2308.11601) trains a language model for this. Ridge regression learns from a few
hundred rows in seconds, and predicts in a fraction of a millisecond. A file of rows is one JSON
object a line: `{"prompt": ..., "model": ..., "loss": ...}`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from weft.core.errors import BuildError
from weft.planner.choice.trained import (
    LinearLossModel,
    TrainedPredictor,
    Vector,
    features,
    ridge,
    value,
)

_STRENGTHS: Final = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
_HELD_OUT: Final = 5


@dataclass(frozen=True, slots=True)
class LossRow:
    """The measured loss of `model` on `prompt`."""

    prompt: str
    model: str
    loss: float


def train(
    rows: Iterable[LossRow],
    *,
    dimensions: int = 4096,
    strength: float | None = None,
    characters: bool = False,
    cautious: bool = False,
) -> TrainedPredictor:
    """A predictor for all models in `rows`.

    `strength` is that of the ridge; None: the best of a few on a held-out fifth of the prompts. The
    same rows give the same predictor. `characters`: see `features`. `cautious`: where features do
    not lower the squared error on held-out prompts by more than its standard error, which is the
    rule with few rows, only each model's mean is learnt (`abstains`).

    Raises: `BuildError` without rows.
    """
    by_model: dict[str, list[LossRow]] = {}
    for row in rows:
        by_model.setdefault(row.model, []).append(row)
    if not by_model:
        raise BuildError("there is nothing to learn from", hint="give rows of measured losses")
    vectors: dict[str, Vector] = {}
    for group in by_model.values():
        for row in group:
            if row.prompt not in vectors:
                vectors[row.prompt] = features(row.prompt, dimensions, characters=characters)
    chosen = _best(by_model, vectors, dimensions, cautious) if strength is None else strength
    lines = {name: _fit(group, vectors, dimensions, chosen) for name, group in by_model.items()}
    return TrainedPredictor(lines, dimensions, characters=characters)


def _best(
    by_model: dict[str, list[LossRow]],
    vectors: dict[str, Vector],
    dimensions: int,
    cautious: bool,
) -> float:
    """The strength with the least squared error on held-out prompts; infinite: the mean alone."""
    errors: dict[float, list[float]] = {each: [] for each in (*_STRENGTHS, math.inf)}
    for group in by_model.values():
        learnt = [row for row in group if not _is_held_out(row)]
        rest = [row for row in group if _is_held_out(row)]
        if not learnt or not rest:
            continue
        for strength, found in errors.items():
            line = _fit(learnt, vectors, dimensions, strength)
            found += (
                (line.mean + value(vectors[row.prompt], line.weights) - row.loss) ** 2
                for row in rest
            )
    best = min(_STRENGTHS, key=lambda strength: (sum(errors[strength]), -strength))
    if cautious and not _is_clear(
        [a - b for a, b in zip(errors[math.inf], errors[best], strict=True)]
    ):
        return math.inf
    return best


def _is_clear(gains: Sequence[float]) -> bool:
    """Whether the mean of `gains` is above its standard error; two at least are needed."""
    count = len(gains)
    if count < 2:
        return False
    mean = sum(gains) / count
    variance = sum((gain - mean) ** 2 for gain in gains) / (count - 1)
    return mean > math.sqrt(variance / count)


def _is_held_out(row: LossRow) -> bool:
    return crc32(row.prompt.encode("utf-8", "surrogatepass")) % _HELD_OUT == 0


def _fit(
    rows: Sequence[LossRow], vectors: dict[str, Vector], dimensions: int, strength: float
) -> LinearLossModel:
    mean = sum(row.loss for row in rows) / len(rows)
    if math.isinf(strength):
        return LinearLossModel(mean, (0.0,) * dimensions)
    weights = ridge(
        [vectors[row.prompt] for row in rows],
        [row.loss - mean for row in rows],
        dimensions,
        strength,
    )
    return LinearLossModel(mean, tuple(weights))


_LONGEST_LINE: Final = 2**20


def read_rows(path: Path) -> list[LossRow]:
    """The rows of a file, without empty lines.

    Raises: `BuildError` with the number of the first malformed line.
    """
    rows = []
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    rows.append(_row(line, f"{path.name}:{number}"))
    except OSError as error:
        raise BuildError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BuildError(f"{path.name} is not UTF-8 text") from error
    return rows


def _row(line: str, place: str) -> LossRow:
    if len(line) > _LONGEST_LINE:
        raise BuildError(f"{place}: a line of more than {_LONGEST_LINE:,} characters")
    try:
        match json.loads(line):
            case {"prompt": str(prompt), "model": str(model), "loss": int() | float() as loss}:
                return LossRow(prompt, model, _finite(loss))
    except (ValueError, OverflowError, RecursionError) as error:
        raise BuildError(f"{place}: {error}") from error
    hint = '{"prompt": "...", "model": "small", "loss": 0.4}'
    raise BuildError(f"{place}: this is no row of a loss", hint=hint)


def _finite(loss: Any) -> float:
    if isinstance(loss, bool) or not math.isfinite(loss):
        raise ValueError(f"the loss {loss} is no number")
    return float(loss)
