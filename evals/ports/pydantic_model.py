"""The scripted model as programs of pydantic-graph (`ask`) and pydantic-ai (`pydantic`) get it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from evals.ports.script import Answer, Turn

ROLES = {UserPromptPart: "user", SystemPromptPart: "system", ToolReturnPart: "tool"}


class ScriptedModel:
    """Answers by a script, and counts."""

    def __init__(self, script: Callable[[Sequence[Turn]], Answer]) -> None:
        self._script = script
        self.calls = 0
        self.pydantic = FunctionModel(self._respond)

    async def ask(self, prompt: str) -> str:
        """The text for one prompt."""
        self.calls += 1
        answer = self._script([("user", prompt)])
        assert isinstance(answer, str)
        return answer

    def _respond(self, messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        self.calls += 1
        answer = self._script(list(_turns(messages)))
        if isinstance(answer, str):
            return ModelResponse([TextPart(answer)])
        return ModelResponse([ToolCallPart(name, arguments) for name, arguments in answer])


def scripted(script: Callable[[Sequence[Turn]], Answer]) -> ScriptedModel:
    """A model that answers by the script."""
    return ScriptedModel(script)


def _turns(messages: Sequence[ModelMessage]) -> Iterator[Turn]:
    for message in messages:
        if isinstance(message, ModelResponse):
            yield "assistant", ""
            continue
        for part in message.parts:
            if role := ROLES.get(type(part)):
                yield role, str(part.content)
