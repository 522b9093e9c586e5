"""Strategies that spend more than one model call on a question. Imports ports only, no server."""
