"""Countdown: the puzzle, its symbolic solvers, and small models trained on what they write."""
