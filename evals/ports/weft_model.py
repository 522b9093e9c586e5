"""The scripted model as weft's programs get it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from evals.ports.script import Answer, Turn
from weft.core.values import ToolCall
from weft.serve import ModelRequest
from weft.testing import FakeModel, Reply


class ScriptedModel(FakeModel):
    """A fake model whose requests are counted."""

    @property
    def calls(self) -> int:
        """Requests so far."""
        return len(self.requests)


def scripted(script: Callable[[Sequence[Turn]], Answer]) -> ScriptedModel:
    """A model that answers by the script."""

    def reply(request: ModelRequest) -> Reply:
        answer = script([(message.role, message.content) for message in request.messages])
        if isinstance(answer, str):
            return Reply(answer)
        count = len(request.messages)
        return Reply(
            tool_calls=tuple(
                ToolCall(f"call-{count}-{at}", name, json.dumps(arguments))
                for at, (name, arguments) in enumerate(answer)
            )
        )

    return ScriptedModel(reply)
