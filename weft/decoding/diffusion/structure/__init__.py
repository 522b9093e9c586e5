"""Answers of a given form: a JSON Schema becomes a canvas of literals, values and choices."""
