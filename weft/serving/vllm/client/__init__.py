"""A `ModelClient` for a vLLM server, which it finds or starts."""
