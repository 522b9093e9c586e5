"""Skeleton-of-Thought (arXiv 2307.15337): a skeleton of points, written out in parallel.

After the router of its section 5: answers whose steps need one another, such as mathematics and
code, are not split. The prompts are ours; change `PROMPT_VERSION` with any word of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

from weft.core.errors import ReasoningError
from weft.core.ports import THOUGHT_HINT
from weft.core.values import Message
from weft.reasoning.chat.call import Generation
from weft.reasoning.chat.strategy import ChatStrategy
from weft.reasoning.chat.thread import ChatThread, Job, stop_before
from weft.reasoning.parsing import fence, read_points
from weft.reasoning.question import Question, conversation, question_text
from weft.reasoning.thought import Thought

PROMPT_VERSION: Final = "skeleton-1"

_ROUTE: Final = """\
You decide how a question is best answered. Reply with one letter.
A: by several points that can be written independently of one another, such as tips, reasons, \
aspects or a comparison
B: in one go, because each step needs the one before (a calculation, a proof, code, a story), or \
because a word or a sentence is enough"""

_SKELETON: Final = """\
You plan an answer. You do not write it: you write only its skeleton, {least} to {most} numbered \
points of 3 to 5 words each that together cover the question and do not overlap.

For the question "How do I keep bread fresh?" a skeleton is:
1. Store it in paper
2. Keep it off the fridge
3. Freeze what is left"""

_POINT: Final = """\
You write one point of an answer that several writers share. The skeleton says what each writer \
covers. Write only the point you are given, in one or two short sentences, and nothing that \
belongs to another point: no introduction, no conclusion."""


def route_messages(question: Question) -> tuple[Message, ...]:
    """Asks whether points suit the question: the answer is the letter A or B."""
    return conversation(question, _ROUTE, f"Question:\n{fence(question_text(question))}\n\nA or B?")


def skeleton_messages(question: Question, most: int) -> tuple[Message, ...]:
    """Asks for a skeleton of at most `most` points."""
    rules = _SKELETON.format(least=min(3, most), most=most)
    text = f"Question:\n{fence(question_text(question))}\n\nWrite the skeleton of the answer."
    return conversation(question, rules, text)


def point_messages(question: Question, points: Sequence[str], number: int) -> tuple[Message, ...]:
    """Asks for point `number`, from 1. The prompts of all points differ in the last line only."""
    listed = "\n".join(f"{place}. {point}" for place, point in enumerate(points, 1))
    text = (
        f"Question:\n{fence(question_text(question))}\n\nSkeleton:\n{fence(listed)}\n\n"
        f"Write point {number}: {points[number - 1]}"
    )
    return conversation(question, _POINT, text)


def direct_messages(question: Question) -> tuple[Message, ...]:
    """The question as it is."""
    return conversation(question, "", question_text(question))


_CODE: Final = (
    r"```|\bdef \w+\(|\b(?:in|using) (?:python|java|rust|sql|c\+\+)(?!\w)"
    r"|\b(?:write|implement|debug|refactor)\b.{0,60}"
    r"\b(?:code|function|program|script|class|query|regex)\b"
)
_CALCULATION: Final = (
    r"\d\s*[-+*/^=\u00d7\u00f7]\s*\d|\bhow (?:many|much|old|far|fast)\b|\\(?:frac|sum|int)\b"
    r"|\b(?:calculate|compute|solve|equation|probability that)\b"
)
_CHAIN: Final = r"\b(?:prove|proof|derive|step[- ]by[- ]step)\b"
_FLOWING: Final = r"\b(?:write|tell)\b.{0,30}\b(?:story|poem|song|novel|joke)\b"
_GIVEN: Final = r"\b(?:translate|summari[sz]e|rewrite|proofread)\b"
_SHORT: Final = r"\A\s*(?:who|when|where|which|is|are|was|were|does|do|did)\b.{0,80}\Z"
_UNSUITABLE: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), why)
    for pattern, why in (
        (_CODE, "code"),
        (_CALCULATION, "a calculation"),
        (_CHAIN, "steps that need one another"),
        (_FLOWING, "one flowing text"),
        (_GIVEN, "work on a given text"),
        (_SHORT, "a short answer"),
    )
)
_LETTER: Final = re.compile(r"\b([AB])\b")


def unsuitable(question: Question) -> str:
    """The reason why points do not suit `question`, in words; empty: there is none."""
    if question.schema is not None:
        return "it asks for one value of a given form"
    for pattern, why in _UNSUITABLE:
        if pattern.search(question.text):
            return f"it asks for {why}"
    return ""


def read_route(text: str) -> bool | None:
    """Whether a model finds that points suit the question; None: it does not say."""
    letter = _LETTER.search(text)
    return None if letter is None else letter[1] == "A"


_LEAST_POINTS: Final = 2
_TOKENS_PER_POINT: Final = 24
_POINT_CHARS: Final = 160
_ROUTE_TOKENS: Final = 8


class SkeletonStrategy(ChatStrategy):
    """Answers point by point. Settings: `points`, how many at most; `router`, the test of fitness.

    router: "rules" (patterns of the question), "model" (the rules, then the model), or "off". A
    question that does not suit points, or whose skeleton has fewer than two, is answered in one
    call.
    """

    name = "skeleton"
    defaults: ClassVar = {"points": 10, "router": "model"}
    least: ClassVar = {"points": _LEAST_POINTS}
    choices: ClassVar = {"router": ("model", "rules", "off")}

    async def think(self, thread: ChatThread, question: Question) -> Thought:
        objection = await self._objection(thread, question)
        if objection:
            return await self._direct(thread, question, f"no skeleton: {objection}")
        most: int = self.settings["points"]
        tokens = min(self.options.max_tokens, most * _TOKENS_PER_POINT)
        skeleton = await thread.ask(
            "skeleton",
            skeleton_messages(question, most),
            purpose="step",
            max_tokens=tokens,
            lead="1.",
            amend=stop_before(f"\n{most + 1}."),
        )
        read = read_points(skeleton.text, most=most, chars=_POINT_CHARS)
        if len(read.points) < _LEAST_POINTS:
            why = skeleton.reason or f"the model's skeleton has {len(read.points)} points"
            return await self._direct(thread, question, f"no skeleton: {why}")
        share = min(self.options.max_tokens, thread.tokens_left // len(read.points))
        jobs = [
            (f"point{number}", _write_job(question, read.points, number, share))
            for number in range(1, len(read.points) + 1)
        ]
        points = await thread.fork("points", jobs, role="point")
        texts = ["" if point is None else point.text for point in points]
        written = sum(map(bool, texts))
        if not written:
            reasons = dict.fromkeys(point.reason for point in points if point and point.reason)
            raise ReasoningError(f"no point was written: {'; '.join(reasons)}", hint=THOUGHT_HINT)
        why = f"{written} of {len(read.points)} points were written"
        if read.left_out:
            why += f"; {read.left_out} more were left out"
        if read.duplicates:
            why += f"; {read.duplicates} said again what another says"
        cut = written < len(texts) or any(point is None or point.cut for point in points)
        return thread.finish(_joined(read.points, texts), why, cut=cut)

    async def _objection(self, thread: ChatThread, question: Question) -> str:
        """The reason to answer in one call; empty: there is none."""
        if self.settings["router"] == "off":
            return ""
        objection = unsuitable(question)
        if objection or self.settings["router"] == "rules":
            return objection
        reply = await thread.ask(
            "route",
            route_messages(question),
            purpose="probe",
            max_tokens=_ROUTE_TOKENS,
            temperature=0.0,
        )
        unsuited = read_route(reply.text) is False
        return "the model says that points do not suit it" if unsuited else ""

    async def _direct(self, thread: ChatThread, question: Question, why: str) -> Thought:
        reply = await thread.ask("answer", direct_messages(question), schema=question.schema)
        if not reply.ok:
            raise ReasoningError(f"there is no answer: {reply.reason}", hint=reply.hint)
        return thread.finish(reply.text, why, cut=reply.cut)


def _write_job(
    question: Question, points: Sequence[str], number: int, share: int
) -> Job[Generation]:
    async def write(thread: ChatThread) -> Generation:
        lead = f"{number}. {points[number - 1]}:"
        reply = await thread.ask(
            "write",
            point_messages(question, points, number),
            purpose="conclusion",
            max_tokens=share,
            lead=lead,
            amend=stop_before(f"\n{number + 1}."),
        )
        text = reply.text.removeprefix(lead).strip()
        thread.returns(text)
        return replace(reply, text=text)

    return write


def _joined(points: Sequence[str], texts: Sequence[str]) -> str:
    """The answer: each point, followed by its text if there is one."""
    return "\n\n".join(
        f"{number}. **{point}**" + (f"\n{text}" if text else "")
        for number, (point, text) in enumerate(zip(points, texts, strict=True), 1)
    )
