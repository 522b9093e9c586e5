"""Strategies that spend more than one model call on a question. Knows ports, no server."""
