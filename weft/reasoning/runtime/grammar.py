"""A protocol as an object: where decoding pauses, what an output means, how children are joined.

Pure: a grammar decides and the runtime acts. It keeps nothing between calls; what it has to
remember of a thread goes into `Thread.memory`.
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
    """The parent goes on after `parts`."""

    parts: Parts
    then: Move = GO_ON


@dataclass(frozen=True, slots=True)
class SpliceJoin:
    """The parent goes on after what `children` wrote, headers included, and then `tail`.

    The children do not see one another, the tail sees all: they begin at one position, and the tail
    after the end of the longest (Multiverse, arXiv 2506.09991). Where the model cannot place
    tokens, they follow one another as in `AppendJoin`.
    """

    children: tuple[Thread, ...]
    tail: Parts = ()
    then: Move = GO_ON


@dataclass(frozen=True, slots=True)
class ReplaceJoin:
    """The last `since` after the prompt, and all behind it, is replaced by `parts`."""

    since: str
    parts: Parts
    then: Move = GO_ON


@dataclass(frozen=True, slots=True)
class NewRootJoin:
    """The parent goes on in a new context."""

    opening: Opening
    then: Move = GO_ON


JoinMove: TypeAlias = AppendJoin | SpliceJoin | ReplaceJoin | NewRootJoin


class ProtocolGrammar(ABC):
    """The rules of one protocol. Methods are called with the thread that it is about.

    `tags` are its tags as they are written; a model in which they are no special tokens is told
    about them (`Thread.prompted`). `also` are tags that it uses where a model happens to have them.
    `lead` is what makes a thread answer at once.

    `lost_by_prompt`: what is lost when a model that was not trained for the protocol follows
    instructions; empty: nothing, because the protocol was made for that. `lost_flat`: what is lost
    where paths that should not see one another are read one after the other. `lost_trained`: what a
    model that was trained for the protocol misses on any engine.
    """

    name: str
    tags: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    lead: str = "\n\nFinal answer: "
    lost_by_prompt: str = ""
    lost_flat: str = ""
    lost_trained: str = ""

    @abstractmethod
    def opening(self, question: Question, *, prompted: bool) -> Opening:
        """How the root begins. `prompted`: the model has no such tags and is told about them.

        The question's words go into messages as they are; the runtime guards them.
        """

    def first(self, thread: Thread) -> Move:  # noqa: ARG002 - for those that look at it
        """What a thread does before it has decoded anything."""
        return Continue()

    def stops(self, thread: Thread) -> tuple[str, ...]:  # noqa: ARG002
        """The tags and texts at which decoding pauses; they become part of the context."""
        return ()

    @abstractmethod
    def classify(self, thread: Thread, output: ParsedOutput) -> Move:
        """What the output asks for. Never raises, whatever a model wrote."""

    def close(self, child: Thread) -> Parts:  # noqa: ARG002
        """What is missing at the end of a child, so that it can be joined."""
        return ()

    @abstractmethod
    def join(self, parent: Thread, children: Sequence[Thread]) -> JoinMove:
        """What comes of `children`, which have ended in whatever way, in declared order."""

    def refuse(self, thread: Thread, fork: ForkMove, reason: str) -> Move:  # noqa: ARG002
        """How `thread` goes on when it may not fork: depth, rounds or tokens are used up."""
        return Continue()

    def conclude(self, thread: Thread) -> Parts:  # noqa: ARG002
        """What makes `thread`, which can do no more, answer: closing tags, and a lead-in.

        Empty: it is not asked any more.
        """
        return (ProtocolText(self.lead),)

    def answer(self, thread: Thread) -> str:
        """The answer in a thread that was cut off: the best there is in what it wrote."""
        return thread.text.strip()
