"""Jobs as programs of pydantic-graph or pydantic-ai, each complete in one module."""
