"""Journals: what happened in every run, kept while it happens, each value once."""
