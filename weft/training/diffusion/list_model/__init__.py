"""The small model of list operations, trained from nothing: full, block-causal and causal.

Knows the languages of the oracle; who asks for a training, and who sees it, is for others.
"""
