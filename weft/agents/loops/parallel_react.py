"""The served model's own tool calls, several at once, until it answers without any.

The protocol of chat models with tools: calls, tool messages, answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.agents.agent import AgentOptions, Observation
from weft.agents.chat.conversation import Dialogue
from weft.agents.chat.model_call import ready
from weft.agents.chat.model_output import decode_json, excerpt, fit_answer, text_of
from weft.agents.chat.observations import (
    BRIEF_CHARS,
    RESULT_CHARS,
    format_call,
    format_outcome,
)
from weft.agents.chat.prompt import answer_words
from weft.agents.chat.reply import ParsedReply, RequestedCall, check_repetition, cut_off_error
from weft.agents.chat.reply_format import ReplyFormat
from weft.agents.loops.base import RoundAgent
from weft.core.errors import CapabilityError, ModelOutputError
from weft.core.events import Outcome
from weft.core.generated_text import is_blank, without_thought
from weft.core.ports import Capabilities, ModelClient, ModelRequest
from weft.core.values import Completion, JsonSchema, Message, ToolCall, ToolSpec
from weft.engine import NodeContext

PARALLEL_REACT_PROMPT_VERSION: Final = "parallel-react-1"
_CALL_MARKS: Final = ("<tool_call>", "[TOOL_CALLS]")
"""What a model writes before a call where the server does not parse its calls."""

_RULES: Final = """\
You answer a question with the help of tools.

Rules:
- Make all calls that do not need one another's results at once.
- Use only results that you were told; never make one up.
- A call that failed fails again: change it, try another tool, or do without.
- When the results are enough, answer the question itself: no account of how the answer was \
found."""


def opening(question: str, schema: JsonSchema | None, instructions: str) -> tuple[Message, ...]:
    """The first messages of the conversation; the request carries the tools separately."""
    answer = "" if schema is None else f"The answer is {answer_words(schema)}"
    parts = [_RULES, answer, instructions]
    return (
        Message("system", "\n\n".join(part for part in parts if part)),
        Message("user", question),
    )


def unusable(problem: str, schema: JsonSchema | None, *, final: bool) -> str:
    """The correction of an unusable reply."""
    reason = f"Your reply cannot be used: {problem}."
    if schema is not None:
        return f"{reason} Give the answer and nothing else: {answer_words(schema)}"
    return f"{reason} Answer in a text." if final else f"{reason} Call tools, or answer in a text."


_LEAST_CHARS: Final = 20


class ParallelReactAgent(RoundAgent):
    """The agent with the model's native tool calls: `make_agent("parallel-react", ...)`.

    Its node raises `CapabilityError` where the model has none.
    """

    name = "parallel-react"

    async def _begin(self, context: NodeContext, question: str, form: ReplyFormat) -> Dialogue:
        capabilities = await ready(context, self.model)
        if not capabilities.tools:
            raise CapabilityError(
                f"{self.model.model} has no tool calls of its own",
                hint='the agents "react" and "divide" work with any model',
            )
        return _ToolDialogue(self.model, self.options, capabilities, question, form.tools)


class _ToolDialogue(Dialogue):
    """A dialogue in which calls and their results have their own messages."""

    def __init__(
        self,
        model: ModelClient,
        options: AgentOptions,
        capabilities: Capabilities,
        question: str,
        specs: tuple[ToolSpec, ...],
    ) -> None:
        messages = opening(question, options.schema, options.instructions)
        super().__init__(model, options, capabilities, messages)
        self._specs = specs
        self._ids: set[str] = set()

    def _request(self, form: ReplyFormat) -> ModelRequest:
        # The tools stay in the last request as well, to keep the prefix cache.
        return ModelRequest(
            self._conversation.messages,
            sampling=self._sampling,
            schema=form.answer if form.final and self._constrained else None,
            tools=self._specs,
            tool_choice="none" if form.final else "auto",
            extra=self._extra,
        )

    def _read(self, completion: Completion, form: ReplyFormat) -> ParsedReply:
        calls = completion.tool_calls
        if not calls:
            return ParsedReply(answer=_value(completion, form.answer))
        if form.final:
            raise ModelOutputError("no call can be made any more")
        kept = tuple(map(_requested, calls[: form.calls]))
        return ParsedReply(calls=kept, left_out=len(calls) - len(kept))

    def _form_after(self, completion: Completion, form: ReplyFormat) -> ReplyFormat:
        has_begun_to_answer = not is_blank(without_thought(completion.text))
        return form.last() if has_begun_to_answer else form

    def _correction(self, problem: str, form: ReplyFormat) -> str:
        return unusable(problem, form.answer if form.final else None, final=form.final)

    def report(self, observed: Sequence[Observation], *notes: str) -> None:
        """Append the results of the last reply's calls, each in its own message."""
        assert self._last is not None
        made = tuple(
            ToolCall(
                self._id(call.id, observation.number),
                observation.tool,
                _arguments(call, observation),
            )
            for call, observation in zip(self._last.tool_calls, observed, strict=False)
        )
        said = without_thought(self._last.text)
        self._conversation.say(Message("assistant", said, made))
        share = min(RESULT_CHARS, max(_LEAST_CHARS, self.half_chars // len(made)))
        for place, (call, observation) in enumerate(zip(made, observed, strict=True)):
            changed = "" if observation.requested is None else _changed(observation)
            appended = (changed, *notes) if place == len(made) - 1 else (changed,)
            full = _content(observation.outcome, share, appended)
            brief = _content(observation.outcome, min(share, BRIEF_CHARS), appended)
            self._conversation.say(Message("tool", full, tool_call_id=call.id), brief)

    def _id(self, given: str, number: int) -> str:
        """The server's id for a call, if it is unique in the conversation."""
        own = given if given and given not in self._ids else f"call{number:05d}"
        self._ids.add(own)
        return own


def _requested(call: ToolCall) -> RequestedCall:
    try:
        arguments = decode_json(call.arguments or "{}", "what it is called with")
    except ModelOutputError as error:
        return RequestedCall(call.name, problem=error.message)
    if not isinstance(arguments, Mapping):
        return RequestedCall(call.name, problem="what it is called with is not an object")
    return RequestedCall(call.name, arguments)


def _changed(observation: Observation) -> str:
    return f"A person changed this call before it was made: {format_call(observation)}"


def _arguments(call: ToolCall, observation: Observation) -> str:
    """The arguments of the call that was made, for the server, which parses them as JSON."""
    if observation.requested is not None:
        return text_of(observation.arguments)
    return "{}" if _requested(call).problem else call.arguments or "{}"


def _content(outcome: Outcome, chars: int, notes: Sequence[str]) -> str:
    shown = excerpt(text_of(outcome.value), chars) if outcome.ok else format_outcome(outcome, chars)
    return "\n\n".join([shown or '""', *(note for note in notes if note)])


def _value(completion: Completion, schema: JsonSchema | None) -> Any:
    check_repetition(completion.text)
    if completion.finish_reason == "length":
        raise cut_off_error(completion)
    if any(mark in without_thought(completion.text) for mark in _CALL_MARKS):
        raise ModelOutputError(
            "it is a call written as text, which only the model's `tool_format` would read"
        )
    return fit_answer(completion.text, schema)
