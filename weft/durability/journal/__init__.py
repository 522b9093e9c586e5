"""Journals: the records of every run, written while it runs, each value stored once."""
