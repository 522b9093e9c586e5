"""A DFlash drafter (arXiv 2602.06036): one pass over a block of masks guesses several tokens.

A small block-diffusion model that reads its target's own features.
"""
