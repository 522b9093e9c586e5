"""APR by prompt: any chat model is told how to call sub-searches, with messages in its own words.

Knows the instructions and where an answer stands; the spawn block itself is the grammar's.
"""

from __future__ import annotations

from typing import Final

from weft.core.values import Message
from weft.reasoning.asked import asked, conversation
from weft.reasoning.moves import ChildSpec, Opening
from weft.reasoning.options import ThinkOptions
from weft.reasoning.parts import Parts, Said, Text
from weft.reasoning.protocols.apr_messages import Call
from weft.reasoning.question import Question
from weft.reasoning.thread.thread import Thread

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
    """Implements `Messages` for chat models that know no sub-searches."""

    stops: tuple[str, ...] = ("<End Calling Sub Searches>",)
    guard = "<Sub Searches>"
    lead = f"\n{ANSWER}"

    def __init__(self, options: ThinkOptions) -> None:
        self._result_tokens = options.answer_tokens

    def opening(self, question: Question) -> Opening:
        """The question, and how helpers are called."""
        return Opening(conversation(question, _MAIN, asked(question)))

    def child(self, parent: Thread, call: Call) -> ChildSpec | None:  # noqa: ARG002
        """A fresh conversation about the message."""
        if not call.line:
            return None
        messages = (Message("system", _CHILD), Message("user", call.line))
        return ChildSpec(call.number, inherit="none", messages=messages)

    def returned(self, child: Thread) -> str:
        """What stands after the last `Answer:`; all of it without one."""
        return stated(child.text)

    def result(self, parent: Thread, call: Call, child: Thread | None) -> Parts:  # noqa: ARG002
        """A line that names the call, and what its helper stated."""
        line = Text(f"<Result of Sub Search {call.number}>\n")
        if child is None:
            return line, Text(_NOT_STARTED)
        if not child.result.strip():
            return line, Text(_NOTHING)
        return line, Said(child.result.strip(), self._result_tokens), Text("\n")

    def answer(self, thread: Thread) -> str:
        """What stands after the last `Answer:`; all of it without one."""
        return stated(thread.text)


def stated(text: str) -> str:
    """The text after the last `Answer:`, without white space around it; all of it without one."""
    return text.rpartition(ANSWER)[2].strip()
