"""Questions to a knowledge graph: decompose, parallel retrieval chains, verify, answer."""
