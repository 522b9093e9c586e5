"""Lexical Unit Decoding (arXiv 2405.15208): several sure tokens at once, by placeholders.

The published method keeps them unverified and changes the text; the same rows also draft for a
lossless rule.
"""
