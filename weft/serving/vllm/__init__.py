"""vLLM as a supervised part of weft: what to start, how to start it, how to keep and find it."""
