"""A grammar that does everything a grammar may, and a model that writes anything."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.core.errors import ModelRequestError, ModelUnavailable
from weft.core.ports import ModelRequest
from weft.core.values import Message
from weft.reasoning.question import Question
from weft.reasoning.runtime.grammar import (
    AppendJoin,
    JoinMove,
    NewRootJoin,
    ProtocolGrammar,
    ReplaceJoin,
    SpliceJoin,
)
from weft.reasoning.runtime.moves import (
    ChildSpec,
    Continue,
    ControlTag,
    FinalAnswer,
    ForkMove,
    Inherit,
    Malformed,
    Move,
    Opening,
    ParsedOutput,
    Parts,
    ProtocolText,
    Return,
    Sync,
    UntrustedText,
)
from weft.reasoning.runtime.thread import Thread
from weft.testing import TokenModel, TokenReply

TAGS = ("<fork>", "</fork>", "<path>", "</path>", "<sync/>", "<end/>")


@dataclass(frozen=True)
class Wildness:
    """What the grammar does at a fork and at a join."""

    join: str = "append"
    inherit: Inherit = "full"
    enough: int | None = None
    detach: bool = False
    appends: bool = True
    first: bool = False
    timeout_s: float | None = None
    then_fork: bool = False


@dataclass
class Wild(ProtocolGrammar):
    """`joins` keeps (thread, the keys it asked for, the keys it was given) of every join."""

    name = "wild"
    tags = TAGS
    wildness: Wildness = Wildness()
    joins: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)

    def opening(self, question: Question, *, prompted: bool) -> Opening:
        return Opening((Message("user", question.text),))

    def first(self, thread: Thread) -> Move:
        if self.wildness.first and thread.depth == 0:
            return self._fork(thread, ["1", "2", "2", "3"])
        return Continue()

    def stops(self, thread: Thread) -> tuple[str, ...]:
        return ("</fork>", "<sync/>") if thread.depth == 0 else ("</fork>", "</path>", "<sync/>")

    def classify(self, thread: Thread, output: ParsedOutput) -> Move:
        if output.stop == "<sync/>":
            return Sync()
        if output.stop == "</fork>":
            written = "".join(p for p in output.after("<fork>") if isinstance(p, str))
            if "?" in written:
                return Malformed("a question", (ProtocolText("!"),))
            return self._fork(thread, re.findall(r"\d", written))
        if output.ended == "length":
            return Continue() if thread.depth == 0 else Return(thread.text)
        return FinalAnswer(thread.text) if thread.depth == 0 else Return(thread.text)

    def _fork(self, thread: Thread, keys: Sequence[str]) -> ForkMove:
        how = self.wildness
        thread.memory.setdefault("asked", []).append(tuple(dict.fromkeys(keys)))
        children = tuple(
            ChildSpec(
                key,
                how.inherit,
                (ProtocolText("\n"), ControlTag("<path>"), ProtocolText(f"{key}:")),
                (Message("user", f"part {key}"),) if how.inherit == "none" else (),
                timeout_s=how.timeout_s,
            )
            for key in keys
        )
        return ForkMove(children, how.enough, how.detach, how.appends)

    def close(self, child: Thread) -> Parts:
        return () if child.text.endswith("</path>") else (ControlTag("</path>"),)

    def join(self, parent: Thread, children: Sequence[Thread]) -> JoinMove:
        keys = tuple(child.key for child in children)
        asked = tuple(key for part in parent.memory["asked"] for key in part)
        self.joins.append((parent.id, asked, keys))
        bodies = tuple(child.body for child in children)
        then: Move = Continue()
        if self.wildness.then_fork:
            then = self._fork(parent, ["7", "8"])
        match self.wildness.join:
            case "append":
                return AppendJoin(
                    (ProtocolText("["), *bodies, ControlTag("<end/>"), ProtocolText("]")), then
                )
            case "splice":
                return SpliceJoin(tuple(children), (ControlTag("<end/>"),), then)
            case "replace":
                return ReplaceJoin(
                    "<fork>", (UntrustedText("".join(c.text for c in children), 64),), then
                )
            case _:
                said = "\n".join(child.safe_text for child in children)[:200]
                return NewRootJoin(Opening((Message("user", said),), (ProtocolText("so "),)), then)


def scripted(seed: int, fragments: Sequence[str], trouble: float) -> object:
    """A script that writes `fragments` at random; always the same for one prompt and seed."""

    def script(ids: tuple[int, ...], request: ModelRequest) -> TokenReply:
        draw = random.Random(hash((seed, ids, request.sampling.seed)))
        text = "".join(draw.choice(fragments) for _ in range(draw.randrange(6)))
        if draw.random() >= trouble:
            return TokenReply(text, per_token_s=draw.choice([0.0, 0.1, 1.0]))
        return draw.choice(
            [
                TokenReply(text, endless=True),
                TokenReply(text, error=ModelUnavailable("down")),
                TokenReply(text, break_after_tokens=draw.randrange(5)),
                TokenReply(""),
            ]
        )

    return script


class WithoutBars(TokenModel):
    """A model whose vocabulary has `|` in special tokens only: other texts with one are refused."""

    async def encode(self, text: str, *, special: bool = False) -> tuple[int, ...]:
        if "|" in text and not special:
            raise ModelRequestError("no token spells '|'")
        return await super().encode(text, special=special)

    async def encode_chat(
        self,
        messages: tuple[Message, ...],
        *,
        chat_template_kwargs: Mapping[str, Any] | None = None,
    ) -> tuple[int, ...]:
        for message in messages:
            await self.encode(message.content)
        return await super().encode_chat(messages, chat_template_kwargs=chat_template_kwargs)


def model_of(
    seed: int,
    fragments: Sequence[str],
    *,
    special: bool,
    trouble: float = 0.2,
    context_tokens: int | None = None,
    placement: bool = False,
    hides_token_ids: bool = False,
    spells_all: bool = True,
) -> TokenModel:
    return (TokenModel if spells_all else WithoutBars)(
        scripted(seed, fragments, trouble),  # type: ignore[arg-type]
        tags=TAGS if special else (),
        context_tokens=context_tokens,
        placement=placement,
        hides_token_ids=hides_token_ids,
        per_token_s=0.1,
        prefill_s=0.01,
    )
