"""A `ModelClient` for vLLM servers, which it finds or starts."""
