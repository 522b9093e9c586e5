"""Sequoia (arXiv 2402.12374): trees of a draft model, drawn without replacement, of the best shape.

The shape follows from how often the child of each rank is accepted, and from measured times.
"""
