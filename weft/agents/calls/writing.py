"""Queries written from calls: varied templates, values as people write them."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.agents.calls.catalogue import CallTool

_FRAMES: Final = (
    "{}.",
    "Please {}.",
    "Could you {}?",
    "I need you to {}.",
    "I'm in the middle of something and have to {}.",
    "Would you be so kind as to {}? Thanks.",
    "{}, quickly.",
)
_JOINS: Final = (", and also ", "; then ", ". After that, ", ", and ")
_MENTIONS: Final = ("{} {}", "{}: {}", "the {} is {}", "{} should be {}", "use {} {}")


def words_of(name: str) -> str:
    """`startDate` and `start_date` as `start date`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|[_.]", " ", name).lower()


def literal(value: Any) -> str:
    """The value as a query has it."""
    return f"{value:g}" if isinstance(value, float) and value == int(value) else str(value)


def intent(tool: CallTool) -> str:
    """What the tool does, as a request: its first sentence, or the words of its name."""
    first = re.split(r"\.\s|\.$|\n", tool.description.strip())[0].strip()
    text = first or words_of(tool.name)
    return text[0].lower() + text[1:]


def write_query(calls: Sequence[tuple[CallTool, Mapping[str, Any]]], rng: random.Random) -> str:
    """A query that asks for these calls, in this order."""
    frame, join = rng.choice(_FRAMES), rng.choice(_JOINS)
    query = frame.format(join.join(_clause(tool, given, rng) for tool, given in calls))
    return query[0].upper() + query[1:]


def _clause(tool: CallTool, given: Mapping[str, Any], rng: random.Random) -> str:
    names = list(given)
    rng.shuffle(names)
    mention = rng.choice(_MENTIONS)
    said = ", ".join(mention.format(words_of(name), literal(given[name])) for name in names)
    if not said:
        return intent(tool)
    return f"{intent(tool)} ({said})" if rng.random() < 0.3 else f"{intent(tool)}, {said}"
