"""Rounds of independent calls: divide, make them in parallel, aggregate, decide.

After DTA-Llama (Divide-Then-Aggregate, Zhu et al., ACL 2025): in each turn the model lists calls,
or answers. Unlike in a plan, a call is written only when the results before it are known.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from weft.agents.agent import Answer, Observation
from weft.agents.chat.conversation import Dialogue
from weft.agents.chat.model_call import ModelGaveUp
from weft.agents.chat.prompt import LAST, left_out
from weft.agents.chat.reply import ParsedReply
from weft.agents.chat.reply_format import ReplyFormat
from weft.agents.loops.base import LoopAgent, partial_answer
from weft.agents.loops.tool_calls import Call, RepeatedCalls
from weft.engine import NodeContext

DIVIDE_PROMPT_VERSION: Final = "divide-1"

RULES: Final = """\
You answer a question in few rounds. In each round you list all calls that can be made now, \
because none of them needs the result of another; they are made in parallel, and you are then told \
all their results. Calls that need those results belong to the next round. When the results are \
enough, you answer.

Rules:
- Divide the question into parts first, and ask for all of them at once.
- Use only results that you were told; never make one up.
- A call that failed fails again: change it, try another tool, or do without.
- Do not make a call twice.
- Answer as soon as the results are enough."""


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
        form = ReplyFormat(specs, limit, many=True, answer=options.schema)
        dialogue = await Dialogue.begin(context, self.model, options, RULES, form)
        dialogue.tell(f"Question: {question}")
        work = _DivideRun(self, dialogue, form)
        try:
            return await work.answer(context)
        except ModelGaveUp as error:
            return partial_answer(error, work.made, options.schema, work.found(None))


class _DivideRun:
    """The rounds of one run, and the calls `made` so far."""

    def __init__(self, agent: DivideAgent, dialogue: Dialogue, form: ReplyFormat) -> None:
        self._options = agent.options
        self._dialogue = dialogue
        self._form = form
        self._repeats = RepeatedCalls(agent.tools)
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

    async def _take(self, context: NodeContext, reply: ParsedReply) -> None:
        """Make the calls of `reply`, and tell the model what they came to."""
        self._rounds += 1
        calls = [
            Call(number, wanted.tool, wanted.arguments)
            for number, wanted in enumerate(reply.calls, len(self.made) + 1)
        ]
        observed = await self._repeats.call_all(context, f"calls{self._rounds}", calls)
        self.made += observed
        self._dialogue.report(observed, left_out(reply.left_out), "" if self._more else LAST)
