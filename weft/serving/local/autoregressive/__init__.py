"""Batches of requests to a model that writes left to right."""
