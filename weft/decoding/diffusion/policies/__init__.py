"""Commit policies: rules that decide which slots are written after a pass, each on its own."""
