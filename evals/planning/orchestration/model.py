"""A model that writes a script at a stated speed, and counts all tokens by one rule."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from itertools import takewhile

from evals.planning.orchestration.script import Turn
from evals.planning.orchestration.setting import Speed
from evals.planning.orchestration.tokens import count, split
from weft.core.errors import ModelRequestError
from weft.core.ports import Capabilities, ModelEvent, ModelRequest, TextDelta, ToolCallDelta
from weft.core.values import Completion, FinishReason, Message, ToolCall, Usage


class ScriptedModel:
    """Implements `ModelClient`: answers with the turns of a script, one after the other.

    The first token comes after `first_token_s` however long the prompt is, as from a server that
    has the beginning of it in its prefix cache. `usage` adds up all answers.

    With `continuation` plans are written line by line: each request gets one with the thoughts
    before it, and one that ends with an unfinished answer the next.
    """

    def __init__(
        self, turns: Sequence[Turn], speed: Speed, *, continuation: bool = False, name: str = ""
    ) -> None:
        self._turns = list(turns)
        self._speed = speed
        self._continuation = continuation
        self._at = -1
        self._name = name or "scripted"
        self.usage = Usage()

    @property
    def model(self) -> str:
        return self._name

    async def capabilities(self) -> Capabilities:
        able = self._continuation
        return Capabilities(tools=True, grammar=able, continuation=able)

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        turn, text = self._following(request)
        calls = turn.called(request)
        written = 0
        lines = 0
        first_s = asyncio.get_running_loop().time() + self._speed.first_token_s
        for token in split(text):
            await _until(first_s + written * self._speed.per_token_s)
            written += 1
            yield TextDelta(token)
            lines += token.count("\n")
            if "\n" in token and lines == turn.stall_after:
                first_s += turn.stall_s
        for index, call in enumerate(calls):
            written += len(_as_text(call))
            await _until(first_s + (written - 1) * self._speed.per_token_s)
            yield ToolCallDelta(index, call.arguments, call.id, call.name)
        usage = Usage(_prompt_tokens(request), written, requests=1, forwards=written)
        self.usage += usage
        reason: FinishReason = "tool_calls" if calls else "stop"
        yield Completion(text, reason, calls, usage=usage, model=self._name)

    def _following(self, request: ModelRequest) -> tuple[Turn, str]:
        """The turn that answers `request`, and the text that it now writes of it."""
        last = request.messages[-1]
        written = last.content if self._continuation and last.role == "assistant" else ""
        self._at += not written
        if self._at >= len(self._turns):
            raise ModelRequestError("the script has no further turn")
        turn = self._turns[self._at]
        if not self._continuation or not turn.text:
            return turn, turn.spoken(request)
        rest = turn.text.removeprefix(written).splitlines(keepends=True)
        thoughts = list(takewhile(lambda line: line.startswith("#"), rest))
        return turn, "".join(rest[: len(thoughts) + 1])

    async def aclose(self) -> None:
        """Nothing to let go of."""


async def _until(due_s: float) -> None:
    """Wait for a moment on the loop's clock: a server does not wait for whoever reads."""
    await asyncio.sleep(max(0.0, due_s - asyncio.get_running_loop().time()))


def _as_text(call: ToolCall) -> list[str]:
    """What a model writes for a native call, in the form that most of them are taught."""
    return split(f'<tool_call>\n{{"name": "{call.name}", "arguments": {call.arguments}}}\n')


def _prompt_tokens(request: ModelRequest) -> int:
    tools = sum(
        count(json.dumps([spec.name, spec.description, dict(spec.parameters)]))
        for spec in request.tools
    )
    return tools + sum(_message_tokens(message) for message in request.messages)


def _message_tokens(message: Message) -> int:
    calls = sum(len(_as_text(call)) for call in message.tool_calls)
    return count(message.content) + calls
