"""What a model is told over several turns: messages that are only ever appended.

So each request begins like the one before, and a server finds that beginning in its prefix cache.
Only a conversation that outgrows the model's context is shortened. Knows no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from weft.core.values import Message, Usage

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
