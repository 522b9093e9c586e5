"""Question to plan to graph: streaming plans, their checks and grammars, routing."""
