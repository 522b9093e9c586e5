"""Proposers of options for documents."""
