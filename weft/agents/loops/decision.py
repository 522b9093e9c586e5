"""What a joiner decides when a round is over. Knows nothing of how it decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finish:
    """The question is answered. `value` has the shape that was asked for; `thought` says why."""

    value: Any
    thought: str = ""


@dataclass(frozen=True, slots=True)
class Replan:
    """Something is missing; `thought` says what, to whoever plans the next round."""

    thought: str
