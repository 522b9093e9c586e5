"""A small model writes until it is unsure, then a large one verifies (LLMCad, 2309.04255)."""
