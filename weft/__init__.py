"""weft: parallel LLM programs, from the plan down to the token."""
