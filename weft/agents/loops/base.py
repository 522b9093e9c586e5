"""The base of loops that converse with their model, and partial answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final

from weft.agents.agent import AgentOptions, Answer, Observation
from weft.agents.chat.conversation import Dialogue, begin_dialogue
from weft.agents.chat.model_call import ModelGaveUp
from weft.agents.chat.model_output import check_schema
from weft.agents.chat.observations import RESULT_CHARS, format_observation, format_observations
from weft.agents.chat.prompt import LAST, left_out, repeated
from weft.agents.chat.reply_format import ReplyFormat
from weft.agents.loops.tool_calls import Call, RepeatedCalls
from weft.core.errors import AgentError
from weft.core.ports import ModelClient, ToolRunner
from weft.core.values import JsonSchema
from weft.durability.calls import GuardedTools
from weft.engine import Inputs, NodeContext, NodeFn, Partial

_CHARS: Final = 4 * RESULT_CHARS


def partial_answer(
    error: AgentError, calls: Sequence[Observation], schema: JsonSchema | None, found: Answer
) -> Answer:
    """`found`, with the results of `calls` in place of the missing answer.

    Raises: `error`, where no call has a result, or where the answer has a schema; it names the last
    call that failed, which is often why the model did not come to an answer.
    """
    error = _with_failed_call(error, calls)
    results = [call for call in calls if call.outcome.ok and call.outcome.via != "cache"]
    if schema is not None or not results:
        raise error
    return replace(
        found, value="\n".join(format_observations(results, _CHARS)), partial=error.message
    )


def _with_failed_call(error: AgentError, calls: Sequence[Observation]) -> AgentError:
    failed = [call for call in calls if call.outcome.failure is not None and call.outcome.attempts]
    if not failed:
        return error
    line = format_observation(failed[-1])
    message = f"{error.message}; the last call that failed: {line}"
    return type(error)(message, node=error.node, hint=error.hint)


def as_node_value(answer: Answer) -> Answer | Partial:
    """`answer` as a node value: a partial answer makes its run partial."""
    if not answer.partial:
        return answer
    error = AgentError(
        f"the answer is not complete, it lists results of calls: {answer.partial}",
        hint="ask a larger model, or ask for less",
    )
    return Partial(answer, error.failure())


_OPTIONS = AgentOptions()


class LoopAgent(ABC):
    """An `Agent` over `tools` and `model`.

    Raises: `BuildError` for an invalid schema of the answer.
    """

    name: ClassVar[str]

    def __init__(
        self, tools: ToolRunner, model: ModelClient, options: AgentOptions = _OPTIONS
    ) -> None:
        if options.schema is not None:
            check_schema(options.schema)
        self.tools = GuardedTools(tools)
        self.model = model
        self.options = options

    def work(self, question: str) -> NodeFn:
        """See `Agent.work`."""

        async def work(context: NodeContext, _: Inputs) -> Answer | Partial:
            return as_node_value(await self.answer(context, question))

        return work

    @abstractmethod
    async def answer(self, context: NodeContext, question: str) -> Answer:
        """The answer to `question`. Raises: `AgentError`, `ModelError`."""


class RoundAgent(LoopAgent):
    """An agent whose model requests calls, round by round, until it answers.

    At most `options.rounds` rounds of calls, and `options.calls` calls in all; further calls are
    left out, with a note to the model. When the limits are reached, or the model keeps repeating
    itself, only an answer is allowed. Without `many`, a round is one call, `options.rounds` does
    not apply, and a repeated call does not count.
    """

    rules: ClassVar[str]
    many: ClassVar[bool] = True

    async def _begin(self, context: NodeContext, question: str, form: ReplyFormat) -> Dialogue:
        """The dialogue about `question`, whose first reply has the format `form`."""
        dialogue = await begin_dialogue(context, self.model, self.options, self.rules, form)
        dialogue.tell(f"Question: {question}")
        return dialogue

    def _state(self) -> str:
        """What the results of calls depend on: an equal call in another state is no repetition."""
        return ""

    def _observe(self, calls: Sequence[Observation]) -> None:
        """Take note of the calls of a round, restored ones included."""

    async def answer(self, context: NodeContext, question: str) -> Answer:
        options, specs = self.options, self.tools.specs()
        limit = options.calls if specs else 0
        most_rounds = options.rounds if self.many else limit
        form = ReplyFormat(specs, limit, many=self.many, answer=options.schema)
        dialogue = await self._begin(context, question, form)
        repeats, made, rounds = RepeatedCalls(self.tools, self._state), list[Observation](), 0
        more = bool(limit)
        while True:
            left = limit - len(made) if self.many else 1
            try:
                wanted = replace(form, calls=left) if more else form.last()
                reply = await dialogue.ask(context, wanted)
            except ModelGaveUp as error:
                found = Answer(None, tuple(made), rounds)
                return partial_answer(error, made, options.schema, found)
            if not reply.calls:
                return Answer(reply.answer, tuple(made), rounds, thought=reply.thought)
            calls = [
                Call(number, each.tool, each.arguments, each.problem)
                for number, each in enumerate(reply.calls, len(made) + 1)
            ]
            before = None if self.many else repeats.before(calls[0])
            observed = await repeats.call_all(context, f"calls{rounds + 1}", calls)
            if before is None:
                rounds += 1
                made += observed
                self._observe(observed)
            more = rounds < most_rounds and len(made) < limit and not repeats.too_many
            last = [] if more else [LAST]
            if before is None:
                dialogue.report(observed, left_out(reply.left_out), *last)
            else:
                dialogue.tell("\n\n".join([repeated(before.number), *last]))
