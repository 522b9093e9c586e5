"""What protocols of tagged blocks have in common: where they pause, how they close and answer.

Knows no tag of any of them.
"""

from __future__ import annotations

from abc import abstractmethod

from weft.reasoning.asked import asked, conversation
from weft.reasoning.grammar import ChildSpec, Continue, Fork, Grammar, Move, Opening, Output, Return
from weft.reasoning.grammar import Final as Answer
from weft.reasoning.parts import Parts, Tag, Text
from weft.reasoning.protocols.tags import THINK, answer_text, closers
from weft.reasoning.question import Question
from weft.reasoning.thread.thread import Thread


class Blocks(Grammar):
    """`pairs` are its opening and closing tags; `rules` tell them to a model that lacks them.

    A thread pauses at `fork_at`, a child ends at `child_end`, which comes after `before_end` where
    the runtime writes it. `nests`: children may fork too.
    """

    pairs: tuple[tuple[str, str], ...]
    rules: str
    fork_at: str
    child_end: str
    before_end: str = ""
    nests: bool = False
    also: tuple[str, ...] = THINK

    @abstractmethod
    def children(self, output: Output) -> tuple[ChildSpec, ...]:
        """The threads that an output asks for, which ended with `fork_at`."""

    def opening(self, question: Question, *, prompted: bool) -> Opening:
        return Opening(conversation(question, self.rules if prompted else "", asked(question)))

    def stops(self, thread: Thread) -> tuple[str, ...]:
        if not thread.depth:
            return (self.fork_at,)
        return (self.fork_at, self.child_end) if self.nests else (self.child_end,)

    def classify(self, thread: Thread, output: Output) -> Move:
        if output.stop == self.fork_at:
            children = self.children(output)
            return Fork(children) if children else Continue()
        if thread.depth:
            return Return(thread.text)
        return Continue() if output.ended == "length" else Answer(self.answer(thread))

    def close(self, child: Thread) -> Parts:
        if child.text.endswith(self.child_end):
            return ()
        return (*closers(child.text, self.pairs), Text(self.before_end), Tag(self.child_end))

    def conclude(self, thread: Thread) -> Parts:
        pairs = (*self.pairs, *zip(self.also[::2], self.also[1::2], strict=True))
        return (*closers(thread.text, pairs), Text(self.lead))

    def answer(self, thread: Thread) -> str:
        return answer_text(thread.text, self.marks)
