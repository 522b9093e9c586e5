"""ParaThinker (arXiv 2509.04475): several thoughts about one question, then one summary of all.

A model without thought tokens gets one call for each thought, and one more that reads the results
(the second phase as in A2R).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

from weft.core.errors import BuildError
from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.protocols.blocks import THINK, without
from weft.reasoning.protocols.synthesis import synthesis
from weft.reasoning.question import Question, conversation, question_text
from weft.reasoning.runtime import strategy_of
from weft.reasoning.runtime.grammar import JoinMove, NewRootJoin, ProtocolGrammar, SpliceJoin
from weft.reasoning.runtime.moves import (
    ChildSpec,
    Continue,
    ControlTag,
    ForkMove,
    Move,
    Opening,
    ParsedOutput,
    Parts,
    ProtocolText,
    Return,
)
from weft.reasoning.runtime.moves import FinalAnswer as Answer
from weft.reasoning.runtime.thread import Thread

THOUGHTS: Final = 8
"""The number of thoughts that the published models have tokens for."""

LEAD: Final = "Having thought about this in several ways, I conclude that the final answer is "
_LOST: Final = (
    "the model has no tokens for thoughts: they differ by their seeds only, and the summary reads"
    " them as text of a new prompt, not as the states they left"
)
_LOST_FLAT: Final = (
    "thoughts are computed again one after the other before the summary, at positions that follow"
    " one another and in sight of one another"
)
_LOST_TRAINED: Final = (
    "the learned embeddings that tell thoughts at equal positions apart are not added to the cache"
)


class ParaThinker(ProtocolGrammar):
    """Forks `paths` thoughts. `first`: the end of one cuts off the others."""

    name = "parathinker"
    lost_by_prompt = _LOST
    lost_flat = _LOST_FLAT
    lost_trained = _LOST_TRAINED
    tags = (
        *(tag for i in range(1, THOUGHTS + 1) for tag in (f"<think{i}>", f"</think{i}>")),
        "<summary>",
        "</summary>",
    )
    also = THINK

    def __init__(self, paths: int = 4, *, first: bool = False, lead: str = LEAD) -> None:
        self._paths = paths
        self._first = first
        self.lead = lead

    @classmethod
    def configured(cls, options: ThinkOptions) -> Self:
        """Settings: `paths` (the width, at most 8), `first_finish` (no), and `lead`.

        `lead` begins the summary. Raises: `BuildError`.
        """
        defaults = {"paths": min(options.width, THOUGHTS), "first_finish": False, "lead": LEAD}
        given = read_settings(cls.name, options.settings, defaults)
        if not 1 <= given["paths"] <= THOUGHTS:
            raise BuildError(f"parathinker has 1 to {THOUGHTS} paths, not {given['paths']}")
        return cls(given["paths"], first=given["first_finish"], lead=given["lead"])

    def opening(self, question: Question, *, prompted: bool) -> Opening:  # noqa: ARG002
        return Opening(conversation(question, "", question_text(question)))

    def first(self, thread: Thread) -> Move:
        if thread.depth:
            return Continue()
        keys = [str(number) for number in range(1, self._paths + 1)]
        children = tuple(
            ChildSpec(
                key,
                header=() if thread.prompted else (ControlTag(f"<think{key}>"),),
                role="thought",
            )
            for key in keys
        )
        enough = 1 if self._first else None
        return ForkMove(children, enough=enough, appends=not thread.prompted)

    def stops(self, thread: Thread) -> tuple[str, ...]:
        if thread.prompted:
            return ()
        return (f"</think{thread.key}>", THINK[1]) if thread.depth else ("</summary>",)

    def classify(self, thread: Thread, output: ParsedOutput) -> Move:
        if thread.depth:
            return Return(thread.text)
        return Continue() if output.ended == "length" else Answer(self.answer(thread))

    def close(self, child: Thread) -> Parts:
        tag = f"</think{child.key}>"
        return () if child.prompted or child.text.endswith(tag) else (ControlTag(tag),)

    def join(self, parent: Thread, children: Sequence[Thread]) -> JoinMove:
        if parent.prompted:
            return NewRootJoin(synthesis(parent, children))
        return SpliceJoin(tuple(children), (ControlTag("<summary>"), ProtocolText(self.lead)))

    def conclude(self, thread: Thread) -> Parts:
        if thread.prompted:
            return (ProtocolText("\n\nFinal answer: "),)
        begun = "<summary>" in thread.text
        return (
            (ProtocolText(f"\n{self.lead}"),)
            if begun
            else (ControlTag("<summary>"), ProtocolText(self.lead))
        )

    def answer(self, thread: Thread) -> str:
        _, begun, summary = thread.text.rpartition("<summary>")
        answer = summary if begun else thread.text.rpartition(THINK[1])[2]
        return without(answer.removeprefix(self.lead) if begun else answer, self.tags)


make = strategy_of(ParaThinker.configured)
