"""Trainings of diffusion models, and of what helps them.

Knows nothing of how they are decoded.
"""
