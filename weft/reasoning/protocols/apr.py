"""APR, Adaptive Parallel Reasoning (arXiv 2504.15466): the model calls sub-searches by itself.

Knows the spawn block and how results take its place; not what a message to a sub-search looks like.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from weft.core.errors import BuildError
from weft.core.ports import ModelClient
from weft.reasoning.grammar import Grammar, Replace
from weft.reasoning.moves import Continue, Fork, Move, Opening, Output, Return
from weft.reasoning.moves import Final as Answer
from weft.reasoning.options import ThinkOptions
from weft.reasoning.parts import Parts, Text
from weft.reasoning.protocols.apr_messages import Call, Messages
from weft.reasoning.question import Question
from weft.reasoning.runtime import GrammarStrategy
from weft.reasoning.settings import read_settings
from weft.reasoning.strategy import Strategy
from weft.reasoning.thread.thread import Thread

CALLING: Final = "<Calling Sub Searches>"
CALLING_END: Final = "<End Calling Sub Searches>"
RESULTS: Final = "<Sub Searches>"
RESULTS_END: Final = "<End Sub Searches>"
TAGS: Final = (CALLING, CALLING_END, RESULTS, RESULTS_END)

_CALL: Final = re.compile(r"<Start Sub Search (\d{1,4})(?: at level \d{1,2})?>[ \t]*([^\n]*)")
_CALLED: Final = "apr.called"


class Apr(Grammar):
    """Spawn blocks are replaced by results, as published; what a message is, `messages` knows.

    In sub-searches below `levels` a spawn block is plain text; None: the caps of the thought decide
    how deep they may be.
    """

    name = "apr"
    marks = TAGS

    def __init__(
        self, messages: Messages, *, levels: int | None = None, also: tuple[str, ...] = ()
    ) -> None:
        self.messages = messages
        self.levels = levels
        self.also = also
        self.lead = messages.lead

    def opening(self, question: Question, *, prompted: bool) -> Opening:  # noqa: ARG002
        """The main search's prompt. Its tags are text in any model: `prompted` says nothing."""
        return self.messages.opening(question)

    def stops(self, thread: Thread) -> tuple[str, ...]:  # noqa: ARG002
        """The model's calls, and the guard: where it begins to write results itself."""
        return (*self.messages.stops, self.messages.guard)

    def classify(self, thread: Thread, output: Output) -> Move:
        """A spawn block at the end calls sub-searches; any other end is the search's own."""
        if output.stop == self.messages.guard:
            return Continue(cut=RESULTS, parts=(Text(f"{CALLING}\n"),))
        spawns = self.levels is None or thread.depth < self.levels
        calls = _calls(thread.text) if spawns else None
        if calls is None or output.ended not in ("end", "stop"):
            return self._ended(thread, output)
        children = {call: self.messages.child(thread, call) for call in calls}
        thread.memory[_CALLED] = calls
        started = tuple(child for child in children.values() if child is not None)
        if not started:
            return Continue(cut=CALLING, parts=self._results(thread, ()))
        return Fork(started, appends=False)

    def join(self, parent: Thread, children: Sequence[Thread]) -> Replace:
        """Results stand where the spawn block stood; the parent never reads its own calls again."""
        return Replace(CALLING, self._results(parent, children))

    def refuse(self, thread: Thread, fork: Fork, reason: str) -> Move:  # noqa: ARG002
        """Sub-searches that may not be started are results too."""
        return Continue(cut=CALLING, parts=self._results(thread, ()))

    def conclude(self, thread: Thread) -> Parts:
        """A lead-in, where the realisation has one."""
        return (Text(self.lead),) if self.lead and thread.depth == 0 else ()

    def answer(self, thread: Thread) -> str:
        """What the main search has found so far."""
        return self.messages.answer(thread)

    def _ended(self, thread: Thread, output: Output) -> Move:
        if thread.depth:
            return Return(self.messages.returned(thread))
        if self.lead and output.ended == "length":
            return Continue()  # which cannot be: the runtime makes it conclude
        return Answer(self.messages.answer(thread))

    def _results(self, parent: Thread, children: Sequence[Thread]) -> Parts:
        """The block of results: one for each call, in the order of the calls."""
        by_key = {child.key: child for child in children}
        parts: Parts = (Text(f"{RESULTS}\n"),)
        for call in parent.memory[_CALLED]:
            parts += self.messages.result(parent, call, by_key.get(call.number))
        return (*parts, Text(f"{RESULTS_END}\n"))


def _calls(text: str) -> tuple[Call, ...] | None:
    """The calls of the spawn block that `text` ends in, one for each number; None without one."""
    _, called, block = text.rpartition(CALLING)
    block, ended, after = block.partition(CALLING_END)
    if not called or not ended or after.strip():
        return None
    first: dict[str, Call] = {}
    for found in _CALL.finditer(block):
        first.setdefault(found[1], Call(found[1], found[2].strip()))
    return tuple(first.values())


_SETTINGS: Final[Mapping[str, str | int]] = {"messages": "text", "children": 0, "begin": "<s>"}


def make(model: ModelClient, options: ThinkOptions) -> Strategy:
    """The strategy `apr`.

    Settings. messages: text, any chat model is told how to call sub-searches with messages in its
    own words; nodes, a model trained on Countdown traces names nodes of its search (the published
    realisation), and the question is the opening lines of a trace. For nodes: children, so many a
    spawn are asked for with `Sub Call Budget` (0: the model decides); begin, the token that begins
    a text.

    Raises: `BuildError` for other settings.
    """
    given = read_settings("apr", options.settings, _SETTINGS)
    match given["messages"]:
        case "text":
            from weft.reasoning.protocols.apr_text import TextMessages

            grammar = Apr(TextMessages(options))
            lost = "the model was told about sub-searches, not trained to search with them"
            return GrammarStrategy(grammar, model, options, lost_by_prompt=lost)
        case "nodes":
            from weft.reasoning.protocols.apr_nodes import NodeMessages

            begin, children = str(given["begin"]), int(given["children"])
            if children < 0:
                raise BuildError(f"children is {children}", hint="0 leaves it to the model")
            grammar = Apr(NodeMessages(begin, children), levels=1, also=(begin,))
            return GrammarStrategy(grammar, model, options)
        case other:
            raise BuildError(f"apr has no messages {other!r}", hint="there are: text, nodes")
