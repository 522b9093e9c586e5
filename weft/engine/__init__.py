"""Runs graphs of work. Knows no language model."""
