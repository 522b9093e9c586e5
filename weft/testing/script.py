"""Scripts of fake models: replies in order, by rule, or of an agent."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.core.errors import ModelRequestError, WeftError
from weft.core.ports.model import ModelRequest
from weft.core.values import ToolCall, Usage


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted answer. Tokens are the words of `text`, each with the blanks before it.

    `reasoning` comes before the text, in tokens too. `prefill_s`: the stream begins with
    `Prefilled` after so many seconds, before `first_token_s` begins. `break_after_tokens`: the
    stream breaks off there. `error`: raised before the first token. `usage`: reported instead of
    the counted words.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    first_token_s: float = 0.0
    per_token_s: float = 0.0
    break_after_tokens: int | None = None
    error: WeftError | None = None
    reasoning: str = ""
    prefill_s: float | None = None
    usage: Usage | None = None


Scripted = Reply | str | Mapping[str, Any]
"""A reply, its text, or data that it writes as JSON."""
ScriptFunction = Callable[[ModelRequest], Scripted]
Rule = Scripted | Sequence[Scripted] | ScriptFunction
Script = Iterable[Scripted] | ScriptFunction | Mapping[str, Rule]


def reply_of(scripted: Scripted) -> Reply:
    """The reply that `scripted` describes."""
    if isinstance(scripted, Reply):
        return scripted
    return Reply(scripted if isinstance(scripted, str) else json.dumps(scripted))


def script_of(script: Script, model: str) -> ScriptFunction:
    """The function behind a script."""
    if callable(script):
        return script
    if isinstance(script, Mapping):
        return _by_rule(script, model)
    return _in_turn(list(script))


def text_of(request: ModelRequest) -> str:
    """All messages of a request, one below the other, each after its role."""
    return "\n".join(f"{message.role}: {message.content}" for message in request.messages)


def call_tool(name: str, /, **arguments: Any) -> ToolCall:
    """A call of a tool, for `ScriptedAgent` and `Reply.tool_calls`."""
    return ToolCall(f"call_{name}", name, json.dumps(arguments))


def _in_turn(replies: list[Scripted]) -> ScriptFunction:
    if not replies:
        raise ValueError("a scripted model needs at least one reply")
    remaining, last = iter(replies), replies[-1]
    return lambda _: next(remaining, last)


def _by_rule(rules: Mapping[str, Rule], model: str) -> ScriptFunction:
    """The reply of the first rule whose pattern is found in the messages."""
    made: dict[re.Pattern[str], ScriptFunction] = {}
    for pattern, rule in rules.items():
        single = isinstance(rule, (Reply, str, Mapping))
        replies = _in_turn([rule]) if single else script_of(rule, model)  # type: ignore[list-item, arg-type]
        made[re.compile(pattern)] = replies

    def reply(request: ModelRequest) -> Scripted:
        text = text_of(request)
        for pattern, replies in made.items():
            if pattern.search(text):
                return replies(request)
        known = ", ".join(repr(pattern.pattern) for pattern in made)
        raise ModelRequestError(
            f"{model} has no rule for this request:\n{text}", hint=f"its rules are: {known}"
        )

    return reply


AgentStep = str | Mapping[str, Any] | ToolCall | Sequence[ToolCall]


def agent_script(steps: Iterable[AgentStep]) -> ScriptFunction:
    """Replies of an agent: calls as the request wants them, natively or as text."""
    remaining: Iterator[tuple[int, AgentStep]] = enumerate(steps, 1)
    done = 0

    def reply(request: ModelRequest) -> Scripted:
        nonlocal done
        following = next(remaining, None)
        if following is None:
            message = f"the scripted agent has no step after its {done}:\n{text_of(request)}"
            raise ModelRequestError(message, hint="end with an answer, a text")
        done, step = following
        if isinstance(step, (str, Mapping)):
            native = bool(request.tools) and isinstance(step, str)
            return step if native else {"thought": "", "answer": step}
        calls = (step,) if isinstance(step, ToolCall) else tuple(step)
        if request.tools:
            return Reply(tool_calls=calls)
        written = [{"name": call.name, "arguments": json.loads(call.arguments)} for call in calls]
        return {"call": written[0]} if len(written) == 1 else {"calls": written}

    return reply
