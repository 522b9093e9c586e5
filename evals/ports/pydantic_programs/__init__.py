"""Each job as a program of pydantic-graph and pydantic-ai; each module is complete by itself, and its lines are counted."""
