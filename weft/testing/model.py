"""A scripted model, and tools from plain functions, on the loop's clock."""

from __future__ import annotations

import asyncio
import inspect
import math
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Any

from weft.core.errors import (
    CapabilityError,
    ModelTimeout,
    ModelUnavailable,
    ToolArgumentError,
    ToolNotFound,
    ToolRaised,
    WeftError,
)
from weft.core.generated_text import THINK, THINK_END, ThoughtCounter, without_thought
from weft.core.ports.model import (
    Capabilities,
    ModelEvent,
    ModelRequest,
    Prefilled,
    ReasoningDelta,
    Sampling,
    TextDelta,
    ToolCallDelta,
    check_media,
)
from weft.core.suggestion import suggestion
from weft.core.values import AUTOREGRESSIVE, Completion, FinishReason, ToolSpec, Usage
from weft.testing.script import AgentStep, Reply, Script, agent_script, reply_of, script_of

_TOKENS = re.compile(r"\s*\S+|\s+")
_CAPABILITIES = Capabilities(
    structured_output=True, tools=True, media=("image", "audio", "file"), thinking=True
)


class FakeModel:
    """Implements `ModelClient`. `script` says what it replies.

        FakeModel(["one", Reply("two", per_token_s=0.1)])           # in order; the last is repeated
        FakeModel({"[Ss]ummar": "short", "translate": ["a", "b"]})  # by pattern in the messages
        FakeModel(lambda request: request.messages[-1].content)     # by function

    A reply is a text, a `Reply`, or a mapping that it writes as JSON. A request that no pattern
    fits is refused. `requests` lists the requests, `cancelled` counts
    streams that were closed before their end, `running` those now open. A request that needs
    missing `capabilities` is refused. Replies do not follow schemas, grammars or stop texts. With
    `thinking_tokens` a `<think>` thought in the text counts as reasoning, which is cut there.
    """

    fake = True
    """Runs on it are not recorded, unless a journal is named."""

    def __init__(
        self,
        script: Script,
        *,
        model: str = "fake",
        money_per_token: float = 0.0,
        capabilities: Capabilities = _CAPABILITIES,
    ) -> None:
        self._script = script_of(script, model)
        self._model = model
        self._money_per_token = money_per_token
        self._capabilities = capabilities
        self._closed = False
        self.requests: list[ModelRequest] = []
        self.cancelled = 0
        self.running = 0

    @property
    def model(self) -> str:
        return self._model

    async def capabilities(self) -> Capabilities:
        return self._capabilities

    async def generate(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self._check_open()
        self._check(request)
        end_s = _end(request)
        self.requests.append(request)
        reply = reply_of(self._script(request))
        self.running += 1
        finished = False
        try:
            async for event in self._stream(request, reply, end_s):
                finished = isinstance(event, Completion)
                yield event
        except WeftError:
            finished = True
            raise
        finally:
            self.running -= 1
            self.cancelled += not finished

    async def _stream(
        self, request: ModelRequest, reply: Reply, end_s: float
    ) -> AsyncGenerator[ModelEvent, None]:
        if reply.prefill_s is not None:
            await _pass(reply.prefill_s, end_s)
            yield Prefilled(request.prompt_token_ids)
        await _pass(reply.first_token_s, end_s)
        if reply.error is not None:
            raise reply.error
        written, whole = _written(reply, request.sampling)
        for count, delta in enumerate(written):
            if count == reply.break_after_tokens:
                raise ModelUnavailable(f"the stream of {self._model} broke off")
            yield delta
            await _pass(reply.per_token_s, end_s)
            self._check_open()
        for index, call in enumerate(reply.tool_calls):
            yield ToolCallDelta(index, call.arguments, call.id, call.name)
        reason: FinishReason = "stop" if whole else "length"
        yield Completion(
            "".join(delta.text for delta in written if isinstance(delta, TextDelta)),
            "tool_calls" if reply.tool_calls else reason,
            reply.tool_calls,
            usage=reply.usage or self._usage(request, written),
            model=self._model,
            reasoning="".join(delta.text for delta in written if isinstance(delta, ReasoningDelta)),
        )

    def _check(self, request: ModelRequest) -> None:
        able, attention = self._capabilities, request.attention
        lacking = {
            "only decodes autoregressively": request.decode != AUTOREGRESSIVE,
            "has no adapters": request.adapter is not None,
            "cannot be held to a grammar": request.grammar is not None and not able.grammar,
            "cannot go on with an answer": request.continues and not able.continuation,
            "cannot stop at tokens": bool(request.sampling.stop_token_ids)
            and not able.stop_token_ids,
            "has no bound for its thought": request.sampling.thinking_tokens is not None
            and not able.thinking,
            "reports fewer top_logprobs": request.top_logprobs > able.top_logprobs,
            "cannot place a prompt": bool(request.placement) and not able.placement,
            "has no such attention": attention is not None and attention.layout not in able.layouts,
        }
        check_media(request, self._model, able.media)
        for what, lacks in lacking.items():
            if lacks:
                raise CapabilityError(f"{self._model} {what}")

    def _check_open(self) -> None:
        if self._closed:
            raise ModelUnavailable(f"{self._model} is closed")

    def _usage(self, request: ModelRequest, written: _Deltas) -> Usage:
        completion_tokens = len(written)
        prompt = sum(len(_tokens(message.content)) for message in request.messages)
        prompt += len(request.prompt_token_ids)
        rich = [message for message in request.messages if message.parts]
        prompt += sum(part.tokens for message in rich for part in message.media)
        money = self._money_per_token * (prompt + completion_tokens)
        return Usage(
            prompt,
            completion_tokens,
            requests=1,
            forwards=completion_tokens,
            money=money,
            reasoning_tokens=_thought_tokens(written),
        )

    async def aclose(self) -> None:
        self._closed = True


_Deltas = list[ReasoningDelta | TextDelta]


def _thought_tokens(written: _Deltas) -> int:
    tagged = ThoughtCounter()
    for delta in written:
        if isinstance(delta, TextDelta):
            tagged.add(delta.text, 1)
    return tagged.tokens + sum(isinstance(delta, ReasoningDelta) for delta in written)


def _written(reply: Reply, sampling: Sampling) -> tuple[_Deltas, bool]:
    """The pieces of `reply` within the limits of `sampling`, and whether it ends with them."""
    bound, text = sampling.thinking_tokens, reply.text
    thought = reply.reasoning
    if bound is not None:
        answer = without_thought(text)
        thought += text[: len(text) - len(answer)].replace(THINK, "").replace(THINK_END, "")
        text = answer.lstrip() if len(answer) < len(text) else answer
    thoughts: _Deltas = [*map(ReasoningDelta, _tokens(thought))]
    words: _Deltas = [*map(TextDelta, _tokens(text))]
    if bound is None:
        thoughts, words = [], thoughts + words
    kept = words[: sampling.max_tokens]
    return thoughts[:bound] + kept, len(kept) == len(words)


class ScriptedAgent(FakeModel):
    """A fake model that calls tools as scripted, for the agents react and parallel-react.

        ScriptedAgent([call_tool("search", query="tea"), "Tea is old."])

    Each step is one reply: a call, a list of calls to make at once, or the answer. Where a request
    declares tools, it calls them natively. A request after the last step is refused.
    """

    def __init__(self, steps: Iterable[AgentStep], **settings: Any) -> None:
        super().__init__(agent_script(steps), **settings)


def _end(request: ModelRequest) -> float:
    """The end of the timeout of `request`, on the loop's clock."""
    timeout_s = math.inf if request.timeout_s is None else request.timeout_s
    if timeout_s <= 0:
        raise ModelTimeout("there is no time for an answer")
    return asyncio.get_running_loop().time() + timeout_s


async def _pass(seconds: float, end_s: float) -> None:
    remaining_s = end_s - asyncio.get_running_loop().time()
    await asyncio.sleep(min(seconds, max(0.0, remaining_s)))
    if seconds > remaining_s:
        raise ModelTimeout("the answer was not complete in time")


def _tokens(text: str) -> list[str]:
    return _TOKENS.findall(text)


_ANYTHING = {"type": "object"}


class FakeTools:
    """Implements `ToolRunner` over `name=function` pairs; functions may be async.

    `calls` lists every (name, arguments) in the order the calls began.
    """

    def __init__(self, **functions: Callable[..., Any]) -> None:
        self._functions = functions
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(
            ToolSpec(name, inspect.getdoc(function) or "", _ANYTHING)
            for name, function in self._functions.items()
        )

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        function = self._functions.get(name)
        if function is None:
            raise ToolNotFound(f"no tool {name!r}", hint=suggestion(name, self._functions))
        try:
            inspect.signature(function).bind(**arguments)
        except TypeError as error:
            raise ToolArgumentError(f"{name}: {error}") from error
        self.calls.append((name, dict(arguments)))
        try:
            result = function(**arguments)
            return await result if inspect.isawaitable(result) else result
        except WeftError:
            raise
        except Exception as error:
            raise ToolRaised(f"{name} raised {type(error).__name__}: {error}") from error
