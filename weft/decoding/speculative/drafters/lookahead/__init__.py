"""Lookahead decoding (arXiv 2402.02057): n-grams from Jacobi iterations, verified as a draft.

Needs no training: the target's own passes make the n-grams, on rows that are read beside the draft.
"""
