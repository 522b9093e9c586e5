"""What a retrieval chain does next, as a model writes it: look up, connect, or answer.

Two spellings are read: JSON and labelled lines. Runs nothing of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from weft.core.values import JsonSchema
from weft.reasoning.reading import labelled, object_with

_TEXT: Final = {"type": "string", "maxLength": 200}
_ANSWER: Final = {"type": "string", "minLength": 1, "maxLength": 400}
_ACTIONS: Final = ("look up", "connect", "answer")
_BETWEEN: Final = re.compile(r"\||->|\u2192|\band\b(?=[^|]*$)")
_LINE_CHARS: Final = 400
_QUOTED: Final = " \t\n\"'`*<>[]()."
_NAME_CHARS: Final = 120

STEP_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "thought": _TEXT,
        "action": {"type": "string", "enum": list(_ACTIONS)},
        "entity": _TEXT,
        "other": _TEXT,
        "answer": {"type": "string", "maxLength": 400},
    },
    "required": ["thought", "action", "entity", "other", "answer"],
    "additionalProperties": False,
}
"""What a model's step can be held to. `other` is a relation to look for, or a second entity."""

LAST_SCHEMA: Final[JsonSchema] = {
    "type": "object",
    "properties": {
        "thought": _TEXT,
        "action": {"type": "string", "enum": ["answer"]},
        "answer": _ANSWER,
    },
    "required": ["thought", "action", "answer"],
    "additionalProperties": False,
}
"""What a model's last step can be held to."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a chain. `answer` is set for "answer", else `entity` and perhaps `other`."""

    action: Literal["look up", "connect", "answer"]
    entity: str = ""
    other: str = ""
    answer: str = ""
    thought: str = ""


def read_step(text: str) -> Step | None:
    """The first step in `text`; None: there is none. A call counts more than an answer after it:

    the answer was written before its result was known.
    """
    written = object_with(("action",), text)
    if written is not None:
        return _from_json({key: str(value or "") for key, value in written.items()})
    found = labelled(text, ("Thought", "Look up", "Connect", "Answer"))
    thought = found.get("Thought", [""])[0]
    for label, action in (("Look up", "look up"), ("Connect", "connect")):
        for names in found.get(label, []):
            line = names.partition("\n")[0][:_LINE_CHARS]
            entity, _, other = _BETWEEN.sub("|", line, count=1).partition("|")
            if action == "look up":
                entity, _, other = line.partition("|")
            if _name(entity):
                return _call(action, entity, other, thought)
    if found.get("Answer", [""])[0]:
        return Step("answer", answer=found["Answer"][0], thought=thought)
    return None


def _from_json(written: dict[str, str]) -> Step | None:
    thought, action = written.get("thought", ""), written["action"].casefold().replace("_", " ")
    entity, other = written.get("entity", ""), written.get("other", "")
    if action in ("look up", "connect") and _name(entity):
        return _call(action, entity, other, thought)
    answer = written.get("answer", "").strip()
    return Step("answer", answer=answer, thought=thought) if answer else None


def _call(action: str, entity: str, other: str, thought: str) -> Step:
    connects = action == "connect" and _name(other)
    return Step("connect" if connects else "look up", _name(entity), _name(other), thought=thought)


def _name(text: str) -> str:
    return " ".join(text.strip(_QUOTED).split())[:_NAME_CHARS]
