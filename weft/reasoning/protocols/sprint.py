"""SPRINT (arXiv 2506.05745): rounds of independent plans, executed in parallel.

An executor reads everything so far and its plan; the next round reads the executions in the order
of the plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from weft.reasoning.options import ThinkOptions
from weft.reasoning.protocols.blocks import BlockGrammar, numbers, tags_of
from weft.reasoning.protocols.sprint_stages import SprintStages
from weft.reasoning.runtime import strategy_of
from weft.reasoning.runtime.grammar import AppendJoin, ProtocolGrammar
from weft.reasoning.runtime.moves import ChildSpec, ControlTag, ParsedOutput, Parts, ProtocolText
from weft.reasoning.runtime.thread import Thread

PROMPT_VERSION: Final = "sprint-1"
_RULES: Final = """\
You solve a question in rounds, as the planner of a team. A round is a list of plans that do not \
need one another; stop after </plans>. Each plan is then carried out by somebody else at the same \
time, in an <execution> of its own, which you read before you plan the next round. Plan only what \
can be done with what is known by now. When nothing is open any more, write the answer, without \
plans. For the question "Is 7 * 8 more than 5 * 11?" you would write:

<plans>
<plan>1: work out 7 * 8</plan>
<plan>2: work out 5 * 11</plan>
</plans>
<execution>
1: 7 * 8 = 56</execution>
<execution>
2: 5 * 11 = 55</execution>
Yes: 56 is more than 55.

In an <execution> carry out the plan of its number and nothing else, briefly, and end with \
</execution>."""
_LOST: Final = (
    "the model was told to plan in rounds, not trained on solutions that were put in order like"
    " that, and the tags are plain text"
)


class Sprint(BlockGrammar):
    """One execution for each plan, with the plan's number. These tags are weft's."""

    name = "sprint"
    lost_by_prompt = _LOST
    opened_default = True
    pairs = (("<plans>", "</plans>"), ("<plan>", "</plan>"), ("<execution>", "</execution>"))
    tags = tags_of(pairs)
    rules = _RULES
    fork_at = "</plans>"
    item = ControlTag("<plan>")
    child_end = "</execution>"
    opener = (ControlTag("<plans>"), ProtocolText("\n"))
    past_fork = ("<execution>",)
    past_end = ("<execution>", "<plans>")

    def children(self, output: ParsedOutput) -> tuple[ChildSpec, ...]:
        return tuple(
            ChildSpec(key, header=(ProtocolText("\n"), *_header(key)), role="execution")
            for key in numbers(output, "<plans>", "<plan>")
        )

    def join(self, parent: Thread, children: Sequence[Thread]) -> AppendJoin:  # noqa: ARG002
        written = (
            part
            for child in children
            for part in (ProtocolText("\n"), *_header(child.key), child.body)
        )
        return AppendJoin((*written, ProtocolText("\n")))


def _header(key: str) -> Parts:
    return ControlTag("<execution>"), ProtocolText(f"\n{key}:")


def _grammar(options: ThinkOptions) -> ProtocolGrammar:
    """The grammar of the setting `format`: weft's own tags, or the published ones."""
    grammar = Sprint.configured(options)
    return SprintStages() if grammar.trained else grammar


make = strategy_of(_grammar)
