"""Groups answers of the same meaning, by the model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from weft.core.values import JsonSchema
from weft.reasoning.answers.number import number
from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.question import Question
from weft.reasoning.selection.prompts import group_messages
from weft.reasoning.thought import Sample

_MOST: Final = 40
_TOKENS_PER_ANSWER: Final = 8


async def group_answers(
    thread: ChatThread, question: Question, samples: Sequence[Sample]
) -> tuple[tuple[Sample, ...], str]:
    """`samples` with one key for all answers of the same meaning, and a note on the grouping.

    The model sees the different keys once, in the order of their first samples; a group has the key
    of its first. Different numbers never mean the same. Without a readable reply, and with over 40
    different answers, the keys stay unchanged.
    """
    keys = list(dict.fromkeys(sample.key for sample in samples if sample.key is not None))
    if len(keys) < 2 or all(number(key) is not None for key in keys):
        return tuple(samples), ""
    if len(keys) > _MOST:
        return tuple(samples), f"{len(keys)} different answers are too many to be grouped"
    reply = await thread.ask(
        "group",
        group_messages(question, keys),
        purpose="step",
        max_tokens=_TOKENS_PER_ANSWER * (len(keys) + 1),
        schema=_schema(len(keys)),
        temperature=0.0,
    )
    same = _read(reply.text, keys) if reply.ok else None
    if same is None:
        failed = reply.reason or "the reply could not be read"
        return tuple(samples), f"the answers were not grouped: {failed}"
    named = (
        sample if sample.key is None else replace(sample, key=same[sample.key])
        for sample in samples
    )
    return tuple(named), f"{len(keys)} different answers in {len(set(same.values()))} groups"


def _schema(count: int) -> JsonSchema:
    item = {"type": "integer", "minimum": 1, "maximum": count}
    return {"type": "array", "items": item, "minItems": count, "maxItems": count}


def _read(text: str, keys: Sequence[str]) -> Mapping[str, str] | None:
    """The key of each key's group; None: `text` is not a list of as many numbers."""
    begin, end = text.find("["), text.find("]")
    try:
        numbers = json.loads(text[begin : end + 1]) if 0 <= begin < end else None
    except ValueError:
        return None
    if not isinstance(numbers, list) or len(numbers) != len(keys):
        return None
    same: dict[str, str] = {}
    for place, first_number in enumerate(numbers):
        key = keys[place]
        earlier = type(first_number) is int and 1 <= first_number <= place
        first = same[keys[first_number - 1]] if earlier else key
        both = number(key) is not None and number(first) is not None
        same[key] = key if both else first
    return same
