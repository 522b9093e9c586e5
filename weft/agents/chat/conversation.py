"""The messages of a loop, and the dialogue over them: ask, parse the reply, correct, ask again.

Messages are only appended, so that a server finds each request's beginning in its prefix cache.
Only a conversation that outgrows the model's context is shortened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from typing import Final

from weft.agents.agent import AgentOptions, Observation
from weft.agents.chat.model_call import ask, gave_up_error, is_costly, ready
from weft.agents.chat.observations import BRIEF_CHARS, RESULT_CHARS, format_observations
from weft.agents.chat.prompt import NO_TEXT, STOP, correction, results, system
from weft.agents.chat.reply import ParsedReply, read_reply
from weft.agents.chat.reply_format import ReplyFormat
from weft.core.errors import ModelOutputError
from weft.core.ports import Capabilities, ModelClient, ModelRequest, Sampling
from weft.core.values import Completion, Message, Usage
from weft.engine import NodeContext
from weft.engine.graph.content_digest import DigestTexts

_UNKNOWN_CONTEXT_TOKENS: Final = 32_768
_TOKENS_PER_CHAR: Final = 1 / 2
"""Of text that was not sent yet. Prose takes about half of that, numbers and codes do not."""

_FILLED_AGAIN: Final = 0.75
"""Shortening goes on down to this part of the room, so that not every turn has to shorten."""


class Conversation:
    """The messages so far, and how many tokens they may take.

    `context_tokens`: what the model can hold (None: nobody knows), of which `answer_tokens` are
    left for its answer, though never more than half.
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
        """All messages, as the next request takes them."""
        return tuple(self._messages)

    def say(self, message: Message, brief: str | None = None) -> None:
        """Append `message`; `brief` may take the place of its content where room is short."""
        if brief is not None and len(brief) < len(message.content):
            short = Message(message.role, brief, message.tool_calls, message.tool_call_id)
            self._briefs[len(self._messages)] = short
        self._messages.append(message)
        self._chars += _chars(message)

    def measure(self, usage: Usage) -> None:
        """Learn from the last request how many tokens a character takes; call it before `say`."""
        chars = self._chars
        if usage.prompt_tokens and chars:
            self._tokens_per_char = usage.prompt_tokens / chars
            self._measured_tokens, self._measured_chars = usage.prompt_tokens, chars

    @property
    def half_chars(self) -> int:
        """How many characters fill half of the room: what one message should take at most."""
        return int(self._room / self._new_rate / 2)

    def fit(self, log: Callable[[str], None]) -> None:
        """Shorten the oldest messages that have a brief form, if there is no room; say so."""
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


def _chars(message: Message) -> int:
    return len(message.content) + sum(len(call.arguments) for call in message.tool_calls)


CORRECTIONS: Final = 2
"""How often in a row a model is told that its reply cannot be used, before the agent gives up."""


class Dialogue:
    """One conversation with `model`: ask, read the reply, correct it, ask again.

    `names` are those of the nodes in which the model is asked, in turn; else `turn1`, `turn2`...
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
        self._sampling = Sampling(options.max_tokens, options.temperature)
        self._texts = DigestTexts()
        self._last: Completion | None = None
        self._conversation = Conversation(
            opening,
            context_tokens=capabilities.max_context_tokens,
            answer_tokens=options.max_tokens,
        )

    @property
    def half_chars(self) -> int:
        """How long one message should be at most, in characters."""
        return self._conversation.half_chars

    def tell(self, text: str, brief: str | None = None) -> None:
        """Say `text` to the model with the next question; `brief` where room becomes short."""
        self._conversation.say(Message("user", text), brief)

    def report(self, observed: Sequence[Observation], *notes: str) -> None:
        """Tell what calls came to, in their order; each gets the same share of the room."""
        room = self.half_chars
        share = min(RESULT_CHARS, max(BRIEF_CHARS, room // len(observed)))
        # The calls themselves take room too.
        full = format_observations(observed, room + room // 2, share)
        brief = format_observations(observed, room, BRIEF_CHARS)
        self.tell(results(full, *notes), results(brief, *notes))

    async def ask(self, context: NodeContext, form: ReplyFormat) -> ParsedReply:
        """The model's next reply.

        Raises: `AgentError` when the model cannot be asked, or writes nothing that can be used.
        """
        for asked in range(1, 2 + CORRECTIONS):
            self._conversation.fit(context.log)
            request, name = self._request(form), next(self._names)
            self._last = last = await ask(context, name, self._model, request, self._texts)
            self._conversation.measure(last.usage)
            try:
                # In a thread: a value that is hard to check takes its time.
                reply = await asyncio.to_thread(self._read, last, form)
            except ModelOutputError as error:
                problem = str(error)
            else:
                if not last.tool_calls:  # these are said when their results are there
                    self._conversation.say(Message("assistant", last.text or NO_TEXT))
                return reply
            self._conversation.say(Message("assistant", last.text or NO_TEXT))
            if asked > 1 and is_costly(last):
                break
            context.log(f"the reply cannot be used: {problem}")
            form = self._form_after(last, form)
            self.tell(self._correction(problem, form))
        raise gave_up_error(context, last, problem, asked)

    def _request(self, form: ReplyFormat) -> ModelRequest:
        # An answer alone is never cut off, not even at a stop sequence.
        stops = form.calls and not self._constrained
        return ModelRequest(
            self._conversation.messages,
            sampling=replace(self._sampling, stop=STOP if stops else ()),
            schema=form.schema() if self._constrained else None,
        )

    def _read(self, completion: Completion, form: ReplyFormat) -> ParsedReply:
        return read_reply(completion, form)

    def _form_after(self, _: Completion, form: ReplyFormat) -> ReplyFormat:
        """What may follow a reply that cannot be used."""
        return form

    def _correction(self, problem: str, form: ReplyFormat) -> str:
        return correction(problem, form, constrained=self._constrained)


def is_constrained(options: AgentOptions, capabilities: Capabilities) -> bool:
    """Whether the model is held to a schema."""
    return options.constrain != "never" and capabilities.structured_output


async def begin_dialogue(
    context: NodeContext,
    model: ModelClient,
    options: AgentOptions,
    rules: str,
    form: ReplyFormat,
    names: Iterator[str] | None = None,
) -> Dialogue:
    """A dialogue that begins with `rules` and the spelling of `form`, once `model` is ready.

    Raises: `ModelError`, `ServeError`.
    """
    able = await ready(context, model)
    constrained, own = is_constrained(options, able), options.instructions
    opening = [system(rules, form, constrained=constrained, instructions=own)]
    return Dialogue(model, options, able, opening, names)
