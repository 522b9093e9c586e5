"""weft: parallel LLM programs, from the plan down to the token.

    import weft

    @weft.tool
    async def search(query: str) -> list[str]: ...

    flow = weft.Flow("report")            # in Python
    flow = weft.load("report.yaml")       # or from a file: the same graph
    result = await flow.run(topic="rivers")     # or flow.run_sync(topic="rivers")

    answer = await weft.ask("Which river is longer?", tools=[search])   # a model plans the calls

Names are loaded when they are first used, so `import weft` is light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.agents.agent import AgentOptions, Answer
    from weft.agents.tools import Isolation, Tool, Toolbox, ToolContext, tool
    from weft.core.budget import Budget
    from weft.workflow import Flow, FlowResult, FlowRun, json_schema, load, loads
    from weft.workflow.asking import AskSettings, ask, ask_sync

_HOMES = {
    "AgentOptions": "weft.agents.agent",
    "Answer": "weft.agents.agent",
    "AskSettings": "weft.workflow.asking",
    "Budget": "weft.core.budget",
    "Flow": "weft.workflow",
    "FlowResult": "weft.workflow",
    "FlowRun": "weft.workflow",
    "Isolation": "weft.agents.tools",
    "Tool": "weft.agents.tools",
    "ToolContext": "weft.agents.tools",
    "Toolbox": "weft.agents.tools",
    "ask": "weft.workflow.asking",
    "ask_sync": "weft.workflow.asking",
    "json_schema": "weft.workflow",
    "load": "weft.workflow",
    "loads": "weft.workflow",
    "tool": "weft.agents.tools",
}
__version__ = "0.1.0"
__all__ = [
    "AgentOptions",
    "Answer",
    "AskSettings",
    "Budget",
    "Flow",
    "FlowResult",
    "FlowRun",
    "Isolation",
    "Tool",
    "ToolContext",
    "Toolbox",
    "__version__",
    "ask",
    "ask_sync",
    "json_schema",
    "load",
    "loads",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    return getattr(import_module(home), name)
