"""What is made of workflows: `ask`, `think`, the gateway, the MCP server, the UI."""
