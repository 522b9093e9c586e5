"""APR, Adaptive Parallel Reasoning (arXiv 2504.15466): the model calls sub-searches by itself.

`NodeMessages` are for models trained on Countdown traces, `TextMessages` for models that follow
instructions. A model's lines are matched by patterns and never evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from weft.core.ports import ModelClient
from weft.core.values import Message
from weft.reasoning.options import ThinkOptions, read_settings
from weft.reasoning.question import Question, conversation, question_text
from weft.reasoning.runtime import GrammarStrategy
from weft.reasoning.runtime.grammar import ProtocolGrammar, ReplaceJoin
from weft.reasoning.runtime.moves import (
    ChildSpec,
    Continue,
    ControlTag,
    ForkMove,
    Move,
    Opening,
    ParsedOutput,
    Parts,
    ProtocolText,
    Return,
    UntrustedText,
)
from weft.reasoning.runtime.moves import FinalAnswer as Answer
from weft.reasoning.runtime.thread import Thread
from weft.reasoning.strategy import Strategy


@dataclass(frozen=True, slots=True)
class SubSearchCall:
    """One line of a spawn block: the model's number and its text."""

    number: str
    line: str


class SubSearchMessages(Protocol):
    """The messages between a search and its sub-searches, in one realisation of APR."""

    stops: tuple[str, ...]
    """Where decoding pauses, in addition to the model's own end."""

    guard: str
    """Text that the model must not write: the runtime writes results."""

    lead: str
    """The text that makes a search answer at once; empty: there is none."""

    def opening(self, question: Question) -> Opening:
        """The beginning of the main search."""

    def child(self, parent: Thread, call: SubSearchCall) -> ChildSpec | None:
        """The sub-search that `call` asks for; None: it cannot be started."""

    def returned(self, child: Thread) -> str:
        """The result of a sub-search for its parent; empty: nothing."""

    def result(self, parent: Thread, call: SubSearchCall, child: Thread | None) -> Parts:
        """The result of `call` as the parent reads it; `child` None: it was not started."""

    def answer(self, thread: Thread) -> str:
        """The answer of a main search."""


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
    """Implements `SubSearchMessages` for models trained on traces with numbered nodes.

    `begin` is the token that begins a text. `children`: the number of sub-searches per spawn in the
    condition `Sub Call Budget`, which sub-searches do not read; 0: no condition.
    """

    stops: tuple[str, ...] = ()
    guard = "<Sub Searches>\n"  # the whole line: one token in the models' tokenizers
    lead = ""

    def __init__(self, begin: str, children: int = 0) -> None:
        self._begin = begin
        self._condition = f"Sub Call Budget: {children} " if children else ""

    def opening(self, question: Question) -> Opening:
        """The condition, if any, and the question, which is the opening lines of a trace."""
        return Opening(
            parts=(
                ControlTag(self._begin),
                ProtocolText(self._condition),
                UntrustedText(question.text),
            )
        )

    def child(self, parent: Thread, call: SubSearchCall) -> ChildSpec | None:
        """A fresh context with the opening lines of the node, rebuilt from the trace."""
        named = _MOVING.fullmatch(call.line)
        opening = None if named is None else node_opening(named[1], parent.text)
        if opening is None:
            return None
        header = (ControlTag(self._begin), UntrustedText(opening))
        return ChildSpec(call.number, inherit="none", header=header, state=named)

    def returned(self, child: Thread) -> str:
        """The path to the goal, which a successful search repeats at its end."""
        return final_path(child.text)

    def result(self, parent: Thread, call: SubSearchCall, child: Thread | None) -> Parts:  # noqa: ARG002
        """A line with the end of the sub-search, and the path it found."""
        named = _MOVING.fullmatch(call.line)
        found = "" if child is None else child.result
        word = "Goal Reached" if found else "No Solution"
        node = "" if named is None else f" at Node #{named[1]}"
        line = f"<{word} in Sub Search {call.number} at level 1{node}>\n"
        return (ProtocolText(line), UntrustedText(found)) if found else (ProtocolText(line),)

    def answer(self, thread: Thread) -> str:
        return final_path(thread.text)


def final_path(trace: str) -> str:
    """The text after the last but one goal of a trace; empty with fewer than two."""
    parts = trace.split(GOAL)
    return f"{parts[-2]}{GOAL}" if len(parts) >= 3 else ""


def node_opening(node: str, trace: str) -> str | None:
    """The opening lines of a search at `node`; None when `trace` did not generate it.

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


ANSWER: Final = "Answer:"

_MAIN: Final = """\
You can have parts of the work done by helpers, who work at the same time and see nothing but the \
message that you give them. To call helpers, write exactly this, with one line for each of them, \
and stop:
<Calling Sub Searches>
<Start Sub Search 0> a complete task, with every fact that it needs
<Start Sub Search 1> another complete task
<End Calling Sub Searches>
What they found then stands in the place of these lines, and you go on. Call helpers only for \
parts that do not depend on one another; what is quick, do yourself. Never write results of \
helpers. When you are done, write the answer on a last line that begins with "Answer:"."""
_CHILD: Final = """\
You do one part of a larger piece of work; somebody else puts the parts together and sees only \
your last line. Work it out briefly. Write the complete result on a last line that begins with \
"Answer:"."""
_NOT_STARTED: Final = "(was not started; do this part yourself)\n"
_NOTHING: Final = "(found nothing)\n"


class TextMessages:
    """Implements `SubSearchMessages` for chat models without training for sub-searches."""

    stops: tuple[str, ...] = ("<End Calling Sub Searches>",)
    guard = "<Sub Searches>"
    lead = f"\n{ANSWER}"

    def __init__(self, options: ThinkOptions) -> None:
        self._result_tokens = options.answer_tokens

    def opening(self, question: Question) -> Opening:
        return Opening(conversation(question, _MAIN, question_text(question)))

    def child(self, parent: Thread, call: SubSearchCall) -> ChildSpec | None:  # noqa: ARG002
        """A fresh conversation about the call's text."""
        if not call.line:
            return None
        messages = (Message("system", _CHILD), Message("user", call.line))
        return ChildSpec(call.number, inherit="none", messages=messages)

    def returned(self, child: Thread) -> str:
        """The text after the last `Answer:`; all of it without one."""
        return stated(child.text)

    def result(self, parent: Thread, call: SubSearchCall, child: Thread | None) -> Parts:  # noqa: ARG002
        """A line that names the call, and its result."""
        line = ProtocolText(f"<Result of Sub Search {call.number}>\n")
        if child is None:
            return line, ProtocolText(_NOT_STARTED)
        if not child.result.strip():
            return line, ProtocolText(_NOTHING)
        return line, UntrustedText(child.result.strip(), self._result_tokens), ProtocolText("\n")

    def answer(self, thread: Thread) -> str:
        return stated(thread.text)


def stated(text: str) -> str:
    """The text after the last `Answer:`, stripped; all of it without one."""
    return text.rpartition(ANSWER)[2].strip()


CALLING: Final = "<Calling Sub Searches>"
CALLING_END: Final = "<End Calling Sub Searches>"
RESULTS: Final = "<Sub Searches>"
RESULTS_END: Final = "<End Sub Searches>"
TAGS: Final = (CALLING, CALLING_END, RESULTS, RESULTS_END)

_CALL: Final = re.compile(r"<Start Sub Search (\d{1,4})(?: at level \d{1,2})?>[ \t]*([^\n]*)")
_CALLS: Final = "apr.called"


class Apr(ProtocolGrammar):
    """Replaces spawn blocks by results, as published; `messages` defines calls and results.

    In sub-searches below `levels` a spawn block is plain text; None: the depth of the options
    limits them.
    """

    name = "apr"
    tags = TAGS

    def __init__(
        self, messages: SubSearchMessages, *, levels: int | None = None, also: tuple[str, ...] = ()
    ) -> None:
        self.messages = messages
        self.levels = levels
        self.also = also
        self.lead = messages.lead

    def opening(self, question: Question, *, prompted: bool) -> Opening:  # noqa: ARG002
        """The main search's prompt, which does not depend on `prompted`."""
        return self.messages.opening(question)

    def stops(self, thread: Thread) -> tuple[str, ...]:  # noqa: ARG002
        """The end of a spawn block, and the guard against results by the model."""
        return (*self.messages.stops, self.messages.guard)

    def classify(self, thread: Thread, output: ParsedOutput) -> Move:
        """A spawn block at the end calls sub-searches; any other end ends the search."""
        if output.stop == self.messages.guard:
            return Continue(cut=RESULTS, parts=(ProtocolText(f"{CALLING}\n"),))
        spawns = self.levels is None or thread.depth < self.levels
        calls = _calls(thread.text) if spawns else None
        if calls is None or output.ended not in ("end", "stop"):
            return self._ended(thread, output)
        children = {call: self.messages.child(thread, call) for call in calls}
        thread.memory[_CALLS] = calls
        started = tuple(child for child in children.values() if child is not None)
        if not started:
            return Continue(cut=CALLING, parts=self._results(thread, ()))
        return ForkMove(started, appends=False)

    def join(self, parent: Thread, children: Sequence[Thread]) -> ReplaceJoin:
        """Replace the spawn block by results; the parent never reads its own calls again."""
        return ReplaceJoin(CALLING, self._results(parent, children))

    def refuse(self, thread: Thread, fork: ForkMove, reason: str) -> Move:  # noqa: ARG002
        """The results report that no sub-search was started."""
        return Continue(cut=CALLING, parts=self._results(thread, ()))

    def conclude(self, thread: Thread) -> Parts:
        return (ProtocolText(self.lead),) if self.lead and thread.depth == 0 else ()

    def answer(self, thread: Thread) -> str:
        return self.messages.answer(thread)

    def _ended(self, thread: Thread, output: ParsedOutput) -> Move:
        if thread.depth:
            return Return(self.messages.returned(thread))
        if self.lead and output.ended == "length":
            return Continue()  # unreachable: the runtime makes the thread conclude
        return Answer(self.messages.answer(thread))

    def _results(self, parent: Thread, children: Sequence[Thread]) -> Parts:
        """The block of results, one for each call, in order."""
        by_key = {child.key: child for child in children}
        parts: Parts = (ProtocolText(f"{RESULTS}\n"),)
        for call in parent.memory[_CALLS]:
            parts += self.messages.result(parent, call, by_key.get(call.number))
        return (*parts, ProtocolText(f"{RESULTS_END}\n"))


def _calls(text: str) -> tuple[SubSearchCall, ...] | None:
    """The calls of the spawn block at the end of `text`, one for each number; None without one."""
    _, called, block = text.rpartition(CALLING)
    block, ended, after = block.partition(CALLING_END)
    if not called or not ended or after.strip():
        return None
    first: dict[str, SubSearchCall] = {}
    for found in _CALL.finditer(block):
        first.setdefault(found[1], SubSearchCall(found[1], found[2].strip()))
    return tuple(first.values())


_LOST: Final = "the model was told about sub-searches, not trained to search with them"


def make(model: ModelClient, options: ThinkOptions) -> Strategy:
    """The strategy `apr`.

    Settings. messages: text, for any chat model, whose prompt explains sub-searches; nodes, for a
    model trained on Countdown traces (the published realisation), where the question is the opening
    lines of a trace. For nodes: children, the number per spawn in `Sub Call Budget` (0: the model
    decides); begin, the token that begins a text.

    Raises: `BuildError` for other settings.
    """
    settings = read_settings(
        "apr",
        options.settings,
        {"messages": "text", "children": 0, "begin": "<s>"},
        least={"children": 0},
        choices={"messages": ("text", "nodes")},
    )
    if settings["messages"] == "text":
        grammar = Apr(TextMessages(options))
        grammar.lost_by_prompt = _LOST
    else:
        messages = NodeMessages(settings["begin"], settings["children"])
        grammar = Apr(messages, levels=1, also=(settings["begin"],))
    return GrammarStrategy(grammar, model, options)
