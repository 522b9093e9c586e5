"""The served model's own tool calls, several at once, until it answers without calling any.

The protocol of chat models with tools: calls, tool messages, answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from weft.agents.agent import Answer, Observation
from weft.agents.chat.conversation import CORRECTIONS, Conversation
from weft.agents.chat.model_call import ModelGaveUp, ask, gave_up_error, is_costly, ready
from weft.agents.chat.model_output import decode_json, excerpt, fit_answer, text_of
from weft.agents.chat.observations import BRIEF_CHARS, RESULT_CHARS, format_outcome
from weft.agents.chat.prompt import LAST, NO_TEXT, answer_words, left_out
from weft.agents.chat.repetition import repeats_itself
from weft.agents.loops.base import LoopAgent, partial_answer
from weft.agents.loops.tool_calls import Call, RepeatedCalls
from weft.core.errors import CapabilityError, ModelOutputError
from weft.core.events import Outcome
from weft.core.ports import Capabilities, ModelRequest, Sampling
from weft.core.values import Completion, JsonSchema, Message, ToolCall
from weft.engine import NodeContext
from weft.engine.graph.content_digest import DigestTexts

PARALLEL_REACT_PROMPT_VERSION: Final = "parallel-react-1"

_RULES: Final = """\
You answer a question with the help of tools.

Rules:
- Make all calls that do not need one another's results at once.
- Use only results that you were told; never make one up.
- A call that failed fails again: change it, try another tool, or do without.
- When the results are enough, answer the question itself: no account of how the answer was \
found."""


def opening(question: str, schema: JsonSchema | None, instructions: str) -> tuple[Message, ...]:
    """The messages that begin the conversation; tools are not among them, they travel apart."""
    answer = "" if schema is None else f"The answer is {answer_words(schema)}"
    parts = [_RULES, answer, instructions]
    return (
        Message("system", "\n\n".join(part for part in parts if part)),
        Message("user", question),
    )


def unusable(problem: str, schema: JsonSchema | None, *, final: bool) -> str:
    """That a reply cannot be used, and what is wanted instead."""
    told = f"Your reply cannot be used: {problem}."
    if schema is not None:
        return f"{told} Give the answer and nothing else: {answer_words(schema)}"
    return f"{told} Answer in a text." if final else f"{told} Call tools, or answer in a text."


_LEAST_CHARS: Final = 20


class ParallelReactAgent(LoopAgent):
    """The agent that calls tools the model's own way: `make_agent("parallel-react", ...)`.

    At most `options.rounds` rounds of calls, and `options.calls` calls in all; what is above is
    left out, and the model told so. When they are used up, or the model keeps repeating itself, it
    is asked for its answer.

    Raises, when it works: `CapabilityError` where the model has no tool calls of its own.
    """

    name = "parallel-react"

    async def answer(self, context: NodeContext, question: str) -> Answer:
        """See `LoopAgent.answer`."""
        options = self.options
        limit = options.calls if self.tools.specs() else 0
        capabilities = await ready(context, self.model)
        if not capabilities.tools:
            raise CapabilityError(
                f"{self.model.model} has no tool calls of its own",
                hint='the agents "react" and "divide" work with any model',
            )
        talk = _ToolChat(self, capabilities, question)
        made: list[Observation] = []
        repeats = RepeatedCalls(self.tools)
        rounds = 0
        last = not limit
        while True:
            try:
                turn = await talk.next(context, final=last)
            except ModelGaveUp as error:
                found = Answer(None, tuple(made), rounds)
                return partial_answer(error, made, options.schema, found)
            if not turn.calls:
                return Answer(turn.value, tuple(made), rounds)
            rounds += 1
            asked = turn.calls[: limit - len(made)]
            calls = [_call(number, call) for number, call in enumerate(asked, len(made) + 1)]
            observed = await repeats.call_all(context, f"calls{rounds}", calls)
            made += observed
            last = rounds == options.rounds or len(made) == limit or repeats.too_many
            talk.tell(turn, calls, observed, LAST if last else "")


@dataclass(frozen=True, slots=True)
class _AssistantTurn:
    """What the model wrote: `calls`, perhaps with a `text` before them; or else an answer."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    value: Any = None


class _ToolChat:
    """One conversation, in which calls and their results have messages of their own."""

    def __init__(
        self, agent: ParallelReactAgent, capabilities: Capabilities, question: str
    ) -> None:
        options = agent.options
        self._model = agent.model
        self._specs = agent.tools.specs()
        self._schema = options.schema
        self._constrained = options.constrain != "never" and capabilities.structured_output
        self._sampling = Sampling(options.max_tokens, options.temperature)
        self._texts = DigestTexts()
        self._names = (f"turn{number}" for number in count(1))
        self._ids: set[str] = set()
        self._conversation = Conversation(
            opening(question, options.schema, options.instructions),
            context_tokens=capabilities.max_context_tokens,
            answer_tokens=options.max_tokens,
        )

    async def next(self, context: NodeContext, *, final: bool) -> _AssistantTurn:
        """The model's next calls or its answer; `final`: only an answer will do.

        Raises: `AgentError` when the model cannot be asked, or writes nothing that can be used.
        """
        for asked in range(1, 2 + CORRECTIONS):
            completion = await self._asked(context, final)
            if completion.tool_calls and not final:
                return _AssistantTurn(completion.text, completion.tool_calls)
            self._conversation.say(Message("assistant", completion.text or NO_TEXT))
            try:
                value = await asyncio.to_thread(_value, completion, self._schema)
                return _AssistantTurn(completion.text, value=value)
            except ModelOutputError as error:
                problem = str(error)
            if asked > 1 and is_costly(completion):
                break
            context.log(f"the reply cannot be used: {problem}")
            final = final or bool(completion.text.strip())  # it has begun to answer
            wanted = unusable(problem, self._schema if final else None, final=final)
            self._conversation.say(Message("user", wanted))
        raise gave_up_error(context, completion, problem, asked)

    async def _asked(self, context: NodeContext, final: bool) -> Completion:
        self._conversation.fit(context.log)
        # The tools stay in the last request as well: without them its prompt would begin anew.
        request = ModelRequest(
            self._conversation.messages,
            sampling=self._sampling,
            schema=self._schema if final and self._constrained else None,
            tools=self._specs,
            tool_choice="none" if final else "auto",
        )
        completion = await ask(context, next(self._names), self._model, request, self._texts)
        self._conversation.measure(completion.usage)
        return completion

    def tell(
        self,
        turn: _AssistantTurn,
        calls: Sequence[Call],
        observed: Sequence[Observation],
        note: str,
    ) -> None:
        """Put down the `calls` that were made of those in `turn`, and what they came to."""
        made = tuple(
            ToolCall(self._id(asked.id, call.number), call.tool, _arguments(asked, call))
            for asked, call in zip(turn.calls, calls, strict=False)
        )
        self._conversation.say(Message("assistant", turn.text, made))
        share = min(RESULT_CHARS, max(_LEAST_CHARS, self._conversation.half_chars // len(made)))
        notes = [left_out(len(turn.calls) - len(made)), note]
        for place, (call, observation) in enumerate(zip(made, observed, strict=True)):
            said = notes if place == len(made) - 1 else []
            full = _content(observation.outcome, share, said)
            brief = _content(observation.outcome, min(share, BRIEF_CHARS), said)
            self._conversation.say(Message("tool", full, tool_call_id=call.id), brief)

    def _id(self, given: str, number: int) -> str:
        """The server's id for a call, where it tells the calls of a conversation apart."""
        own = given if given and given not in self._ids else f"call{number:05d}"
        self._ids.add(own)
        return own


def _call(number: int, asked: ToolCall) -> Call:
    try:
        arguments = decode_json(asked.arguments or "{}", "what it is called with")
    except ModelOutputError as error:
        return Call(number, asked.name, problem=error.message)
    if not isinstance(arguments, Mapping):
        return Call(number, asked.name, problem="what it is called with is not an object")
    return Call(number, asked.name, arguments)


def _arguments(asked: ToolCall, call: Call) -> str:
    """The arguments as they are said to the server again, which reads them as JSON."""
    return "{}" if call.problem else asked.arguments or "{}"


def _content(outcome: Outcome, chars: int, notes: Sequence[str]) -> str:
    shown = excerpt(text_of(outcome.value), chars) if outcome.ok else format_outcome(outcome, chars)
    return "\n\n".join([shown or '""', *(note for note in notes if note)])


def _value(completion: Completion, schema: JsonSchema | None) -> Any:
    if completion.tool_calls:
        raise ModelOutputError("no call can be made any more")
    if repeats_itself(completion.text):
        raise ModelOutputError("it repeats itself", hint="say each thing once, and then end")
    if completion.finish_reason == "length":
        raise ModelOutputError(
            f"it was cut off after {completion.usage.completion_tokens or 'too many'} tokens",
            hint="write less",
        )
    return fit_answer(completion.text, schema)
