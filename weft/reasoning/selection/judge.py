"""A model that compares two samples, in both orders, since models favour a place. Knows no vote."""

from __future__ import annotations

import re
from typing import Final

from weft.core.values import JsonSchema
from weft.reasoning.question import Question
from weft.reasoning.selection.prompts import EXCERPT_CHARS, excerpt, judge_messages
from weft.reasoning.thought import Sample
from weft.reasoning.thread.asking import Asking

_SCHEMA: Final[JsonSchema] = {"enum": ["A", "B", "C"]}
_LETTER: Final = re.compile(r"\b([ABC])\b")


class ModelJudge:
    """Implements `Distinguisher`: 1, -1, or 0 where the two orders disagree."""

    async def compare(
        self, thread: Asking, question: Question, one: Sample, other: Sample
    ) -> float:
        """See `Distinguisher.compare`."""
        ahead = await self._ahead(thread, "forth", question, one, other)
        ahead -= await self._ahead(thread, "back", question, other, one)
        return (ahead > 0) - (ahead < 0)

    async def _ahead(
        self, thread: Asking, name: str, question: Question, one: Sample, other: Sample
    ) -> int:
        chars = EXCERPT_CHARS // 2
        messages = judge_messages(question, excerpt(one.text, chars), excerpt(other.text, chars))
        reply = await thread.ask(name, messages, schema=_SCHEMA, temperature=0.0)
        found = _LETTER.findall(reply.text) if reply.ok else []
        return {"A": 1, "B": -1}.get(found[-1] if found else "C", 0)
