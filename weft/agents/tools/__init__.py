"""Tools: typed Python functions that programs and models call by name, with JSON.

Knows no model and no graph; the engine decides when and how many of them run.
"""

from weft.agents.tools.batch import Batch
from weft.agents.tools.context import ToolContext, tool_logs
from weft.agents.tools.function import Tool, tool
from weft.agents.tools.isolation import Isolation
from weft.agents.tools.reference import resolve
from weft.agents.tools.toolbox import Toolbox

__all__ = ["Batch", "Isolation", "Tool", "ToolContext", "Toolbox", "resolve", "tool", "tool_logs"]
