"""Tools of MCP servers (Model Context Protocol), called like any other tool.

Knows one server at a time; several are joined by `weft.agents.tools.joined`.
"""

import logging

from weft.core.errors import BuildError

try:
    from weft.agents.mcp.server import McpServer
    from weft.agents.mcp.tools import McpTools
except ModuleNotFoundError as error:
    package = str(error.name).partition(".")[0]
    hint = "pip install 'weft[mcp]'"
    raise BuildError(f"tools of MCP servers need the package {package}", hint=hint) from error

for _name in ("mcp", "client"):  # what a server sends must not reach a terminal through a logger
    logging.getLogger(_name).addHandler(logging.NullHandler())

__all__ = ["McpServer", "McpTools"]
