"""Presets by family, read when one is asked for."""
