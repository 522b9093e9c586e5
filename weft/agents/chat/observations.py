"""Formats results of calls as lines of a prompt; untrusted text appears only as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from weft.agents.agent import Observation
from weft.agents.chat.model_output import excerpt, text_of
from weft.core.events import Outcome

RESULT_CHARS: Final = 4_000
"""The most characters of one result in a prompt."""

BRIEF_CHARS: Final = 200
"""The most characters of one result in a shortened conversation."""

CHANGED: Final = " (a person changed this call before it was made)"
"""Follows a call that is not the one that the model requested."""

_NAME_CHARS: Final = 80
_ARGUMENT_CHARS: Final = 300
_REASON_CHARS: Final = 500


def format_observation(observation: Observation, chars: int = RESULT_CHARS) -> str:
    """`3. search(query="tea") -> "..."`: the call and its outcome, failures included."""
    changed = "" if observation.requested is None else CHANGED
    line = f"{observation.number}. {format_call(observation)}{changed}"
    return f"{line} -> {format_outcome(observation.outcome, chars)}"


def format_call(observation: Observation) -> str:
    """`search(query="tea")`: the call that was made."""
    given = observation.arguments.items()
    arguments = ", ".join(f"{_name(name)}={_json(value)}" for name, value in given)
    return f"{_name(observation.tool)}({arguments})"


def format_observations(
    observations: Sequence[Observation], chars: int, each: int = RESULT_CHARS
) -> list[str]:
    """`format_observation` of each, about `chars` long in all.

    To fit, the oldest results are shortened, and then left out with a note.
    """
    lines = [format_observation(observation, each) for observation in observations]
    total = sum(map(len, lines))
    for place, observation in enumerate(observations):
        if total <= chars:
            break
        line = format_observation(observation, min(each, BRIEF_CHARS))
        total += len(line) - len(lines[place])
        lines[place] = line
    missing = 0
    while total > chars and missing < len(lines) - 1:
        total -= len(lines[missing])
        missing += 1
    if missing:
        lines[:missing] = [f"({missing:,} earlier results are left out: they are too long)"]
    return lines


def format_outcome(outcome: Outcome, chars: int = RESULT_CHARS) -> str:
    """The result as JSON, at most about `chars` long; or the reason why there is none."""
    if outcome.ok:
        if isinstance(outcome.value, str):
            return json.dumps(excerpt(outcome.value, chars), ensure_ascii=False)
        return excerpt(text_of(outcome.value), chars)
    ended = {"skipped": "left out", "cancelled": "cancelled"}.get(outcome.status, "failed")
    if outcome.failure is None:
        return f"{ended} on purpose"
    return f"{ended}: {_line(excerpt(str(outcome.failure), min(chars, _REASON_CHARS)))}"


def _json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else text_of(value)
    return excerpt(text, _ARGUMENT_CHARS)


def _name(name: str) -> str:
    return _line(excerpt(name, _NAME_CHARS))


def _line(text: str) -> str:
    return " ".join(text.split())
