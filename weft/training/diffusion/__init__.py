"""Trainings of diffusion models, and of what helps them."""
