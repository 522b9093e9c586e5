"""List languages small enough to count: their questions, all valid answers, exact marginals.

The ground truth that policies and trained models are measured against.
"""
