"""What the model answers in each job: the same words for every system. Imports no framework.

A turn is (role, text). An answer is a text, or the calls of tools as (name, arguments).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

Turn: TypeAlias = tuple[str, str]
Calls: TypeAlias = list[tuple[str, dict[str, object]]]
Answer: TypeAlias = str | Calls


def _last(turns: Sequence[Turn], role: str = "user") -> str:
    return next((text for who, text in reversed(turns) if who == role), "")


def _since_user(turns: Sequence[Turn], role: str) -> int:
    """How many turns of a role came after the last question."""
    roles = [who for who, _ in turns]
    first = len(roles) - roles[::-1].index("user") if "user" in roles else 0
    return sum(who == role for who in roles[first:])


def _rag(turns: Sequence[Turn]) -> Answer:
    sources = re.findall(r"\[(\w+\.txt)\]", _last(turns))
    answer = {
        "answer": "Bees dance to show where food is.",
        "citations": [*sources[:1], "none.txt"],
    }
    return json.dumps(answer)


def _review(turns: Sequence[Turn]) -> Answer:
    prompt = _last(turns)
    return "reject: it evaluates text" if "eval(" in prompt and "security" in prompt else "accept"


def _agent(turns: Sequence[Turn]) -> Answer:
    return (
        [("find_order", {"order": 17})],
        [("pay", {"order": 17, "amount": 40})],
        "Order 17 is refunded.",
    )[_since_user(turns, "tool")]


def _chat(turns: Sequence[Turn]) -> Answer:
    names = [text.split()[-1] for who, text in turns if who == "user" and "My name is" in text]
    return f"You are {names[-1]}" if "my name?" in _last(turns) and names else "Hello"


def _prompts(turns: Sequence[Turn]) -> Answer:
    prompt = _last(turns)
    number = int(re.findall(r"\d+", prompt)[-1])
    careful = "step by step" in prompt
    return "even" if number % 2 == 0 or (not careful and number % 5 == 0) else "odd"


def _react(turns: Sequence[Turn]) -> Answer:
    return (
        [("add", {"a": 3, "b": 4})],
        [("multiply", {"a": 7, "b": 2})],
        "The result is 14.",
    )[_since_user(turns, "tool")]


def _handoff(turns: Sequence[Turn]) -> Answer:
    if "flights" in _last(turns, "system"):
        return "Booked a flight to Oslo."
    return [("transfer_to_flights", {})]


def _jokes(turns: Sequence[Turn]) -> Answer:
    prompt = _last(turns)
    if "subjects" in prompt:
        return json.dumps(["cats", "ants", "whales"])
    if "best" in prompt:
        return "1"
    return f"A joke about {prompt.split()[-1]}"


def _essay(turns: Sequence[Turn]) -> Answer:
    prompt = _last(turns)
    if prompt.startswith("Criticise"):
        return "good" if "draft 3" in prompt else "too short"
    drafts = re.findall(r"draft (\d)", prompt)
    return f"draft {int(drafts[-1]) + 1 if drafts else 1}"


def _question(turns: Sequence[Turn]) -> Answer:
    prompt = _last(turns)
    if prompt.startswith("Ask"):
        return "What is the capital of France?"
    return "correct" if "Paris" in prompt else "wrong"


def _refund(_: Sequence[Turn]) -> Answer:
    return json.dumps({"order": 17, "amount": 40})


SCRIPTS: Final[Mapping[str, Callable[[Sequence[Turn]], Answer]]] = {
    "rag": _rag,
    "review": _review,
    "agent": _agent,
    "chat": _chat,
    "fanout": lambda _: "",
    "prompts": _prompts,
    "react": _react,
    "handoff": _handoff,
    "jokes": _jokes,
    "refund": _refund,
    "essay": _essay,
    "question": _question,
}
"""By job."""
