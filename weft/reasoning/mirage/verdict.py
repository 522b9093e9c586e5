"""Which chains are believed: a model's verdict, within what their evidence allows. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from weft.reasoning.mirage.prompts import Finding

_LINE: Final = re.compile(
    r"^\W{0,8}chain ?(\d{1,3})\W{0,8}(keep|drop)\b", re.IGNORECASE | re.MULTILINE
)


def believed(findings: Sequence[Finding], verdict: str) -> tuple[int, ...]:
    """The places of the findings that are kept, from 0, in order.

    A chain that the verdict drops is out, unless that would leave none with evidence while there
    is some: then all that have evidence stay. A chain without an answer is always out, and when
    nothing else is left, all are kept.
    """
    dropped = {int(number) - 1 for number, word in _LINE.findall(verdict) if word.lower() == "drop"}
    answered = [place for place, finding in enumerate(findings) if finding.answer]
    kept = [place for place in answered if place not in dropped]
    if not any(findings[place].cited for place in kept):
        kept = [place for place in answered if findings[place].cited] or kept
    return tuple(kept or answered or range(len(findings)))
