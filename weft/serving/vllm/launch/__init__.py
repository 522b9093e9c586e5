"""From a server's specification to the command and environment of a vLLM process."""
