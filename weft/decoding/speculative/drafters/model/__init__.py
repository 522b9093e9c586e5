"""Drafters that run a draft model next to the target."""
