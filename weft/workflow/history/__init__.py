"""Recorded runs: resume, replay, fork, compare, export."""
