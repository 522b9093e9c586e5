"""Plans that show a model how it is done: side by side, maps, conditions, fields. Reads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from weft.core.values import JsonSchema, ToolSpec


@dataclass(frozen=True, slots=True)
class Example:
    """A question, the tools there are for it, and the plan in canonical text."""

    question: str
    tools: tuple[ToolSpec, ...]
    plan: str


def _object(members: dict[str, Any], optional: Sequence[str] = ()) -> JsonSchema:
    required = [name for name in members if name not in optional]
    return {"type": "object", "properties": members, "required": required}


_TEXT: Final = {"type": "string"}
_NUMBER: Final = {"type": "number"}
_COUNT: Final = {"type": "integer"}
_MAILS: Final = {"type": "array", "items": _object({"sender": _TEXT, "text": _TEXT})}

EXAMPLES: Final = (
    Example(
        "How many more people live in Lima than in Quito, and how warm is it in both?",
        (
            ToolSpec(
                "population",
                "How many people live in a city.",
                _object({"city": _TEXT}),
                _object({"people": _COUNT, "year": _COUNT}),
            ),
            ToolSpec(
                "weather",
                "The weather in a city now.",
                _object({"city": _TEXT, "unit": {"enum": ["C", "F"]}}, ["unit"]),
                _object({"degrees": _NUMBER, "sky": _TEXT}),
            ),
            ToolSpec("subtract", "a - b", _object({"a": _NUMBER, "b": _NUMBER}), _NUMBER),
        ),
        """\
1. population(city="Lima")
2. population(city="Quito")
3. weather(city="Lima")
4. weather(city="Quito")
5. subtract(a=$1.people, b=$2.people)
6. join($5, $3.degrees, $4.degrees)
""",
    ),
    Example(
        "Summarize the unread mails in Bills. If there are more than 10, "
        'tell Ann to "pay" the $50 bill.',
        (
            ToolSpec(
                "read_mails",
                "The mails in a folder.",
                _object({"folder": _TEXT, "unread": {"type": "boolean"}}, ["unread"]),
                _object({"mails": _MAILS, "count": _COUNT}),
            ),
            ToolSpec("summarize", "A text in one sentence.", _object({"text": _TEXT}), _TEXT),
            ToolSpec(
                "send_message", "Tell a person.", _object({"person": _TEXT, "message": _TEXT})
            ),
        ),
        """\
1. read_mails(folder="Bills", unread=true)
2. summarize(text=$item.text) for each $1.mails
3. send_message(person="Ann", message="Please \\"pay\\" the $50 bill.") if $1.count > 10
4. join($2)
""",
    ),
)
"""What a planner is shown before the question."""
