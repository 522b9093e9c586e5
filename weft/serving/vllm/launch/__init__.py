"""From a server specification to the command and environment of vLLM."""
