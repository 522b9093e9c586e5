"""Decides whether a plan's results are enough: an answer, or what the next plan must find.

After the joiner of LLMCompiler (Kim et al., ICML 2024), which cut answers off at a bracket, saw no
failures, and could not give a typed answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Final

from weft.agents.agent import AgentOptions, Observation, sampling_of
from weft.agents.chat.conversation import begin_dialogue
from weft.agents.chat.model_call import ask, ready
from weft.agents.chat.model_output import check_schema
from weft.agents.chat.observations import format_observations
from weft.agents.chat.prompt import results
from weft.agents.chat.reply_format import ReplyFormat
from weft.core.errors import AgentError
from weft.core.ports import ModelClient, ModelRequest
from weft.engine import NodeContext
from weft.planner.compact import COMPACT, conclusion_messages


@dataclass(frozen=True, slots=True)
class Finish:
    """The question is answered. `value` has the requested form; `thought` is the reason."""

    value: Any
    thought: str = ""


@dataclass(frozen=True, slots=True)
class Replan:
    """Something is missing; `thought` describes it for the planner of the next round."""

    thought: str


JOINER_PROMPT_VERSION: Final = "joiner-1"

RULES: Final = """\
You are told a question and the results of calls that were planned to answer it. Decide whether \
the results are enough. If they are, answer. If they are not, say what is missing, so that more \
calls can be planned.

Rules:
- Use only the results; never make one up.
- Results that failed or were left out are shown with their reason. If the others are enough, \
answer without them.
- Ask for more only when other calls can be expected to help, and say exactly what they must find.
- Answer the question itself: no account of how the answer was found."""

_NO_MORE: Final = "Nothing more can be planned. Answer now with what you know."


def joiner_prompt(question: str, lines: Sequence[str], *, last: bool) -> str:
    """The question and the results of all rounds so far; later rounds share its beginning."""
    return f"Question: {question}\n\n{results(lines, _NO_MORE if last else '')}"


_OPTIONS = AgentOptions()
_CONCLUSION_CHARS: Final = 8_000


class Joiner:
    """Decides by calls of `model` with a prompt of their own; stateless.

    A trained planner (`plan_form`) has learnt to answer from results in a text; it does not ask for
    more.

    Raises: `BuildError` for an invalid schema of the answer.
    """

    def __init__(self, model: ModelClient, options: AgentOptions = _OPTIONS) -> None:
        if options.schema is not None:
            check_schema(options.schema)
        self._model = model
        self._options = options
        self._form = ReplyFormat(replan=True, answer=options.schema)

    async def decide(
        self,
        context: NodeContext,
        question: str,
        observations: Sequence[Observation],
        last_round: bool,
        *,
        round: int = 1,  # noqa: A002 - the term of LLMCompiler
    ) -> Finish | Replan:
        """The decision after `observations`, those of all rounds in order.

        In the last round the model has to answer. The call is the node `join{round}`; corrections
        are `join{round}_2` and so on.

        Raises: `AgentError` when the call fails, or no reply is usable; `ModelError` when the model
        cannot be started.
        """
        capabilities = await ready(context, self._model)
        if capabilities.plan_form == COMPACT and self._may_conclude(observations):
            return await self._conclude(context, question, observations, round)
        names = chain([f"join{round}"], (f"join{round}_{number}" for number in count(2)))
        dialogue = await begin_dialogue(
            context, self._model, self._options, RULES, self._form, names
        )
        lines = format_observations(observations, dialogue.half_chars)
        dialogue.tell(joiner_prompt(question, lines, last=last_round))
        reply = await dialogue.ask(context, self._form.last() if last_round else self._form)
        if reply.replan is not None:
            return Replan(reply.replan)
        return Finish(reply.answer, reply.thought)

    def _may_conclude(self, observations: Sequence[Observation]) -> bool:
        """Whether a trained planner has learnt to answer from such results: in a text."""
        return self._options.schema is None and any(one.outcome.ok for one in observations)

    async def _conclude(
        self,
        context: NodeContext,
        question: str,
        observations: Sequence[Observation],
        round: int,  # noqa: A002 - the term of LLMCompiler
    ) -> Finish:
        lines = format_observations(observations, _CONCLUSION_CHARS)
        request = ModelRequest(
            conclusion_messages(question, lines),
            sampling=sampling_of(self._options),
            extra=self._options.extra_body or {},
        )
        answer = await ask(context, f"join{round}", self._model, request)
        if not answer.text.strip():
            raise AgentError(f"{self._model.model} concluded with an empty text", node=context.node)
        return Finish(answer.text.strip())
