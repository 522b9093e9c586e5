"""Decides whether the results of a plan are enough: an answer, or what the next plan must find.

After the joiner of LLMCompiler (Kim et al., ICML 2024), which cut answers off at a bracket, was
told of no failure, and could not give a typed answer. Knows no plans.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count

from weft.agents.agent import AgentOptions, Observation
from weft.agents.loops.decision import Finish, Replan
from weft.agents.loops.dialogue import Dialogue
from weft.agents.loops.fitting import check_schema
from weft.agents.loops.form import Form
from weft.agents.loops.prompts.joiner import RULES, told
from weft.agents.loops.shown import shown_all
from weft.core.ports import ModelClient
from weft.engine import NodeContext

_OPTIONS = AgentOptions()


class Joiner:
    """Asks `model`, in a prompt of its own. Keeps nothing from one decision to the next.

    Raises: `BuildError` when the schema of the answer is wrong.
    """

    def __init__(self, model: ModelClient, options: AgentOptions = _OPTIONS) -> None:
        if options.schema is not None:
            check_schema(options.schema)
        self._model = model
        self._options = options
        self._form = Form(replan=True, answer=options.schema)

    async def decide(
        self,
        context: NodeContext,
        question: str,
        observations: Sequence[Observation],
        last_round: bool,
        *,
        round: int = 1,  # noqa: A002 - the word for it
    ) -> Finish | Replan:
        """What to do, now that `observations` (those of all rounds, in order) are known.

        In the last round the model has to answer. It is asked in the node `join{round}`; when its
        reply cannot be used, again in `join{round}_2` and so on.

        Raises: `AgentError` when the model cannot be asked, or writes nothing that can be used;
        `ModelError` when it cannot be started.
        """
        names = chain([f"join{round}"], (f"join{round}_{number}" for number in count(2)))
        dialogue = await Dialogue.begin(
            context, self._model, self._options, RULES, self._form, names
        )
        lines = shown_all(observations, dialogue.half_chars)
        dialogue.tell(told(question, lines, last=last_round))
        reply = await dialogue.ask(context, self._form.last() if last_round else self._form)
        if reply.replan is not None:
            return Replan(reply.replan)
        return Finish(reply.answer, reply.thought)
