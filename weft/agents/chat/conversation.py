"""The messages of a loop, and the dialogue on them: ask, parse the reply, correct, ask again.

Messages are only appended, so that a server finds each request's beginning in its prefix cache.
Only a conversation that outgrows the model's context is shortened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from weft.agents.agent import AgentOptions, Observation, sampling_of
from weft.agents.chat.model_call import ask, gave_up_error, is_costly, ready
from weft.agents.chat.observations import BRIEF_CHARS, RESULT_CHARS, format_observations
from weft.agents.chat.prompt import NO_TEXT, STOP, correction, results, system
from weft.agents.chat.reply import ParsedReply, read_reply
from weft.agents.chat.reply_format import ReplyFormat
from weft.core.errors import ModelOutputError
from weft.core.generated_text import without_thought
from weft.core.ports import Capabilities, ModelClient, ModelRequest
from weft.core.values import Completion, Message, Usage
from weft.engine import NodeContext
from weft.engine.graph.content_digest import DigestTexts

_UNKNOWN_CONTEXT_TOKENS: Final = 32_768
_TOKENS_PER_CHAR: Final = 1 / 2
"""The estimate for new text. Prose takes about half of that, numbers and codes take more."""

_FILLED_AGAIN: Final = 0.75
"""Shortening continues down to this share of the room, so that not every turn has to shorten."""


class Conversation:
    """The messages so far, bounded by the model's context.

    `context_tokens`: the size of the context (None: unknown), of which `answer_tokens`, but at most
    half, are reserved for the answer.
    """

    def __init__(
        self, opening: Iterable[Message], *, context_tokens: int | None, answer_tokens: int
    ) -> None:
        self._messages = list(opening)
        self._chars = sum(map(_chars, self._messages))
        self._briefs: dict[int, Message] = {}
        context = context_tokens or _UNKNOWN_CONTEXT_TOKENS
        self._room = max(context - answer_tokens, context // 2)
        self._tokens_per_char = _TOKENS_PER_CHAR
        self._measured_tokens = self._measured_chars = 0

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, for the next request."""
        return tuple(self._messages)

    def say(self, message: Message, brief: str | None = None) -> None:
        """Append `message`; `brief` may replace its content where room is short."""
        if brief is not None and len(brief) < len(message.content):
            short = Message(message.role, brief, message.tool_calls, message.tool_call_id)
            self._briefs[len(self._messages)] = short
        self._messages.append(message)
        self._chars += _chars(message)

    def measure(self, usage: Usage) -> None:
        """Update the tokens per character from the last request; call it before `say`."""
        chars = self._chars
        if usage.prompt_tokens and chars:
            self._tokens_per_char = usage.prompt_tokens / chars
            self._measured_tokens, self._measured_chars = usage.prompt_tokens, chars

    @property
    def half_chars(self) -> int:
        """The number of characters in half of the room: the most that one message should take."""
        return int(self._room / self._new_rate / 2)

    def fit(self, log: Callable[[str], None]) -> None:
        """Shorten the oldest messages with a brief form, if there is no room; logs it."""
        if self._tokens() <= self._room:
            return
        shortened = 0
        order = sorted(self._briefs)
        for index in order:
            enough = 1.0 if index == order[-1] else _FILLED_AGAIN
            if self._tokens() <= self._room * enough:
                break
            full, brief = self._messages[index], self._briefs.pop(index)
            self._messages[index] = brief
            self._chars += _chars(brief) - _chars(full)
            shortened += 1
        if shortened:
            log(f"{shortened} earlier messages are shortened: the model's context is nearly full")

    def _tokens(self) -> float:
        new = self._chars - self._measured_chars
        return self._measured_tokens + new * (self._new_rate if new > 0 else self._tokens_per_char)

    @property
    def _new_rate(self) -> float:
        return max(self._tokens_per_char, _TOKENS_PER_CHAR)


def _said(completion: Completion) -> Message:
    """The answer for later requests, without the thought before it."""
    return Message("assistant", without_thought(completion.text) or NO_TEXT)


def _chars(message: Message) -> int:
    return len(message.content) + sum(len(call.arguments) for call in message.tool_calls)


CORRECTIONS: Final = 2
"""The number of corrections in a row after which the agent gives up."""


class Dialogue:
    """A conversation with `model`: ask, parse the reply, correct it, ask again.

    `names` are those of the nodes of its requests; by default `turn1`, `turn2`...
    """

    def __init__(
        self,
        model: ModelClient,
        options: AgentOptions,
        capabilities: Capabilities,
        opening: Iterable[Message],
        names: Iterator[str] | None = None,
    ) -> None:
        self._model = model
        self._names = names or (f"turn{number}" for number in count(1))
        self._constrained = is_constrained(options, capabilities)
        self._sampling = sampling_of(options)
        self._extra = options.extra_body or {}
        self._texts = DigestTexts()
        self._last: Completion | None = None
        self._conversation = Conversation(
            opening,
            context_tokens=capabilities.max_context_tokens,
            answer_tokens=self._sampling.most_tokens or options.max_tokens,
        )

    @property
    def half_chars(self) -> int:
        """The longest message, in characters."""
        return self._conversation.half_chars

    def tell(self, text: str, brief: str | None = None) -> None:
        """Append `text` as the user's message; `brief` replaces it where room is short."""
        self._conversation.say(Message("user", text), brief)

    def report(self, observed: Sequence[Observation], *notes: str) -> None:
        """Append the results of calls, in order; each gets an equal share of the room."""
        room = self.half_chars
        share = min(RESULT_CHARS, max(BRIEF_CHARS, room // len(observed)))
        # The calls themselves take room too.
        full = format_observations(observed, room + room // 2, share)
        brief = format_observations(observed, room, BRIEF_CHARS)
        self.tell(results(full, *notes), results(brief, *notes))

    async def ask(self, context: NodeContext, form: ReplyFormat) -> ParsedReply:
        """The model's next reply.

        Raises: `AgentError` when the call fails, or no reply is usable.
        """
        for attempt in range(1, 2 + CORRECTIONS):
            self._conversation.fit(context.log)
            request, name = self._request(form), next(self._names)
            self._last = last = await ask(context, name, self._model, request, self._texts)
            self._conversation.measure(last.usage)
            try:
                # In a thread: checking a value may take long.
                reply = await asyncio.to_thread(self._read, last, form)
            except ModelOutputError as error:
                problem = str(error)
            else:
                if not last.tool_calls:  # these are appended together with their results
                    self._conversation.say(_said(last))
                return reply
            self._conversation.say(_said(last))
            if attempt > 1 and is_costly(last):
                break
            context.log(f"the reply cannot be used: {problem}")
            form = self._form_after(last, form)
            self.tell(self._correction(problem, form))
        raise gave_up_error(context, last, problem, attempt)

    def _request(self, form: ReplyFormat) -> ModelRequest:
        # No stop sequence may cut off a final answer.
        stops = form.calls and not self._constrained
        return ModelRequest(
            self._conversation.messages,
            sampling=replace(self._sampling, stop=STOP if stops else ()),
            schema=form.schema() if self._constrained else None,
            extra=self._extra,
        )

    def _read(self, completion: Completion, form: ReplyFormat) -> ParsedReply:
        return read_reply(completion, form)

    def _form_after(self, _: Completion, form: ReplyFormat) -> ReplyFormat:
        """The format of the next reply after an unusable one."""
        return form

    def _correction(self, problem: str, form: ReplyFormat) -> str:
        return correction(problem, form, constrained=self._constrained)


def is_constrained(options: AgentOptions, capabilities: Capabilities) -> bool:
    """Whether the model's output is constrained to a schema."""
    return options.constrain != "never" and capabilities.structured_output


async def begin_dialogue(
    context: NodeContext,
    model: ModelClient,
    options: AgentOptions,
    rules: str,
    form: ReplyFormat,
    names: Iterator[str] | None = None,
) -> Dialogue:
    """A dialogue that begins with `rules` and the description of `form`, once `model` is ready.

    Raises: `ModelError`, `ServeError`.
    """
    capabilities = await ready(context, model)
    constrained, own = is_constrained(options, capabilities), options.instructions
    opening = [system(rules, form, constrained=constrained, instructions=own)]
    return Dialogue(model, options, capabilities, opening, names)
