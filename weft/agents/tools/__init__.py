"""Tools: typed Python functions that programs and models call by name, with JSON."""

from weft.agents.tools.context import ToolContext, tool_logs
from weft.agents.tools.function import Batch, Isolation, Tool, tool
from weft.agents.tools.toolbox import Toolbox, resolve

__all__ = ["Batch", "Isolation", "Tool", "ToolContext", "Toolbox", "resolve", "tool", "tool_logs"]
