"""Runs a graph: the async shell that performs the scheduler's commands."""
