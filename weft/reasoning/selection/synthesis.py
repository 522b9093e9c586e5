"""A final thread that reads all samples and answers (as in A2R and ParaThinker)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from weft.reasoning.answers import Reader, answer_key
from weft.reasoning.chat.thread import ChatThread
from weft.reasoning.question import Question
from weft.reasoning.selection.majority import Majority
from weft.reasoning.selection.prompts import EXCERPT_CHARS, excerpt, synthesis_messages
from weft.reasoning.selection.selector import Selection
from weft.reasoning.thought import Sample

_CHARS_PER_TOKEN: Final = 3


class SynthesisSelector:
    """The model reads the samples, shortened to fit its window, and writes the answer.

    The shortest sample of each answer comes first. When the call fails, the majority decides.
    """

    name = "synthesis"

    def __init__(self, tokens: int, read: Reader = answer_key) -> None:
        self._tokens = tokens
        self._read = read

    async def select(
        self, thread: ChatThread, question: Question, samples: Sequence[Sample]
    ) -> Selection:
        """See `Selector.select`. `index` is the shortest sample with the same answer, if any."""
        written = [sample for sample in samples if sample.text.strip()]
        room = max(0, thread.window - self._tokens) // 2 * _CHARS_PER_TOKEN
        chars = min(EXCERPT_CHARS, room // max(1, len(written)))
        attempts = [excerpt(sample.text, max(90, chars)) for sample in _diverse(written)]
        messages = synthesis_messages(question, attempts)
        reply = await thread.ask(
            "synthesis",
            messages,
            purpose="conclusion",
            max_tokens=self._tokens,
            schema=question.schema,
            temperature=0.0,
        )
        if not reply.ok or not written:
            chosen = await Majority().select(thread, question, samples)
            failed = reply.reason or "it wrote nothing"
            return replace(chosen, why=f"{chosen.why}; the synthesis failed: {failed}")
        key = self._read(reply.text, reply.status == "finished")
        same = [sample for sample in written if key is not None and sample.key == key]
        index = min(same, key=lambda s: (s.tokens, s.index)).index if same else None
        why = f"written after reading {len(attempts)} samples, {len(same)} of which say the same"
        return Selection(index, key, why, reply.text, cut=reply.cut and key is None)


def _diverse(samples: Sequence[Sample]) -> list[Sample]:
    """The shortest sample of each answer, then the others; each part by length."""
    ordered = sorted(samples, key=lambda sample: (sample.tokens, sample.index))
    first: dict[str | None, int] = {}
    for sample in ordered:
        first.setdefault(sample.key, sample.index)
    return sorted(ordered, key=lambda sample: first[sample.key] != sample.index)
