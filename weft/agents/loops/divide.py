"""Rounds of calls that do not need one another: divide, make them in parallel, aggregate, decide.

After DTA-Llama (Divide-Then-Aggregate, Zhu et al., ACL 2025): in each turn the model lists calls,
or answers. Unlike in a plan, a call is only written once the results before it are known.
"""

from __future__ import annotations

from dataclasses import replace

from weft.agents.agent import Answer, Observation
from weft.agents.loops.base import LoopAgent
from weft.agents.loops.call import Call, call_all
from weft.agents.loops.dialogue import Dialogue
from weft.agents.loops.form import Form
from weft.agents.loops.prompts.divide import RULES
from weft.agents.loops.prompts.turns import LAST, left_out
from weft.engine import NodeContext


class DivideAgent(LoopAgent):
    """The agent that divides: `make_agent("divide", ...)`.

    At most `options.rounds` rounds of calls, and `options.calls` calls in all; what is above is
    left out, and the model told so. When they are used up, the model is asked for its answer.
    """

    name = "divide"

    async def answer(self, context: NodeContext, question: str) -> Answer:
        """See `LoopAgent.answer`."""
        options, specs = self.options, self.tools.specs()
        limit = options.calls if specs else 0
        form = Form(specs, limit, many=True, answer=options.schema)
        dialogue = await Dialogue.begin(context, self.model, options, RULES, form)
        dialogue.tell(f"Question: {question}")
        made: list[Observation] = []
        rounds = 0
        while rounds < options.rounds and len(made) < limit:
            reply = await dialogue.ask(context, replace(form, calls=limit - len(made)))
            if not reply.calls:
                return Answer(reply.answer, tuple(made), rounds, thought=reply.thought)
            rounds += 1
            calls = [
                Call(number, wanted.tool, wanted.arguments)
                for number, wanted in enumerate(reply.calls, len(made) + 1)
            ]
            observed = await call_all(context, f"calls{rounds}", self.tools, calls)
            made += observed
            last = rounds == options.rounds or len(made) == limit
            dialogue.report(observed, left_out(reply.left_out), LAST if last else "")
        reply = await dialogue.ask(context, form.last())
        return Answer(reply.answer, tuple(made), rounds, thought=reply.thought)
