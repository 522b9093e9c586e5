"""The conversation of a model node: what of its thread the model reads, and what is appended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from weft.core.errors import InputError, ModelOutputError
from weft.core.generated_text import is_blank, without_thought
from weft.core.ports import ModelRequest, Sampling, Startable, ToolRunner, UsageMeter, complete
from weft.core.values import Completion, Message
from weft.durability.conversations import (
    APPEND,
    READ,
    WindowLimits,
    answered_calls,
    window_start,
)
from weft.engine.graph.node import NodeContext
from weft.workflow.compile.services import services_of
from weft.workflow.document.expressions import value_template
from weft.workflow.document.spec.model_settings import ConversationSpec
from weft.workflow.document.spec.nodes import ModelNode
from weft.workflow.document.unit import Unit

DEFAULT_LAST: Final = 20
"""The window of a conversation that is summarized and names no other."""
MOST_ID_CHARS: Final = 200
_SUMMARY_TOKENS: Final = 512
_SUMMARY: Final = "Summary of the conversation before:"
_ASK: Final = (
    "Summarize the conversation below for somebody who continues it: names, facts, wishes, "
    "decisions and open questions, in at most 200 words. Write the summary only."
)


def thread_id(value: object) -> str:
    """`value` as the id of a thread. Raises: `InputError`."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if isinstance(text, str) and 0 < len(text) <= MOST_ID_CHARS and text.isprintable():
        return text
    found = type(value).__name__ if not isinstance(value, str) else repr(value[:40])
    hint = f"a text of 1 to {MOST_ID_CHARS} printable characters, such as the user's name"
    raise InputError(f"{found} is no id of a conversation", hint=hint)


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One request and its answer. `own`: the messages of the node itself."""

    request: ModelRequest
    own: tuple[Message, ...]
    thread: str
    summary: tuple[str, int] | None
    store: ToolRunner
    settle: Callable[[], Awaitable[None]] | None

    async def append(self, completion: Completion) -> None:
        """Append the messages of the node and the answer. Raises: `StoreError`.

        The record has the answer before the thread has: a resumed run does not ask for another.
        """
        if self.settle is not None:
            await self.settle()
        answer = Message("assistant", without_thought(completion.text), completion.tool_calls)
        arguments = {"thread": self.thread, "messages": [*self.own, answer]}
        if self.summary is not None:
            arguments["summary"] = list(self.summary)
        await self.store.call(APPEND, arguments)


class NodeConversation:
    """The conversation of one node; see `ConversationSpec`."""

    def __init__(self, step: ModelNode, spec: ConversationSpec, unit: Unit) -> None:
        self._unit = unit
        self._id = value_template(spec.id)
        self._system = 0 if step.system is None else 1
        given = WindowLimits(spec.last, spec.tokens)
        self._summarizer = step.model if spec.summarize is True else spec.summarize or None
        unlimited = given == WindowLimits()
        self._limits = WindowLimits(DEFAULT_LAST) if self._summarizer and unlimited else given

    async def turn(
        self, context: NodeContext, names: Mapping[str, Any], request: ModelRequest
    ) -> ConversationTurn:
        """The turn that begins with `request`, whose messages are those of the node.

        Raises: `InputError`, `StoreError`; `ModelError` where no summary can be written.
        """
        services = services_of(context)
        store, settle = services.conversations, services.tools.settle
        assert store is not None, "a run without a journal does not begin"
        thread = thread_id(self._id.render(names))
        whole, limits = self._summarizer is not None, self._limits
        asked = {"last": limits.last, "tokens": limits.tokens, "whole": whole}
        found = await store.call(READ, {"thread": thread, **asked})
        messages: Sequence[Message] = found["messages"]
        text, summary = str(found["summary"]), None
        start = window_start(messages, limits)
        if start and self._summarizer is not None:
            start = window_start(messages, limits.half)  # so that not every turn writes one
            text = await self._summarized(context, text, messages[:start])
            summary = text, int(found["summarized"]) + start
        system, own = request.messages[: self._system], request.messages[self._system :]
        if self._summarizer is not None and text:
            system = (_with_summary(system, text),)
        read = (*system, *answered_calls((*messages[start:], *own)))
        request = replace(request, messages=read)
        return ConversationTurn(request, own, thread, summary, store, settle)

    async def _summarized(
        self, context: NodeContext, before: str, messages: Sequence[Message]
    ) -> str:
        """A summary of `messages`, and of what the summary `before` stands for."""
        assert self._summarizer is not None
        client = services_of(context).models.client(self._unit, self._summarizer)
        if isinstance(client, Startable):
            await client.start(context.log)
        earlier = [f"{_SUMMARY} {before}"] if before else []
        said = "\n\n".join([*earlier, *map(_spoken, messages)])
        thought = 0 if (await client.capabilities()).thinking else None
        request = ModelRequest(
            (Message("user", f"{_ASK}\n\n<conversation>\n{said}\n</conversation>"),),
            sampling=Sampling(_SUMMARY_TOKENS, temperature=0, thinking_tokens=thought),
            priority=context.priority,
            program=context.program,
            timeout_s=context.time_left(),
        )
        meter = UsageMeter(request)
        try:
            completion = await complete(client, request, meter=meter)
        finally:
            context.spend(meter.usage)
        text = without_thought(completion.text).strip()
        if is_blank(text):
            raise ModelOutputError(f"{client.model} wrote no summary of the conversation")
        context.log(f"{len(messages)} messages of the conversation are summarized")
        return text


def conversation_of(step: ModelNode, unit: Unit) -> NodeConversation | None:
    """The conversation of a node, if it has one."""
    spec = step.conversation
    return None if spec is None else NodeConversation(step, spec, unit)


def _with_summary(system: Sequence[Message], summary: str) -> Message:
    """One system message: chat templates often take no more."""
    texts = [message.content for message in system if message.content]
    return Message("system", "\n\n".join([*texts, f"{_SUMMARY}\n{summary}"]))


def _spoken(message: Message) -> str:
    calls = [f"calls {call.name}({call.arguments})" for call in message.tool_calls]
    media = [f"[{medium.kind}]" for medium in message.media]
    return f"{message.role}: {' '.join(filter(None, [message.content, *media, *calls]))}"
