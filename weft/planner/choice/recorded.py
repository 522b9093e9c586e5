"""Measured losses in a file: one JSON object a line, `{"prompt": ..., "model": ..., "loss": ...}`.

Knows the file's form, not how the losses came about.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, Final

from weft.core.errors import BuildError
from weft.planner.choice.training import LossRow

_LONGEST_LINE: Final = 2**20


def read_rows(path: Path) -> list[LossRow]:
    """The rows of a file; empty lines are left out.

    Raises: `BuildError` that names the first line which is none.
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
