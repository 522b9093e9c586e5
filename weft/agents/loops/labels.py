"""Text in which lines begin with a label: `Thought:`, `Call:`, `Replan:`, `Answer:`.

Knows the labels, not what stands behind them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_LABEL: Final = re.compile(
    r"^[ \t]*[*_]{0,2}(thought|call|action|replan|(?:final )?answer)[*_]{0,2}[ \t]*:[*_]{0,2}",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """What stands behind each label; of thoughts the first."""

    thought: str = ""
    calls: tuple[str, ...] = ()
    replan: str | None = None
    answer: str | None = None


def labelled(text: str) -> Labelled | None:
    """The parts of `text`, or None where no line has a label. An answer goes on to the end."""
    thought, replan, answer = "", None, None
    calls: list[str] = []
    found = list(_LABEL.finditer(text))
    for place, label in enumerate(found):
        end = found[place + 1].start() if place + 1 < len(found) else len(text)
        part = text[label.end() : end].strip()
        match label[1].lower():
            case "thought":
                thought = thought or part
            case "call" | "action":
                calls.append(part)
            case "replan":
                replan = part if replan is None else replan
            case _:
                answer = text[label.end() :].strip()
                break
    return Labelled(thought, tuple(calls), replan, answer) if found else None
