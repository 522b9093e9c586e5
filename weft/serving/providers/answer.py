"""Assembles one answer of a hosted API, bounds it, and checks it against its request."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from weft.core.errors import ModelOutputError, ModelUnavailable
from weft.core.ports.model import Delta, ModelRequest, ReasoningDelta, TextDelta, ToolCallDelta
from weft.core.values import Completion, FinishReason, Message, ToolCall, Usage
from weft.serving.openai.endpoint import Price

_NO_ARGUMENTS: Final = "{}"
_REMEMBERED: Final = 2000


class PendingCall:
    """A tool call while its arguments arrive."""

    def __init__(self, index: int, call_id: str, name: str) -> None:
        self.index = index
        self.id = call_id
        self.name = name
        self.pieces: list[str] = []

    @property
    def arguments(self) -> str:
        """The arguments so far, a JSON object."""
        return "".join(self.pieces) or _NO_ARGUMENTS


class ProviderAnswer:
    """One answer while it arrives, in the words of the model port.

    A reader of an API's events calls the methods; those that return a delta give what to show.
    Values of the wrong type raise `TypeError`: the wire is not trusted.
    """

    def __init__(
        self, request: ModelRequest, model: str, price: Price | None, most_chars: int
    ) -> None:
        self._request = request
        self._price = price
        self._most_chars = most_chars
        self._size = 0
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[PendingCall] = []
        self._finish: FinishReason | None = None
        self._stop: str | None = None
        self._refusal = ""
        self.model = model
        self.prompt_tokens = self.completion_tokens = self.cached_tokens = 0
        self.reasoning_tokens: int | None = None
        self.thinks = False  # a thought was seen, shown or not

    def text(self, piece: str) -> list[Delta]:
        """Newly decoded text."""
        self._grow(piece)
        self._text.append(piece)
        return [TextDelta(piece)] if piece else []

    def thought(self, piece: str) -> list[Delta]:
        """Newly decoded reasoning."""
        self._grow(piece)
        self.thinks = True
        self._reasoning.append(piece)
        return [ReasoningDelta(piece)] if piece else []

    def begin_call(self, call_id: str, name: str) -> tuple[PendingCall, Delta]:
        """A tool call begins."""
        self._grow(call_id)
        self._grow(name)
        call = PendingCall(len(self._calls), call_id, name)
        self._calls.append(call)
        return call, ToolCallDelta(call.index, "", call_id, name)

    def add_arguments(self, call: PendingCall, piece: str) -> list[Delta]:
        """A piece of the arguments of `call`, as JSON."""
        self._grow(piece)
        call.pieces.append(piece)
        return [ToolCallDelta(call.index, piece)] if piece else []

    def end_call(self, call: PendingCall) -> list[Delta]:
        """`call` is complete: without arguments, it has an empty object of them."""
        return [] if any(call.pieces) else self.add_arguments(call, _NO_ARGUMENTS)

    def end(
        self, finish: FinishReason, *, stop: str | None = None, refusal: str | None = None
    ) -> None:
        """The model ended its answer. `stop` is the stop text that ended it, where one did."""
        self._finish = finish
        self._stop = stop if stop in self._request.sampling.stop else None
        self._refusal = refusal if isinstance(refusal, str) else ""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in the order in which they began."""
        return tuple(ToolCall(call.id, call.name, call.arguments) for call in self._calls)

    @property
    def usage(self) -> Usage:
        """Usage as reported so far; thoughts are among the completion tokens.

        Tokens of a thought that the API does not count are unknown (None).
        """
        prompt, completion, cached = self.prompt_tokens, self.completion_tokens, self.cached_tokens
        money = self._price.money(prompt, completion, cached) if self._price else 0.0
        thought = self.reasoning_tokens
        if thought is not None:
            thought = min(thought, completion)
        elif not self.thinks:
            thought = 0
        return Usage(prompt, completion, cached, requests=1, money=money, reasoning_tokens=thought)

    def completion(self) -> Completion:
        """The whole answer. The caller checks it against the request's schema.

        Raises: `ModelUnavailable` when the stream ended before the answer; `ModelOutputError` when
        a required tool call is missing.
        """
        if self._finish is None:
            raise ModelUnavailable("the stream ended before the answer was complete")
        calls = self.calls
        finish: FinishReason = "tool_calls" if self._finish == "stop" and calls else self._finish
        required = self._request.tools and self._request.tool_choice == "required"
        if required and not calls and finish != "refused":
            raise ModelOutputError("the model called no tool, although a call was required")
        return Completion(
            "".join(self._text),
            finish,
            calls,
            usage=self.usage,
            model=self.model,
            reasoning="".join(self._reasoning),
            stop=self._stop,
            refusal=self._refusal,
        )

    def cut_at(self, completion: Completion) -> int | None:
        """How many tokens `completion` had when max_tokens ended it; None for other ends."""
        if completion.finish_reason != "length":
            return None
        return completion.usage.completion_tokens or self._request.sampling.most_tokens

    def _grow(self, piece: str) -> None:
        if not isinstance(piece, str):
            raise TypeError(f"a text was expected, not {type(piece).__name__}")
        self._size += 1 + len(piece)
        if self._size > self._most_chars:
            raise ModelOutputError(
                f"the answer is larger than {self._most_chars:,} characters",
                retryable=False,
                hint="set a smaller max_tokens, or a larger max_answer_chars on the client",
            )


class AnswerMemory:
    """Answers with tool calls in their API's own form, for the next turn of their conversation.

    Both APIs want the signed thoughts before a tool call back, and messages have no place for them.
    An answer is found by the ids of its calls, as long as the program left it as it was. The oldest
    are forgotten, and so are all at the end of the client.
    """

    def __init__(self) -> None:
        self._answers: OrderedDict[tuple[str, ...], tuple[str, Sequence[Any]]] = OrderedDict()

    def add(self, completion: Completion, blocks: Sequence[Any]) -> None:
        """Remember `blocks` as the form of `completion`, which has tool calls."""
        self._answers[_ids(completion.tool_calls)] = (completion.text, blocks)
        if len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)

    def blocks(self, message: Message) -> Sequence[Any] | None:
        """The form in which `message` was written, or None."""
        text, blocks = self._answers.get(_ids(message.tool_calls), ("", None))
        return blocks if message.tool_calls and text == message.content else None


def _ids(calls: tuple[ToolCall, ...]) -> tuple[str, ...]:
    return tuple(f"{call.id} {call.name} {call.arguments}" for call in calls)


def arguments_object(call: ToolCall) -> Mapping[str, Any]:
    """The arguments of a call in a conversation, for APIs that take objects only.

    What is no JSON object is passed on as a text under `arguments`.
    """
    try:
        found = json.loads(call.arguments)
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"arguments": call.arguments}


def count(value: object) -> int:
    """A number of tokens from the wire; 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
