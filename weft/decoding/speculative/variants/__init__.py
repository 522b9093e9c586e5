"""Targets that read, or are read, in another way than a plain model."""
