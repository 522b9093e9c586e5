"""Tools of MCP servers (Model Context Protocol), called like any other tool."""

import logging

from weft.core.extras import optional_packages

with optional_packages("tools of MCP servers"):
    from weft.agents.mcp.server import McpServer
    from weft.agents.mcp.tools import McpTools

for _name in ("mcp", "client"):  # their loggers must not print what a server sends
    logging.getLogger(_name).addHandler(logging.NullHandler())

__all__ = ["McpServer", "McpTools"]
