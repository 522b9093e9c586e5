"""Diffusion language models: what parallel writing costs in quality, and what it saves."""
