"""Thought, one call, its result, and so on until the answer: the sequential baseline.

After ReAct (Yao et al., ICLR 2023), with typed calls instead of free text, and with a stop for a
model that repeats itself.
"""

from __future__ import annotations

from typing import Final

from weft.agents.agent import Answer, Observation
from weft.agents.chat.conversation import Dialogue
from weft.agents.chat.model_call import ModelGaveUp
from weft.agents.chat.prompt import LAST, left_out, repeated
from weft.agents.chat.reply import ParsedReply
from weft.agents.chat.reply_format import ReplyFormat
from weft.agents.loops.base import LoopAgent, partial_answer
from weft.agents.loops.tool_calls import Call, RepeatedCalls
from weft.core.ports import ToolRunner
from weft.engine import NodeContext

REACT_PROMPT_VERSION: Final = "react-1"

RULES: Final = """\
You answer a question step by step. In each reply you either call one tool, and are then told its \
result, or answer.

Rules:
- Before each call, think about what is still missing.
- Use only results that you were told; never make one up.
- A call that failed fails again: change it, try another tool, or do without.
- Do not make a call twice.
- Answer as soon as the results are enough."""


class ReactAgent(LoopAgent):
    """The agent that goes step by step: `make_agent("react", ...)`.

    A round is one call, so `options.calls` bounds it, and `options.rounds` does not. When the calls
    are used up, or the model keeps repeating itself, it is asked for its answer.
    """

    name = "react"

    async def answer(self, context: NodeContext, question: str) -> Answer:
        """See `LoopAgent.answer`."""
        specs = self.tools.specs()
        form = ReplyFormat(
            specs, 1 if specs and self.options.calls else 0, answer=self.options.schema
        )
        dialogue = await Dialogue.begin(context, self.model, self.options, RULES, form)
        dialogue.tell(f"Question: {question}")
        steps = _ReactRun(self.tools, dialogue, self.options.calls)
        while True:
            try:
                reply = await dialogue.ask(context, form if steps.left else form.last())
            except ModelGaveUp as error:
                found = Answer(None, tuple(steps.made), len(steps.made))
                return partial_answer(error, steps.made, self.options.schema, found)
            if not reply.calls:
                made = tuple(steps.made)
                return Answer(reply.answer, made, len(made), thought=reply.thought)
            await steps.take(context, reply)


class _ReactRun:
    """The calls of one run, `made` so far, and what the model is told of them."""

    def __init__(self, tools: ToolRunner, dialogue: Dialogue, limit: int) -> None:
        self._dialogue = dialogue
        self._limit = limit
        self._repeats = RepeatedCalls(tools)
        self.made: list[Observation] = []

    @property
    def left(self) -> bool:
        """Whether another call may be made."""
        return len(self.made) < self._limit and not self._repeats.too_many

    async def take(self, context: NodeContext, reply: ParsedReply) -> None:
        """Make the call of `reply`, unless it was made before, and tell the model."""
        wanted = reply.calls[0]
        call = Call(len(self.made) + 1, wanted.tool, wanted.arguments)
        before = self._repeats.before(call)
        observed = await self._repeats.call_all(context, f"calls{call.number}", [call])
        if before is not None:
            self._dialogue.tell("\n\n".join([repeated(before.number), *self._last()]))
            return
        self.made += observed
        self._dialogue.report(observed, left_out(reply.left_out), *self._last())

    def _last(self) -> list[str]:
        return [] if self.left else [LAST]
