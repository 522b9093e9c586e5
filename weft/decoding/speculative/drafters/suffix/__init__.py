"""SuffixDecoding (arXiv 2411.04975): counts of what followed every suffix, in a text and in others.

The counts say how likely a draft is, so its length follows from them.
"""
