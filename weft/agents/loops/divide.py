"""Rounds of calls that do not need one another: divide, make them in parallel, aggregate, decide.

After DTA-Llama (Divide-Then-Aggregate, Zhu et al., ACL 2025): in each turn the model lists calls,
or answers. Unlike in a plan, a call is only written once the results before it are known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from weft.agents.agent import Answer, Observation
from weft.agents.loops.base import LoopAgent
from weft.agents.loops.call import Call
from weft.agents.loops.dialogue import Dialogue
from weft.agents.loops.form import Form
from weft.agents.loops.partial import partial_answer
from weft.agents.loops.prompts.divide import RULES
from weft.agents.loops.prompts.turns import LAST, left_out
from weft.agents.loops.repeats import Repeats
from weft.agents.loops.reply import Reply
from weft.agents.loops.turn import ModelGaveUp
from weft.engine import NodeContext


class DivideAgent(LoopAgent):
    """The agent that divides: `make_agent("divide", ...)`.

    At most `options.rounds` rounds of calls, and `options.calls` calls in all; what is above is
    left out, and the model told so. When they are used up, or the model keeps repeating itself, it
    is asked for its answer.
    """

    name = "divide"

    async def answer(self, context: NodeContext, question: str) -> Answer:
        """See `LoopAgent.answer`."""
        options, specs = self.options, self.tools.specs()
        limit = options.calls if specs else 0
        form = Form(specs, limit, many=True, answer=options.schema)
        dialogue = await Dialogue.begin(context, self.model, options, RULES, form)
        dialogue.tell(f"Question: {question}")
        work = _Rounds(self, dialogue, form)
        try:
            return await work.answer(context)
        except ModelGaveUp as error:
            return partial_answer(error, work.made, options.schema, work.found(None))


class _Rounds:
    """The rounds of one run, and the calls `made` so far."""

    def __init__(self, agent: DivideAgent, dialogue: Dialogue, form: Form) -> None:
        self._options = agent.options
        self._dialogue = dialogue
        self._form = form
        self._repeats = Repeats(agent.tools)
        self._rounds = 0
        self.made: list[Observation] = []

    async def answer(self, context: NodeContext) -> Answer:
        """Rounds of calls, until the model answers. Raises: `AgentError`."""
        while self._more:
            form = replace(self._form, calls=self._form.calls - len(self.made))
            reply = await self._dialogue.ask(context, form)
            if not reply.calls:
                return self.found(reply.answer, reply.thought)
            await self._take(context, reply)
        reply = await self._dialogue.ask(context, self._form.last())
        return self.found(reply.answer, reply.thought)

    def found(self, value: Any, thought: str = "") -> Answer:
        """The answer with everything that led to it."""
        return Answer(value, tuple(self.made), self._rounds, thought=thought)

    @property
    def _more(self) -> bool:
        left = self._rounds < self._options.rounds and len(self.made) < self._form.calls
        return left and not self._repeats.too_many

    async def _take(self, context: NodeContext, reply: Reply) -> None:
        """Make the calls of `reply`, and tell the model what they came to."""
        self._rounds += 1
        calls = [
            Call(number, wanted.tool, wanted.arguments)
            for number, wanted in enumerate(reply.calls, len(self.made) + 1)
        ]
        observed = await self._repeats.call_all(context, f"calls{self._rounds}", calls)
        self.made += observed
        self._dialogue.report(observed, left_out(reply.left_out), "" if self._more else LAST)
