"""An error as data. See `weft.core.errors` for the exceptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Stage = Literal["build", "run", "tool", "model", "serve", "internal"]


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as data: the fields of a `WeftError`, without the exception and its traceback."""

    error: str
    message: str
    stage: Stage = "run"
    retryable: bool = False
    hint: str | None = None

    def __str__(self) -> str:
        return f"{self.error}: {self.message}" + (f" ({self.hint})" if self.hint else "")
