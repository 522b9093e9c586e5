"""ThreadWeaver (arXiv 2512.07843): the model outlines threads, and reads them in sequence.

Runs as published on any completion server, with a model that has the tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.reasoning.protocols.blocks import BlockGrammar, numbers, tags_of
from weft.reasoning.runtime import strategy_of
from weft.reasoning.runtime.grammar import AppendJoin
from weft.reasoning.runtime.moves import (
    ChildSpec,
    Continue,
    ControlTag,
    ForkMove,
    Move,
    ParsedOutput,
    Part,
    Parts,
    ProtocolText,
)
from weft.reasoning.runtime.thread import Thread

_RULES: Final = """\
Think step by step. Where parts of the work do not need each other's results, do them in parallel:
open <Parallel>, list the parts as outlines, and stop. Each part is then worked out in a thread of
its own, and you go on once all of them are written. Close with </Parallel>, put the results
together, and end with a line that begins with "Answer:".

<Parallel>
<Outlines>
<Outline>1: add up the first column</Outline>
<Outline>2: add up the second column</Outline>
</Outlines>
<Thread>
1: 4 + 5 = 9</Thread>
<Thread>
2: 7 + 1 = 8</Thread>
</Parallel>
Answer: 9 and 8

A thread must not refer to another one. Use no parallel block when nothing can be split."""
_LOST: Final = (
    "the model was not trained to outline threads: it follows instructions, so that it splits less"
    " often and less well, and the tags are plain text"
)


_CLOSED: Final[Parts] = (ProtocolText("\n"), ControlTag("</Parallel>"), ProtocolText("\n"))


class ThreadWeaver(BlockGrammar):
    """Flat: a parallel block inside a thread is text. Threads see all text before them."""

    name = "threadweaver"
    lost_by_prompt = _LOST
    pairs = (
        ("<Parallel>", "</Parallel>"),
        ("<Outlines>", "</Outlines>"),
        ("<Outline>", "</Outline>"),
        ("<Thread>", "</Thread>"),
    )
    tags = tags_of(pairs)
    rules = _RULES
    fork_at = "</Outlines>"
    child_end = "</Thread>"
    before_end = "\n"
    item = ControlTag("<Outline>")
    past_fork = ("<Thread>",)
    past_end = ("<Thread>", "</Parallel>")
    opener = (
        ControlTag("<Parallel>"),
        ProtocolText("\n"),
        ControlTag("<Outlines>"),
        ProtocolText("\n"),
    )

    def children(self, output: ParsedOutput) -> tuple[ChildSpec, ...]:
        keys = numbers(output, "<Outlines>", "<Outline>")
        return tuple(ChildSpec(key, header=(ProtocolText("\n"), *_header(key))) for key in keys)

    def join(self, parent: Thread, children: Sequence[Thread]) -> AppendJoin:  # noqa: ARG002
        """The threads as written; only the first header begins on a new line.

        After a thread that was cut off the runtime closes the block, otherwise the model does.
        """
        parts: list[Part] = [ProtocolText("\n")]
        for child in children:
            parts += (*_header(child.key), child.body)
        whole = all(child.finished and not child.reason for child in children)
        parts += (ProtocolText("\n"),) if whole else _CLOSED
        return AppendJoin(tuple(parts))

    def refuse(self, thread: Thread, fork: ForkMove, reason: str) -> Move:  # noqa: ARG002
        """Close the block without threads; the model continues by itself."""
        return Continue(_CLOSED)


def _header(key: str) -> Parts:
    return (ControlTag("<Thread>"), ProtocolText(f"\n{key}:"))


make = strategy_of(ThreadWeaver.configured)
