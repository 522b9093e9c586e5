"""The scripted model as LangGraph's programs get it: a chat model of LangChain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from evals.ports.script import Answer, Turn

ROLES = {"human": "user", "ai": "assistant"}


class ScriptedChatModel(BaseChatModel):
    """Answers by a script, and counts."""

    script: Any
    calls: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, *_: Any, **__: Any) -> ScriptedChatModel:
        """The script knows the tools."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.calls += 1
        turns = [(ROLES.get(message.type, message.type), message.text) for message in messages]
        answer = self.script(turns)
        if isinstance(answer, str):
            message = AIMessage(answer)
        else:
            calls = [
                {"name": name, "args": arguments, "id": f"call-{self.calls}-{at}"}
                for at, (name, arguments) in enumerate(answer)
            ]
            message = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return self._generate(messages)


def scripted(script: Callable[[Sequence[Turn]], Answer]) -> ScriptedChatModel:
    """A model that answers by the script."""
    return ScriptedChatModel(script=script)
