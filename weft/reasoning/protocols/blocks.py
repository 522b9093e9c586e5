"""What protocols of tagged blocks have in common: where they pause, how they close and answer.

Knows no tag of any of them.
"""

from __future__ import annotations

from abc import abstractmethod

from weft.reasoning.asked import asked, conversation
from weft.reasoning.grammar import Grammar
from weft.reasoning.moves import ChildSpec, Continue, Fork, Move, Opening, Output, Return
from weft.reasoning.moves import Final as Answer
from weft.reasoning.parts import Parts, Tag, Text
from weft.reasoning.protocols.tags import THINK, answer_text, closers
from weft.reasoning.question import Question
from weft.reasoning.thread.thread import Thread


class Blocks(Grammar):
    """`pairs` are its opening and closing tags; `rules` tell them to a model that lacks them.

    A thread pauses at `fork_at`, behind a list of `item`s. A child ends at `child_end`, which comes
    after `before_end` where the runtime writes it. `nests`: children may fork too.

    Models that are only told about the tags get them wrong in a few ways. `opened`: they find their
    first block open, with `opener` written for them. `past_fork`: where one of these tags follows
    items, or nothing does, `fork_at` was left out. `past_end`: where one of these follows in a
    child, its end was left out.
    """

    pairs: tuple[tuple[str, str], ...]
    rules: str
    fork_at: str
    item: Tag
    child_end: str
    before_end: str = ""
    opener: Parts
    past_fork: tuple[str, ...] = ()
    past_end: tuple[str, ...] = ()
    nests: bool = False
    also: tuple[str, ...] = THINK

    def __init__(self, *, opened: bool = False) -> None:
        self.opened = opened

    @abstractmethod
    def children(self, output: Output) -> tuple[ChildSpec, ...]:
        """The threads that an output asks for, which ended with `fork_at`."""

    def opening(self, question: Question, *, prompted: bool) -> Opening:
        return Opening(conversation(question, self.rules if prompted else "", asked(question)))

    def first(self, thread: Thread) -> Move:
        opened = self.opened and thread.prompted and not thread.depth
        return Continue(self.opener if opened else ())

    def stops(self, thread: Thread) -> tuple[str, ...]:
        forks = (self.fork_at, *(self.past_fork if thread.prompted else ()))
        if not thread.depth:
            return forks
        ends = (self.child_end, *(self.past_end if thread.prompted else ()))
        return (*forks, *ends) if self.nests else ends

    def classify(self, thread: Thread, output: Output) -> Move:
        stop = output.stop
        if stop == self.fork_at:
            children = self.children(output)
            return Fork(children) if children else Continue()
        mended = self._mended(thread, output)
        if mended is not None:
            return mended
        if thread.depth and stop in (None, self.child_end):
            return Return(thread.text)
        if thread.depth and stop in self.past_end:
            return Return(thread.text.removesuffix(stop or ""), cut=stop)
        return Continue() if stop or output.ended == "length" else Answer(self.answer(thread))

    def _mended(self, thread: Thread, output: Output) -> Fork | None:
        """The fork of an output that lists items, but goes on, or ends, without `fork_at`."""
        forks = thread.prompted and bool(self.past_fork) and (self.nests or not thread.depth)
        if not forks or output.stop == self.child_end or output.ended == "length":
            return None
        at = max((i for i, piece in enumerate(output.pieces) if piece == self.item), default=None)
        children = () if at is None else self.children(output)
        if not children:
            return None
        own = next(pair for pair in self.pairs if pair[0] == self.item.text)
        behind = (p.text for p in output.pieces[at:] if isinstance(p, Tag) and p.text not in own)
        return Fork(children, cut=next(behind, None), parts=(Tag(self.fork_at),))

    def close(self, child: Thread) -> Parts:
        if child.text.endswith(self.child_end):
            return ()
        return (*closers(child.text, self.pairs), Text(self.before_end), Tag(self.child_end))

    def conclude(self, thread: Thread) -> Parts:
        pairs = (*self.pairs, *zip(self.also[::2], self.also[1::2], strict=True))
        return (*closers(thread.text, pairs), Text(self.lead))

    def answer(self, thread: Thread) -> str:
        return answer_text(thread.text, self.marks)
