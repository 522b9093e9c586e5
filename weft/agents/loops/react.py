"""Thought, one call, its result, and so on until the answer: the sequential baseline.

After ReAct (Yao et al., ICLR 2023), with typed calls in place of free text, and with a stop for a
model that turns in circles.
"""

from __future__ import annotations

from typing import Final

from weft.agents.agent import Answer, Observation
from weft.agents.loops.base import LoopAgent
from weft.agents.loops.call import Call, call_all
from weft.agents.loops.dialogue import Dialogue
from weft.agents.loops.form import Form
from weft.agents.loops.prompts.react import RULES
from weft.agents.loops.prompts.turns import LAST, left_out, repeated
from weft.agents.loops.repeats import Repeats
from weft.agents.loops.reply import Reply
from weft.core.ports import ToolRunner
from weft.engine import NodeContext

REPEATS: Final = 2
"""So many calls that were made before are told to the model; then it has to answer."""


class ReactAgent(LoopAgent):
    """The agent that goes step by step: `make_agent("react", ...)`.

    A round is one call, so `options.calls` bounds it, and `options.rounds` does not. When the calls
    are used up, or the model keeps repeating itself, it is asked for its answer.
    """

    name = "react"

    async def answer(self, context: NodeContext, question: str) -> Answer:
        """See `LoopAgent.answer`."""
        specs = self.tools.specs()
        form = Form(specs, 1 if specs and self.options.calls else 0, answer=self.options.schema)
        dialogue = await Dialogue.begin(context, self.model, self.options, RULES, form)
        dialogue.tell(f"Question: {question}")
        steps = _Steps(self.tools, dialogue, self.options.calls)
        while True:
            reply = await dialogue.ask(context, form if steps.left else form.last())
            if not reply.calls:
                made = tuple(steps.made)
                return Answer(reply.answer, made, len(made), thought=reply.thought)
            await steps.take(context, reply)


class _Steps:
    """The calls of one run, `made` so far, and what the model is told of them."""

    def __init__(self, tools: ToolRunner, dialogue: Dialogue, limit: int) -> None:
        self._tools = tools
        self._dialogue = dialogue
        self._limit = limit
        self._repeats = Repeats()
        self._repeated = 0
        self.made: list[Observation] = []

    @property
    def left(self) -> bool:
        """Whether another call may be made."""
        return len(self.made) < self._limit and self._repeated < REPEATS

    async def take(self, context: NodeContext, reply: Reply) -> None:
        """Make the call of `reply`, unless it was made before, and tell the model."""
        wanted = reply.calls[0]
        before = self._repeats.of(wanted.tool, wanted.arguments)
        if before is not None:
            self._repeated += 1
            context.log(f"not made again: the same as call {before}")
            self._dialogue.tell("\n\n".join([repeated(before), *self._last()]))
            return
        number = len(self.made) + 1
        call = Call(number, wanted.tool, wanted.arguments)
        observed = await call_all(context, f"calls{number}", self._tools, [call])
        self.made += observed
        self._repeats.note(observed[0])
        self._dialogue.report(observed, left_out(reply.left_out), *self._last())

    def _last(self) -> list[str]:
        return [] if self.left else [LAST]
