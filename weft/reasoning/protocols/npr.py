"""NPR, Native Parallel Reasoner (arXiv 2512.07461): plans, a step for each of them, a takeaway.

Rounds are repeated and do not nest. Positions and visibility are those of Multiverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.reasoning.protocols.blocks import BlockGrammar, numbers, tags_of
from weft.reasoning.protocols.multiverse import LOST_FLAT
from weft.reasoning.runtime import strategy_of
from weft.reasoning.runtime.grammar import SpliceJoin
from weft.reasoning.runtime.moves import ChildSpec, ControlTag, ParsedOutput, ProtocolText
from weft.reasoning.runtime.thread import Thread

_RULES: Final = """\
Work in rounds. A round begins with a guideline: one plan for each thing that can be done now
without waiting for another, numbered. Stop after </guideline>. Each plan is then carried out in a
step of its own. When all steps are written, say in a takeaway what they show. Begin another round
if something is still open, else give the answer after the last takeaway, as \\boxed{answer}.

<guideline>
<plan>1: solve it by factoring</plan>
<plan>2: check it by a graph</plan>
</guideline>
<step>
1: (x - 2)(x - 3) = 0, so x is 2 or 3</step>
<step>
2: the parabola crosses zero at 2 and at 3</step>
<takeaway>Both agree: 2 and 3.</takeaway>
\\boxed{2, 3}"""
_LOST: Final = (
    "the model was not trained for rounds of plans: it follows instructions, and the tags are plain"
    " text"
)


class Npr(BlockGrammar):
    """One step for each plan, with the plan's number."""

    name = "npr"
    lost_by_prompt = _LOST
    lost_flat = LOST_FLAT
    opened_default = True
    pairs = (
        ("<guideline>", "</guideline>"),
        ("<plan>", "</plan>"),
        ("<step>", "</step>"),
        ("<takeaway>", "</takeaway>"),
    )
    tags = tags_of(pairs)
    rules = _RULES
    fork_at = "</guideline>"
    child_end = "</step>"
    item = ControlTag("<plan>")
    past_fork = ("<step>", "<takeaway>")
    past_end = ("<step>", "<takeaway>")
    opener = (ControlTag("<guideline>"), ProtocolText("\n"))

    def children(self, output: ParsedOutput) -> tuple[ChildSpec, ...]:
        return tuple(
            ChildSpec(key, header=(ControlTag("<step>"), ProtocolText(f"\n{key}:")), role="step")
            for key in numbers(output, "<guideline>", "<plan>")
        )

    def join(self, parent: Thread, children: Sequence[Thread]) -> SpliceJoin:  # noqa: ARG002
        return SpliceJoin(tuple(children), (ControlTag("<takeaway>"),))


make = strategy_of(Npr.configured)
