"""A2R, asymmetric two-stage reasoning: explore with several answers, then synthesise one.

Prompts only: runs as published with any model.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.ports import ModelClient
from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.protocols.blocks import THINK, without
from weft.reasoning.protocols.synthesis import synthesis
from weft.reasoning.question import Question, conversation, question_text
from weft.reasoning.runtime import GrammarStrategy
from weft.reasoning.runtime.grammar import NewRootJoin, ProtocolGrammar
from weft.reasoning.runtime.moves import (
    ChildSpec,
    Continue,
    ForkMove,
    Move,
    Opening,
    ParsedOutput,
    Return,
)
from weft.reasoning.runtime.moves import FinalAnswer as Answer
from weft.reasoning.runtime.thread import Thread
from weft.reasoning.strategy import Strategy


class A2r(ProtocolGrammar):
    """`paths` answers to the same prompt, and one thread that reads them."""

    name = "a2r"
    also = THINK

    def __init__(self, paths: int = 4) -> None:
        self._paths = paths

    def opening(self, question: Question, *, prompted: bool) -> Opening:  # noqa: ARG002
        return Opening(conversation(question, "", question_text(question)))

    def first(self, thread: Thread) -> Move:
        if thread.depth:
            return Continue()
        keys = map(str, range(1, self._paths + 1))
        return ForkMove(tuple(ChildSpec(key, role="attempt") for key in keys), appends=False)

    def classify(self, thread: Thread, output: ParsedOutput) -> Move:
        if thread.depth:
            return Return(thread.text)
        return Continue() if output.ended == "length" else Answer(self.answer(thread))

    def join(self, parent: Thread, children: Sequence[Thread]) -> NewRootJoin:
        return NewRootJoin(synthesis(parent, children))

    def answer(self, thread: Thread) -> str:
        """The text after the thought, if there is one."""
        return without(thread.text.rpartition(THINK[1])[2], THINK)


def make(model: ModelClient, options: ThinkOptions) -> Strategy:
    """The strategy `a2r`. Setting: `paths` (default: the width).

    Raises: `BuildError` for a setting that it does not have, or out of range.
    """
    defaults = {"paths": options.width}
    settings = read_settings("a2r", options.settings, defaults, least={"paths": 1})
    return GrammarStrategy(A2r(settings["paths"]), model, options)
