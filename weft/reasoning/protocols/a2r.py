"""A2R, asymmetric two-stage reasoning: explore with several answers, then synthesise one.

Prompts only: any model that can be asked does it as published.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.errors import BuildError
from weft.core.ports import ModelClient
from weft.reasoning.asked import asked, conversation
from weft.reasoning.grammar import Grammar, NewRoot
from weft.reasoning.moves import ChildSpec, Continue, Fork, Move, Opening, Output, Return
from weft.reasoning.moves import Final as Answer
from weft.reasoning.options import ThinkOptions
from weft.reasoning.protocols.synthesis import synthesis
from weft.reasoning.protocols.tags import THINK, without
from weft.reasoning.question import Question
from weft.reasoning.runtime import GrammarStrategy
from weft.reasoning.settings import read_settings
from weft.reasoning.strategy import Strategy
from weft.reasoning.thread.thread import Thread


class A2r(Grammar):
    """As many answers as `paths`, all to the same prompt, and one thread that reads them."""

    name = "a2r"
    also = THINK

    def __init__(self, paths: int = 4) -> None:
        self._paths = paths

    def opening(self, question: Question, *, prompted: bool) -> Opening:  # noqa: ARG002
        return Opening(conversation(question, "", asked(question)))

    def first(self, thread: Thread) -> Move:
        """The question forks before anything is written."""
        if thread.depth:
            return Continue()
        keys = map(str, range(1, self._paths + 1))
        return Fork(tuple(ChildSpec(key, role="attempt") for key in keys), appends=False)

    def classify(self, thread: Thread, output: Output) -> Move:
        if thread.depth:
            return Return(thread.text)
        return Continue() if output.ended == "length" else Answer(self.answer(thread))

    def join(self, parent: Thread, children: Sequence[Thread]) -> NewRoot:
        return NewRoot(synthesis(parent, children))

    def answer(self, thread: Thread) -> str:
        """What stands behind the thought, if there is one."""
        return without(thread.text.rpartition(THINK[1])[2], THINK)


def make(model: ModelClient, options: ThinkOptions) -> Strategy:
    """The strategy `a2r`. Setting: `paths` (default: the width).

    Raises: `BuildError` for a setting that it does not have, or out of range.
    """
    settings = read_settings("a2r", options.settings, {"paths": options.width})
    if settings["paths"] < 1:
        raise BuildError(f"a2r explores 1 path or more, not {settings['paths']}")
    return GrammarStrategy(A2r(settings["paths"]), model, options)
