"""Multiverse (arXiv 2506.09991): goals are split into outlines, worked out in paths, and merged.

Exact where the model places tokens: paths begin at one position and do not see one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.reasoning.protocols.blocks import THINK, BlockGrammar, answer_text, numbers, tags_of
from weft.reasoning.runtime import strategy_of
from weft.reasoning.runtime.grammar import SpliceJoin
from weft.reasoning.runtime.moves import ChildSpec, ControlTag, ParsedOutput, ProtocolText
from weft.reasoning.runtime.thread import Thread

_RULES: Final = """\
Think step by step. When a goal splits into parts that do not need each other, write a block:
<Parallel>, then <Goal> with one numbered <Outline> for each part, then </Goal>, and stop. Each part
is then worked out in a <Path> of its own. When all paths are written, put them together between
<Conclusion> and </Conclusion>, and close with </Parallel>. End with a line that begins with
"Answer:".

<Parallel>
<Goal>
<Outline>1: the even case</Outline>
<Outline>2: the odd case</Outline>
</Goal>
<Path>
1: for even n it holds</Path>
<Path>
2: for odd n it fails at 3</Path>
<Conclusion>
It fails for n = 3.</Conclusion>
</Parallel>
Answer: no

Inside a path a part may be split again, into 1.1, 1.2 and so on. A path must not refer to another
one. Use no block when nothing can be split."""
LOST_FLAT: Final = (
    "paths are computed again one after the other at the join, at positions that follow one another"
    " and in sight of one another; weights trained with the positions and the mask of the published"
    " engine expect neither"
)
_LOST: Final = (
    "the model was not trained to split goals: it follows instructions, so that it splits less"
    " often and less well, and the tags are plain text"
)


class Multiverse(BlockGrammar):
    """Blocks may be inside a path; their outlines are numbered separately."""

    name = "multiverse"
    lost_by_prompt = _LOST
    lost_flat = LOST_FLAT
    pairs = (
        ("<Parallel>", "</Parallel>"),
        ("<Goal>", "</Goal>"),
        ("<Outline>", "</Outline>"),
        ("<Path>", "</Path>"),
        ("<Conclusion>", "</Conclusion>"),
    )
    tags = tags_of(pairs)
    also = ("<Think>", "</Think>", *THINK)
    rules = _RULES
    fork_at = "</Goal>"
    child_end = "</Path>"
    item = ControlTag("<Outline>")
    past_fork = ("<Path>", "<Conclusion>")
    past_end = ("<Path>", "<Conclusion>")
    opener = (
        ControlTag("<Parallel>"),
        ProtocolText("\n"),
        ControlTag("<Goal>"),
        ProtocolText("\n"),
    )
    nests = True

    def children(self, output: ParsedOutput) -> tuple[ChildSpec, ...]:
        return tuple(
            ChildSpec(key, header=(ControlTag("<Path>"), ProtocolText(f"\n{key}:")), role="path")
            for key in numbers(output, "<Goal>", "<Outline>")
        )

    def join(self, parent: Thread, children: Sequence[Thread]) -> SpliceJoin:  # noqa: ARG002
        return SpliceJoin(tuple(children), (ControlTag("<Conclusion>"), ProtocolText("\n")))

    def answer(self, thread: Thread) -> str:
        """The text after the thought, which this model's tags spell with a capital letter."""
        _, _, answer = thread.text.rpartition("</Think>")
        return answer_text(answer or thread.text, (*self.tags, *self.also))


make = strategy_of(Multiverse.configured)
