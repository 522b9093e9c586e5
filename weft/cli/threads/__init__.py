"""Threads of a thought for people: live rows, a summary, a file to read."""
