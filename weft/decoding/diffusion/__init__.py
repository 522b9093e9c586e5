"""Texts written in any order, several tokens a pass: masked, block and uniform-state diffusion."""
