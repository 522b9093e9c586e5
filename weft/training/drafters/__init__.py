"""Making drafters: texts that the target writes itself, and what learns to guess them.

Knows tokens and hidden states; who asks, and how progress is shown, is for others.
"""
