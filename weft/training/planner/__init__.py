"""Training of a small planner: a causal chat model that learns to write plans for tools."""
