"""Threads over a chat model: each request is a whole prompt."""
