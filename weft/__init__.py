"""weft: parallel LLM programs, from the plan down to the token.

    import weft

    @weft.tool
    async def search(query: str) -> list[str]: ...

    flow = weft.Flow("report")            # in Python
    flow = weft.load("report.yaml")       # or from a file: the same graph
    result = await flow.run(topic="rivers")     # or flow.run_sync(topic="rivers")

    answer = await weft.ask("Which river is longer?", tools=[search])   # a model plans the calls
    thought = await weft.think("Which river is longer?", strategy="sample")  # samples, threads

Names are loaded when they are first used, so `import weft` is light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.agents.agent import AgentOptions, Answer
    from weft.agents.tools import Isolation, Tool, Toolbox, ToolContext, tool
    from weft.agents.tools.declaration import tool_from_schema
    from weft.core.budget import Budget
    from weft.core.call_context import idempotency_key
    from weft.core.errors import NotDone
    from weft.durability.calls import Confirmation
    from weft.reasoning.options import ThinkOptions
    from weft.reasoning.question import Document, Question
    from weft.reasoning.thought import Thought
    from weft.workflow import Flow, FlowResult, FlowRun, json_schema, load, loads
    from weft.workflow.apps.ask import ask, ask_sync
    from weft.workflow.apps.think import think, think_sync
    from weft.workflow.runtime.models.think import ThoughtModel
    from weft.workflow.runtime.options import AskSettings

_HOMES = {
    "AgentOptions": "weft.agents.agent",
    "Answer": "weft.agents.agent",
    "AskSettings": "weft.workflow.runtime.options",
    "Budget": "weft.core.budget",
    "Confirmation": "weft.durability.calls",
    "Document": "weft.reasoning.question",
    "Flow": "weft.workflow",
    "FlowResult": "weft.workflow",
    "FlowRun": "weft.workflow",
    "Isolation": "weft.agents.tools",
    "NotDone": "weft.core.errors",
    "Question": "weft.reasoning.question",
    "ThinkOptions": "weft.reasoning.options",
    "Thought": "weft.reasoning.thought",
    "ThoughtModel": "weft.workflow.runtime.models.think",
    "Tool": "weft.agents.tools",
    "ToolContext": "weft.agents.tools",
    "Toolbox": "weft.agents.tools",
    "ask": "weft.workflow.apps.ask",
    "ask_sync": "weft.workflow.apps.ask",
    "idempotency_key": "weft.core.call_context",
    "json_schema": "weft.workflow",
    "load": "weft.workflow",
    "loads": "weft.workflow",
    "think": "weft.workflow.apps.think",
    "think_sync": "weft.workflow.apps.think",
    "tool": "weft.agents.tools",
    "tool_from_schema": "weft.agents.tools.declaration",
}
__version__ = "0.1.0"
__all__ = [
    "AgentOptions",
    "Answer",
    "AskSettings",
    "Budget",
    "Confirmation",
    "Document",
    "Flow",
    "FlowResult",
    "FlowRun",
    "Isolation",
    "NotDone",
    "Question",
    "ThinkOptions",
    "Thought",
    "ThoughtModel",
    "Tool",
    "ToolContext",
    "Toolbox",
    "__version__",
    "ask",
    "ask_sync",
    "idempotency_key",
    "json_schema",
    "load",
    "loads",
    "think",
    "think_sync",
    "tool",
    "tool_from_schema",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
