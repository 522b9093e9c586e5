"""Skeleton-of-Thought: skeleton, points side by side, concatenation. Knows no server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from weft.core.errors import BuildError, ReasoningError
from weft.core.ports import ModelClient
from weft.engine import Inputs, NodeContext, Work
from weft.reasoning.answering import SPENT
from weft.reasoning.options import ThinkOptions
from weft.reasoning.question import Question
from weft.reasoning.reading import read_points
from weft.reasoning.settings import read_settings
from weft.reasoning.skeleton.prompts import (
    direct_messages,
    point_messages,
    route_messages,
    skeleton_messages,
)
from weft.reasoning.skeleton.suitability import read_route, unsuitable
from weft.reasoning.thought import Thought
from weft.reasoning.thread.asking import Asking, Job, stopping
from weft.reasoning.thread.said import Said

_ROUTERS: Final = ("model", "rules", "off")
_LEAST_POINTS: Final = 2
_TOKENS_PER_POINT: Final = 24
_POINT_CHARS: Final = 160
_ROUTE_TOKENS: Final = 8


class SkeletonStrategy:
    """`make_strategy("skeleton", ...)`.

    Settings: `points`, how many at most; `router`: "rules" (patterns of the question), "model"
    (the rules, and then the model), or "off". A question that does not suit points, and one whose
    skeleton has fewer than two, is answered in one go.

    Raises: `BuildError` for settings that are none.
    """

    name = "skeleton"

    def __init__(self, model: ModelClient, options: ThinkOptions) -> None:
        settings = read_settings(self.name, options.settings, {"points": 10, "router": "model"})
        if settings["router"] not in _ROUTERS:
            raise BuildError(
                f"skeleton has no router {settings['router']!r}",
                hint=f"there are: {', '.join(_ROUTERS)}",
            )
        if settings["points"] < _LEAST_POINTS:
            raise BuildError(f"a skeleton has {_LEAST_POINTS} points or more")
        self._model = model
        self._options = options
        self._points: int = settings["points"]
        self._router: str = settings["router"]

    def work(self, question: Question) -> Work:
        """See `Strategy.work`."""

        async def work(context: NodeContext, _: Inputs) -> Thought:
            thread = await Asking.begin(context, self._model, self._options)
            return await self._answer(thread, question)

        return work

    async def _answer(self, thread: Asking, question: Question) -> Thought:
        against = await self._against(thread, question)
        if against:
            return await self._direct(thread, question, f"no skeleton: {against}")
        tokens = min(self._options.max_tokens, self._points * _TOKENS_PER_POINT)
        skeleton = await thread.ask(
            "skeleton",
            skeleton_messages(question, self._points),
            max_tokens=tokens,
            lead="1.",
            amend=stopping(f"\n{self._points + 1}."),
        )
        read = read_points(skeleton.text, most=self._points, chars=_POINT_CHARS)
        if len(read.points) < _LEAST_POINTS:
            why = skeleton.reason or f"the model's skeleton has {len(read.points)} points"
            return await self._direct(thread, question, f"no skeleton: {why}")
        share = min(self._options.max_tokens, thread.tokens_left // len(read.points))
        jobs = [
            (f"point{number}", _writing(question, read.points, number, share))
            for number in range(1, len(read.points) + 1)
        ]
        points = await thread.fork("points", jobs, role="point")
        texts = ["" if point is None else point.text for point in points]
        written = sum(map(bool, texts))
        if not written:
            reasons = dict.fromkeys(point.reason for point in points if point and point.reason)
            raise ReasoningError(f"no point was written: {'; '.join(reasons)}", hint=SPENT)
        why = f"{written} of {len(read.points)} points were written"
        if read.left_out:
            why += f"; {read.left_out} more were left out"
        if read.duplicates:
            why += f"; {read.duplicates} said again what another says"
        cut = written < len(texts) or any(point is None or point.cut for point in points)
        return _thought(thread, _joined(read.points, texts), why, cut=cut)

    async def _against(self, thread: Asking, question: Question) -> str:
        """Why the question is answered in one go; empty: it is not."""
        if self._router == "off":
            return ""
        against = unsuitable(question)
        if against or self._router == "rules":
            return against
        said = await thread.ask(
            "route", route_messages(question), max_tokens=_ROUTE_TOKENS, temperature=0.0
        )
        return "the model says that points do not suit it" if read_route(said.text) is False else ""

    async def _direct(self, thread: Asking, question: Question, why: str) -> Thought:
        said = await thread.ask("answer", direct_messages(question), schema=question.schema)
        if not said.ok:
            hint = SPENT if said.cut else None
            raise ReasoningError(f"there is no answer: {said.reason}", hint=hint)
        return _thought(thread, said.text, why, cut=said.cut)


def make(model: ModelClient, options: ThinkOptions) -> SkeletonStrategy:
    """See `weft.reasoning.strategies`."""
    return SkeletonStrategy(model, options)


def _writing(question: Question, points: Sequence[str], number: int, share: int) -> Job[Said]:
    async def write(thread: Asking) -> Said:
        lead = f"{number}. {points[number - 1]}:"
        said = await thread.ask(
            "write",
            point_messages(question, points, number),
            max_tokens=share,
            lead=lead,
            amend=stopping(f"\n{number + 1}."),
        )
        text = said.text.removeprefix(lead).strip()
        thread.returns(text)
        return replace(said, text=text)

    return write


def _joined(points: Sequence[str], texts: Sequence[str]) -> str:
    """The answer: every point with what was written for it, or alone where nothing was."""
    return "\n\n".join(
        f"{number}. **{point}**" + (f"\n{text}" if text else "")
        for number, (point, text) in enumerate(zip(points, texts, strict=True), 1)
    )


def _thought(thread: Asking, answer: str, why: str, *, cut: bool) -> Thought:
    tree, counts = thread.finish(answer, why)
    return Thought(answer, tree=tree, counts=counts, why=why, cut=cut)
