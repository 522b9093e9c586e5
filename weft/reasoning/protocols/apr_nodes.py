"""APR's published messages: a sub-search is called by the node of a search tree that it starts at.

Knows the lines in which Countdown traces name nodes (arXiv 2504.15466). They are read with patterns
and never evaluated: a model wrote them.
"""

from __future__ import annotations

import re
from typing import Final

from weft.reasoning.moves import ChildSpec, Opening
from weft.reasoning.parts import Parts, Said, Tag, Text
from weft.reasoning.protocols.apr_messages import Call
from weft.reasoning.question import Question
from weft.reasoning.thread.thread import Thread

GOAL: Final = "equal: Goal Reached\n"

_NUMBER: Final = r"\d{1,18}"
_ID: Final = r"0(?:,\d{1,3}){0,8}"
_NUMBERS: Final = rf"{_NUMBER}(?:, {_NUMBER}){{0,15}}"
_STEP: Final = rf"{_NUMBER}[-+*/]{_NUMBER}={_NUMBER}"
_MOVING: Final = re.compile(rf"Moving to Node #({_ID})")
_GENERATED: Final = re.compile(
    rf"^Generated Node #({_ID}): ({_NUMBER}:\[{_NUMBERS}\]) Operation: ({_STEP})$", re.MULTILINE
)


class NodeMessages:
    """Implements `Messages` for models that were trained on traces with numbered nodes.

    `begin` is the token that begins a text. `children`: so many sub-searches a spawn are asked for
    with the condition `Sub Call Budget`, which sub-searches do not read; 0: it is left out.
    """

    stops: tuple[str, ...] = ()
    guard = "<Sub Searches>\n"  # the whole line: one token in the models' tokenizers
    lead = ""

    def __init__(self, begin: str, children: int = 0) -> None:
        self._begin = begin
        self._condition = f"Sub Call Budget: {children} " if children else ""

    def opening(self, question: Question) -> Opening:
        """The condition, if any, and the opening lines of a trace, which are the question."""
        return Opening(parts=(Tag(self._begin), Text(self._condition), Said(question.text)))

    def child(self, parent: Thread, call: Call) -> ChildSpec | None:
        """A fresh context with the opening lines of the node, rebuilt from what was generated."""
        named = _MOVING.fullmatch(call.line)
        opening = None if named is None else node_opening(named[1], parent.text)
        if opening is None:
            return None
        header = (Tag(self._begin), Said(opening))
        return ChildSpec(call.number, inherit="none", header=header, state=named)

    def returned(self, child: Thread) -> str:
        """The path to the goal, which a search that reaches it writes again at its end."""
        return final_path(child.text)

    def result(self, parent: Thread, call: Call, child: Thread | None) -> Parts:  # noqa: ARG002
        """The line that says how the sub-search ended, and the path that it found."""
        named = _MOVING.fullmatch(call.line)
        found = "" if child is None else child.result
        word = "Goal Reached" if found else "No Solution"
        node = "" if named is None else f" at Node #{named[1]}"
        line = f"<{word} in Sub Search {call.number} at level 1{node}>\n"
        return (Text(line), Said(found)) if found else (Text(line),)

    def answer(self, thread: Thread) -> str:
        """The path from the root, as `returned`."""
        return final_path(thread.text)


def final_path(trace: str) -> str:
    """The text after the last but one goal of a trace; empty with fewer than two."""
    parts = trace.split(GOAL)
    return f"{parts[-2]}{GOAL}" if len(parts) >= 3 else ""


def node_opening(node: str, trace: str) -> str | None:
    """The lines that a search at `node` opens with; None when `trace` did not generate it.

    A node's operations are those of its parents and its own; of a node that was generated twice the
    last counts.
    """
    generated = {found[1]: (found[2], found[3]) for found in _GENERATED.finditer(trace)}
    parts = node.split(",")
    chain = [",".join(parts[: end + 1]) for end in range(1, len(parts))]
    if not chain or any(ancestor not in generated for ancestor in chain):
        return None
    steps = ", ".join(f"'{generated[ancestor][1]}'" for ancestor in chain)
    return f"Moving to Node #{node}\nCurrent State: {generated[node][0]}, Operations: [{steps}]\n"
