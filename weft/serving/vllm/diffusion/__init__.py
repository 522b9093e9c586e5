"""Masked and block diffusion models in vLLM's own diffusion path, with weft's decoders.

That path needs vLLM's second model runner, and so a GPU: `launch.diffusion` says what can run.
"""
