"""Drafts of a small model of its own: one network, a slot for each sequence, one pass for all.

Follows Leviathan et al. (arXiv 2211.17192) and Chen et al. (arXiv 2302.01318).
"""
