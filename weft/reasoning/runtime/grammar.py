"""A protocol as an object: where decoding pauses, what an output means, how children are joined.

Pure: a grammar decides and the runtime acts. A grammar keeps no state between calls; its state of a
thread is in `Thread.memory`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from weft.reasoning.question import Question
from weft.reasoning.runtime.moves import (
    GO_ON,
    Continue,
    ForkMove,
    Move,
    Opening,
    ParsedOutput,
    Parts,
    ProtocolText,
)
from weft.reasoning.runtime.thread import Thread


@dataclass(frozen=True, slots=True)
class AppendJoin:
    """The parent continues after `parts`."""

    parts: Parts
    then: Move = GO_ON


@dataclass(frozen=True, slots=True)
class SpliceJoin:
    """The parent continues after the texts of `children`, headers included, and `tail`.

    The children do not see one another, the tail sees all: they begin at one position, and the tail
    after the end of the longest (Multiverse, arXiv 2506.09991). Where the model cannot place
    tokens, they are in sequence as in `AppendJoin`.
    """

    children: tuple[Thread, ...]
    tail: Parts = ()
    then: Move = GO_ON


@dataclass(frozen=True, slots=True)
class ReplaceJoin:
    """`parts` replace the last `since` after the prompt, and everything after it."""

    since: str
    parts: Parts
    then: Move = GO_ON


@dataclass(frozen=True, slots=True)
class NewRootJoin:
    """The parent continues in a new context."""

    opening: Opening
    then: Move = GO_ON


JoinMove: TypeAlias = AppendJoin | SpliceJoin | ReplaceJoin | NewRootJoin


class ProtocolGrammar(ABC):
    """The rules of one protocol. Methods receive the thread they decide about.

    `tags`: the protocol's tags, as written; a model without them as special tokens gets them
    explained in the prompt (`Thread.prompted`). `also`: tags that are used only where the model has
    them. `lead`: the text that makes a thread answer at once.

    `trained`: the model was trained with these tags, as special tokens or as plain text: its prompt
    never explains them. `steps`: roles of threads whose text another thread needs whole.

    `lost_by_prompt`: what is lost when an untrained model follows instructions; empty: nothing,
    because the protocol is designed for that. `lost_flat`: what is lost where paths that should not
    see one another are read in sequence. `lost_trained`: what a trained model misses on any engine.
    """

    name: str
    tags: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    lead: str = "\n\nFinal answer: "
    trained: bool = False
    steps: tuple[str, ...] = ()
    lost_by_prompt: str = ""
    lost_flat: str = ""
    lost_trained: str = ""

    @abstractmethod
    def opening(self, question: Question, *, prompted: bool) -> Opening:
        """The beginning of the root thread. `prompted`: the prompt explains the tags.

        The question goes into messages unchanged; the runtime escapes tags in it.
        """

    def first(self, thread: Thread) -> Move:  # noqa: ARG002 - part of the interface
        """The first move of a thread, before it has decoded anything."""
        return Continue()

    def stops(self, thread: Thread) -> tuple[str, ...]:  # noqa: ARG002
        """The tags and texts at which decoding pauses; they stay in the context."""
        return ()

    @abstractmethod
    def classify(self, thread: Thread, output: ParsedOutput) -> Move:
        """The move that the output asks for. Never raises, for any output."""

    def close(self, child: Thread) -> Parts:  # noqa: ARG002
        """The closing tags that a child lacks for the join."""
        return ()

    @abstractmethod
    def join(self, parent: Thread, children: Sequence[Thread]) -> JoinMove:
        """The join of `children`, which have ended in any state, in declared order."""

    def refuse(self, thread: Thread, fork: ForkMove, reason: str) -> Move:  # noqa: ARG002
        """The move of `thread` after a refused fork: depth, rounds or tokens are used up."""
        return Continue()

    def conclude(self, thread: Thread) -> Parts:  # noqa: ARG002
        """What makes an exhausted `thread` answer: closing tags, and a lead-in.

        Empty: the model is not called again.
        """
        return (ProtocolText(self.lead),)

    def answer(self, thread: Thread) -> str:
        """The best answer in the text of a thread that was cut off."""
        return thread.text.strip()
