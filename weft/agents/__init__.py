"""Tools, their sources (functions, MCP servers, OpenAPI documents), and agents that call them."""
