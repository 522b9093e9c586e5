"""Diffusion models in this process: requests at different steps and blocks share every forward.

Importing the package imports no torch; its batcher does.
"""
