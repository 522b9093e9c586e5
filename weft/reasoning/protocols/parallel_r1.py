"""Parallel-R1 (arXiv 2509.07980): the model opens a parallel block, the runtime fills it.

Several paths continue from there, each with its own seed; a summary closes the block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.protocols.blocks import BlockGrammar, tags_of
from weft.reasoning.runtime import strategy_of
from weft.reasoning.runtime.grammar import AppendJoin, JoinMove, SpliceJoin
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
Think step by step. At a step that is hard or easy to get wrong, write <Parallel>: several
independent paths are then tried from there, each between <Path> and </Path>. When they are written,
compare them between <Summary> and </Summary>, and go on from what you found. End with a line that
begins with "Answer:".

Let me check this product in two ways.
<Parallel><Path>12 * 11 = 120 + 12 = 132</Path><Path>11 * 12 = 110 + 22 = 132</Path></Parallel>
<Summary>Both ways give 132.</Summary>
Answer: 132"""
_LOST: Final = (
    "the model was not trained to explore in parallel: it follows instructions, and opens blocks"
    " less often; the tags are plain text"
)
_LOST_FLAT: Final = (
    "paths are read one after the other, at positions that follow one another; weights trained with"
    " isolated paths (the variant unseen) expect neither"
)
SEEN: Final = "seen"
UNSEEN: Final = "unseen"


class ParallelR1(BlockGrammar):
    """`paths` in a block, at most `blocks` of them.

    variant: seen, for models trained with earlier paths visible to later ones, which any server can
    run; unseen, with isolated paths at overlapping positions.
    """

    name = "parallel-r1"
    lost_by_prompt = _LOST
    lost_flat = _LOST_FLAT
    pairs = (("<Parallel>", "</Parallel>"), ("<Path>", "</Path>"), ("<Summary>", "</Summary>"))
    tags = tags_of(pairs)
    rules = _RULES
    fork_at = "<Parallel>"
    child_end = "</Path>"
    past_end = ("<Path>", "</Parallel>", "<Parallel>")
    opener = (ProtocolText("Let me look at this in more than one way.\n"), ControlTag("<Parallel>"))

    def __init__(
        self, paths: int = 2, blocks: int = 4, variant: str = SEEN, *, opened: bool = False
    ) -> None:
        super().__init__(opened=opened)
        self._paths = paths
        self._blocks = blocks
        self._variant = variant

    @classmethod
    def configured(cls, options: ThinkOptions) -> Self:
        """Settings: `paths`, `blocks`, `variant` (seen, unseen), `opened`. Raises: `BuildError`."""
        given = read_settings(
            cls.name,
            options.settings,
            {"paths": 2, "blocks": 4, "variant": SEEN, "opened": False},
            least={"paths": 2, "blocks": 1},
            choices={"variant": (SEEN, UNSEEN)},
        )
        return cls(**given)

    def first(self, thread: Thread) -> Move:
        """Fork at once where the runtime opens the first block."""
        if self.opened and thread.prompted and not thread.depth:
            return ForkMove(self._children(), parts=self.opener)
        return Continue()

    def stops(self, thread: Thread) -> tuple[str, ...]:
        """After `blocks` blocks the model writes further ones by itself."""
        return () if thread.rounds >= self._blocks else super().stops(thread)

    def children(self, output: ParsedOutput) -> tuple[ChildSpec, ...]:  # noqa: ARG002
        return self._children()

    def _children(self) -> tuple[ChildSpec, ...]:
        keys = map(str, range(1, self._paths + 1))
        return tuple(ChildSpec(key, header=(ControlTag("<Path>"),), role="path") for key in keys)

    def join(self, parent: Thread, children: Sequence[Thread]) -> JoinMove:  # noqa: ARG002
        """All paths, and the opening tag of the summary, which the model writes."""
        tail: Parts = (ControlTag("</Parallel>"), ProtocolText("\n"), ControlTag("<Summary>"))
        if self._variant == UNSEEN:
            return SpliceJoin(tuple(children), tail)
        parts: list[Part] = []
        for child in children:
            parts += (ControlTag("<Path>"), child.body)
        return AppendJoin((*parts, *tail))


make = strategy_of(ParallelR1.configured)
