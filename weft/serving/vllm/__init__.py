"""vLLM servers: how to start, supervise, find and call them."""
