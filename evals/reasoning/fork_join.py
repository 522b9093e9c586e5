"""A tree of one fork, and the same length of text in one request: by plain requests of token ids,
and as a protocol for the runtime. Answers have to go on to their limits (`ignore_eos`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass

from weft.core.ports import ModelClient, ModelRequest, Sampling, Tokenizing, complete
from weft.reasoning.question import Question
from weft.reasoning.runtime.grammar import AppendJoin, ProtocolGrammar
from weft.reasoning.runtime.moves import (
    ChildSpec,
    Continue,
    FinalAnswer,
    ForkMove,
    Move,
    Opening,
    ParsedOutput,
    Parts,
    ProtocolText,
    Return,
    pieces_text,
)
from weft.reasoning.runtime.thread import Thread

_WORDS = ("river", "stone", "market", "winter", "letter", "garden", "silver", "engine", "number")
_WORDS += ("window", "ocean", "paper", "forest", "clock", "bridge", "summer", "picture", "history")


@dataclass(frozen=True, slots=True)
class Shape:
    """`prompt` tokens come before all; the parent writes `before` the fork and `after` the join.

    Each of the `width` children, at most 10, reads a header and writes `child` tokens of its own.
    """

    width: int
    prompt: int = 576
    before: int = 64
    child: int = 96
    after: int = 64

    @property
    def generated(self) -> int:
        """Tokens that a model writes, the headers left out."""
        return self.before + self.width * self.child + self.after

    @property
    def critical_path(self) -> int:
        """The parent's tokens and those of one child."""
        return self.before + self.child + self.after


class OneFork(ProtocolGrammar):
    """The same tree as a protocol: the root forks once, and goes on after what its children wrote.

    The prompt is the question's text.
    """

    name = "one fork"

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def opening(self, question: Question, *, prompted: bool) -> Opening:  # noqa: ARG002
        return Opening(parts=(ProtocolText(question.text),))

    def first(self, thread: Thread) -> Move:
        return Continue() if thread.depth else Continue(max_tokens=self._shape.before)

    def classify(self, thread: Thread, output: ParsedOutput) -> Move:
        if thread.depth:
            return Return(thread.text)
        if thread.rounds:
            return FinalAnswer(output.text)
        keys = [str(number) for number in range(self._shape.width)]
        limit = self._shape.child
        return ForkMove(
            tuple(ChildSpec(key, header=_header(key), max_tokens=limit) for key in keys)
        )

    def join(self, parent: Thread, children: Sequence[Thread]) -> AppendJoin:  # noqa: ARG002
        parts = [part for child in children for part in (*_header(child.key), child.body)]
        return AppendJoin(tuple(parts), Continue(max_tokens=self._shape.after))

    def conclude(self, thread: Thread) -> Parts:  # noqa: ARG002
        return ()


def _header(key: str) -> Parts:
    return (ProtocolText(f"\n\nPart {key}:"),)


async def headers(model: Tokenizing, shape: Shape) -> list[tuple[int, ...]]:
    """What the children of a shape begin with."""
    texts = [pieces_text(_header(str(number))) for number in range(shape.width)]
    return [await model.encode(text) for text in texts]


async def words(model: Tokenizing, tokens: int, seed: int) -> tuple[int, ...]:
    """So many tokens of a text that no other seed gives."""
    draw = random.Random(seed)
    text = " ".join(draw.choice(_WORDS) for _ in range(tokens))
    return (await model.encode(text))[:tokens]


async def fork_join(
    model: ModelClient, shape: Shape, prompt: tuple[int, ...], begun: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """Write, fork, join by appending what all children wrote, write on. The whole context."""
    trunk = await written(model, prompt, shape.before)
    wholes = await fork(model, shape, trunk, begun)
    return await written(model, sum((whole[len(trunk) :] for whole in wholes), trunk), shape.after)


async def fork(
    model: ModelClient, shape: Shape, trunk: tuple[int, ...], begun: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """The contexts of the children of `trunk` at their ends, side by side."""
    async with asyncio.TaskGroup() as group:
        children = [
            group.create_task(written(model, (*trunk, *header), shape.child)) for header in begun
        ]
    return [child.result() for child in children]


async def written(model: ModelClient, context: tuple[int, ...], tokens: int) -> tuple[int, ...]:
    """`context` and so many tokens more. Raises: `ValueError` when others came."""
    request = ModelRequest(
        prompt_token_ids=context,
        sampling=Sampling(max_tokens=tokens, temperature=0),
        cache_prefix=f"tree {hash(context[:64])}",
    )
    answer = await complete(model, request)
    if len(answer.token_ids) != tokens:
        raise ValueError(f"asked for {tokens} tokens, got {len(answer.token_ids)}")
    return (*context, *answer.token_ids)
