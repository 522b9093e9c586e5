"""One finding of `weft doctor`. Knows no finding in particular."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "missing", "broken"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, how it is, what was found, and what to type where it is not ok.

    `serves` marks what can run models, as soon as it is ok.
    """

    name: str
    status: Status
    found: str
    advice: str = ""
    serves: bool = False
