"""Questions to a knowledge graph: decompose, retrieval chains side by side, verify, answer."""
